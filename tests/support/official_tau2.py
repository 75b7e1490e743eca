"""Run tau2's own orchestrator and evaluator over scripts, in a process that can import ``tau2``.

Reads a JSON list on stdin and writes one of the same length on stdout. An item has the
``domain``, the package's ``task``, and ``events``, in order: ``["agent", text, calls]`` and
``["user", text, calls]``, with ``calls`` a list of ``[name, arguments]``, empty in a spoken
message. The answer is ``{"reward": float, "end": str, "steps": int, "results": [[text, error]],
"db": str}``.
"""

import json
import multiprocessing
import random
import sys
import types
import uuid


class Absent(types.ModuleType):
    """Stands for what only draws tables or calls models."""

    def __getattr__(self, name):
        return type(name, (), {})


sys.modules["pandas"] = Absent("pandas")
models = Absent("tau2.utils.llm_utils")
models.get_cost = lambda messages: None
sys.modules["tau2.utils.llm_utils"] = models

from loguru import logger  # noqa: E402

logger.remove()

from tau2.agent.base import LocalAgent  # noqa: E402
from tau2.data_model.message import AssistantMessage, ToolCall, ToolMessage, UserMessage  # noqa: E402
from tau2.data_model.tasks import Task  # noqa: E402
from tau2.evaluator.evaluator import EvaluationType, evaluate_simulation  # noqa: E402
from tau2.orchestrator.orchestrator import Orchestrator  # noqa: E402
from tau2.registry import registry  # noqa: E402
from tau2.user.base import BaseUser  # noqa: E402

COPIES = 3
MAX_STEPS, MAX_ERRORS = 200, 10
ready = {}


class Left(Exception):
    """The script of a side is over."""


def message(kind, requestor, text, calls):
    made = [
        ToolCall(id=f"{requestor}-{i}", name=name, arguments=arguments, requestor=requestor)
        for i, (name, arguments) in enumerate(calls)
    ]
    return kind(role=requestor, content=text, tool_calls=made or None)


class Agent(LocalAgent):
    def __init__(self, script):
        super().__init__(tools=[], domain_policy="")
        self.script = script

    def get_init_state(self, message_history=None):
        return None

    def generate_next_message(self, heard, state):
        if not self.script:
            raise Left
        return message(AssistantMessage, "assistant", *self.script.pop(0)), state


class User(BaseUser):
    def __init__(self, script):
        super().__init__()
        self.script = script

    def get_init_state(self, message_history=None):
        return None

    def is_stop(self, message):
        raise NotImplementedError

    def generate_next_message(self, heard, state):
        said = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        return message(UserMessage, "user", *said), state


def fresh(domain):
    def construct(solo_mode=False):
        return ready[domain].pop()

    return construct


def official(item):
    domain, task = item["domain"], Task.model_validate(item["task"])
    dice = random.Random(0)
    sys.modules["tau2.domains.telecom.tools"].uuid = types.SimpleNamespace(
        uuid4=lambda: uuid.UUID(int=dice.getrandbits(128), version=4)
    )
    sides = {side: [event[1:] for event in item["events"] if event[0] == side] for side in ("agent", "user")}
    environment = ready[domain].pop()
    played = Orchestrator(
        domain, Agent(sides["agent"]), User(sides["user"]), environment, task, MAX_STEPS, MAX_ERRORS
    )
    played.agent.stop = played.user.stop = lambda *_: None
    try:
        simulation = played.run()
    except (Left, ValueError) as error:
        simulation = None
        end = "left" if isinstance(error, Left) else "agent_error"
    results = [[told.content, told.error] for told in played.trajectory if isinstance(told, ToolMessage)]
    db = _hash(environment)
    answer = {"reward": 0.0, "end": "", "steps": played.step_count, "results": results, "db": db}
    if simulation is None:
        return {**answer, "end": end}
    dice.seed(0)
    registry._domains[domain] = fresh(domain)
    try:
        reward = evaluate_simulation(simulation, task, EvaluationType.ALL, False, domain).reward
    except ValueError as error:
        return {**answer, "end": f"crashed: {error}"}
    return {**answer, "reward": reward, "end": simulation.termination_reason.value}


def _hash(environment):
    try:
        return environment.get_db_hash()
    except Exception as error:
        return f"no hash: {type(error).__name__}"


def main():
    items = json.load(sys.stdin)
    for domain in {item["domain"] for item in items}:
        ready[domain] = [registry.get_env_constructor(domain)() for _ in range(COPIES)]
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        json.dump(pool.map(official, items, chunksize=1), sys.stdout)


if __name__ == "__main__":
    main()

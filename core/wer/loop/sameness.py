"""A run goes on with the tasks and the check that it began with, or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping

from wer.contracts import Environment, Executor, Identified
from wer.errors import ConfigError
from wer.store import Store

_PURPOSE = "identity"
_AGENT = "agent identity"


def demand_same_agents(store: Store, agents: Mapping[str, Executor]) -> None:
    """Likewise for agents of the user's own, by what they are called.

    Raises:
        ConfigError: The user has edited one since.
    """
    for name, agent in agents.items():
        now = json.dumps(agent.identity, sort_keys=True, default=dict)
        store.put_document(_AGENT, name, now)
        if store.document(_AGENT, name) != now:
            raise ConfigError(
                f"your agent {name} changed since this run began, so that its rollouts of before and of now can't be "
                "compared. Start a new run, or put back its code and executor_options."
            )


def demand_same(store: Store, envs: Mapping[str, Environment]) -> None:
    """Keep what each environment is when a run begins, and compare when it goes on.

    Raises:
        ConfigError: The user has edited one since: its verdicts of before and of now don't compare.
    """
    for name, env in envs.items():
        if not isinstance(env, Identified):
            continue
        now = dict(env.identity)
        store.put_document(_PURPOSE, name, json.dumps(now))
        before = json.loads(store.document(_PURPOSE, name) or "{}")
        changed = [part for part in now if now[part] != before.get(part)]
        if changed:
            raise ConfigError(
                f"the {' and the '.join(changed)} of environment {name!r} changed since this run began, so that its "
                "rollouts of before and of now can't be compared. Start a new run, or put the old text back; wer "
                "verify shows what a changed check says about the stored rollouts."
            )

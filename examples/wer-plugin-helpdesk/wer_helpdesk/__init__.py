"""Entry module of the help desk: ``wer run --env helpdesk``."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import wer
from wer.contracts import Environment
from wer.hookspecs import Options
from wer.records import PhaseOutcome, Rollout

_CONTEXT = """\
You are the IT help desk of Larkfield College. Somebody writes to you: act for them with the tools.
The college's policies bind you. Read the one on tickets, and the one that the request is about.
"""
_LOG = logging.getLogger("wer_helpdesk")


@wer.hookimpl
def wer_environments() -> Mapping[str, Callable[[Options], Environment]]:
    """Offer ``--env helpdesk``; its verifier has the same name."""
    from wer_helpdesk.desk import HelpDesk
    from wer_helpdesk.verifier import check

    desk = wer.Domain(
        HelpDesk,
        tasks=Path(__file__).with_name("tasks.jsonl"),
        check=check,
        context=_CONTEXT,
        requirements=("anyascii==0.3.3",),
    )
    return {"helpdesk": desk}


@wer.hookimpl
def wer_rollout_finished(rollout: Rollout, cached: bool) -> None:
    """Log what was wrong at the end of an episode."""
    if rollout.task_id.startswith("helpdesk/") and not cached:
        for finding in rollout.verdict.diagnostics:
            _LOG.info("%s: %s", rollout.task_id, finding)


@wer.hookimpl
def wer_phase_finished(phase: int, outcome: PhaseOutcome) -> None:
    """Warn of the columns that agents got wrong most often: there the policies need clearer words."""
    rollouts = [rollout for experience in outcome.experiences for rollout in experience.rollouts]
    findings = [
        finding.split()
        for rollout in rollouts
        if rollout.task_id.startswith("helpdesk/")
        for finding in rollout.verdict.diagnostics
    ]
    wrong = Counter(f"{words[0]}.{words[2]}" for words in findings)
    if wrong:
        said = ", ".join(f"{column} {count} times" for column, count in wrong.most_common(3))
        _LOG.warning("phase %d: most often wrong: %s", phase, said)

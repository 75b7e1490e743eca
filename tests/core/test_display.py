"""What a run says while it works."""

import io
from itertools import count

from rich.console import Console
from support.perform import configured, perform

from wer.display import Display


def told(rollouts, **options):
    """The plain progress lines of one stage, a second passing at every look at the clock."""
    console = Console(file=io.StringIO(), width=200, highlight=False)
    seconds = count(0, 60)
    with Display(console, clock=lambda: next(seconds)) as display:
        display.stage("searching", 4, **options)
        for rollout in rollouts:
            display.rollout(rollout, False)
    return [line for line in console.file.getvalue().splitlines() if "rollouts," in line]


def test_a_search_that_asks_for_a_rollout_again_counts_it_once(tmp_path):
    stored = perform(tmp_path / "run", configured(training__phases=1)).rollouts()
    (first, *_), (second, *_) = stored[:2]

    assert "2/4 rollouts" in told([first, second, first, first], once=True)[-1]
    assert "4/4 rollouts" in told([first, second, first, first])[-1]

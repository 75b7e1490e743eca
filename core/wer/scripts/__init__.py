"""Helper scripts of a skill as tools of the agent: read here, and run in a sandbox only."""

from wer.scripts.reading import PREFIX, Script, check_tests, read_script, scripts_of
from wer.scripts.running import SCRIPTS, run_script, try_script
from wer.scripts.session import HelpedSession, equipped

__all__ = [
    "PREFIX",
    "SCRIPTS",
    "HelpedSession",
    "Script",
    "check_tests",
    "equipped",
    "read_script",
    "run_script",
    "scripts_of",
    "try_script",
]

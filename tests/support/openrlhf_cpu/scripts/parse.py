"""Has the real command line parse and check argument lists, up to where it would start training.

python parse.py FILE      a JSON list of argument lists; prints what each became, as JSON
"""

import argparse
import contextlib
import io
import json
import runpy
import sys
from pathlib import Path

import openrlhf.utils
import ray

MODULE = "openrlhf.cli.train_ppo_ray"


class ReachedTraining(BaseException):
    pass


def parsed(words):
    """What the trainer would start with; or the message with which it refuses."""
    sys.argv = ["train_ppo_ray", *words]
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            runpy.run_module(MODULE, run_name="__main__")
    except ReachedTraining as reached:
        return {"arguments": plain(reached.args[0])}
    except (SystemExit, AssertionError) as refused:
        return {"refused": f"{said.getvalue()}{refused}"}
    raise RuntimeError("the command line came to its end without training")


def plain(value):
    if hasattr(value, "__dict__"):
        return {name: plain(each) for name, each in vars(value).items()}
    return list(value) if isinstance(value, tuple) else value


def reached(arguments):
    raise ReachedTraining(arguments)


def names():
    """All flags of the real parser."""
    found = []
    real = argparse.ArgumentParser.parse_args

    def parse_args(parser, *_args, **_kwargs):
        found.extend(name for action in parser._actions for name in action.option_strings)
        raise ReachedTraining

    argparse.ArgumentParser.parse_args = parse_args
    with contextlib.suppress(ReachedTraining):
        runpy.run_module(MODULE, run_name="__main__")
    argparse.ArgumentParser.parse_args = real
    return sorted(name for name in found if name.startswith("--"))


ray.is_initialized = lambda: True
openrlhf.utils.get_strategy = reached
lists = json.loads(Path(sys.argv[1]).read_text("utf-8"))
print(json.dumps({"flags": names(), "parsed": [parsed(words) for words in lists]}))

"""Run BFCL's own multi-turn checker over transcripts, in a process that can import ``bfcl_eval``.

Reads a JSON list on stdin and writes one of the same length on stdout. An item has the
benchmark's ``entry`` and ``answer``, and ``turns``: the decoded calls of every turn as
a list of steps of Python call expressions. The answer is ``{"official": bool,
"final_state": bool, "error": str}``.
"""

import json
import sys

from bfcl_eval.eval_checker.multi_turn_eval import multi_turn_checker, multi_turn_utils


def official(number: int, entry: dict, answer: list, turns: list) -> str:
    """Do as ``eval_runner`` does; empty when the trajectory is valid, else the error type."""
    if len(turns) != len(answer):
        return "multi_turn:force_terminated"
    verdict = multi_turn_checker.multi_turn_checker(
        turns, answer, entry, "multi_turn_base", f"official{number}"
    )
    return "" if verdict["valid"] else verdict["error_type"]


def final_state(number: int, entry: dict, answer: list, turns: list) -> bool:
    """Compare the end states alone with the official state check."""
    instances = []
    for side, calls in (
        ("model", [call for turn in turns for step in turn for call in step]),
        ("truth", [call for turn in answer for call in turn]),
    ):
        _, found = multi_turn_utils.execute_multi_turn_func_call(
            calls, entry["initial_config"], entry["involved_classes"], f"end{side}{number}", entry["id"]
        )
        instances.append(found)
    return multi_turn_checker.state_checker(*instances)["valid"]


def main() -> None:
    verdicts = []
    for number, item in enumerate(json.load(sys.stdin)):
        error = official(number, item["entry"], item["answer"], item["turns"])
        same_end = final_state(number, item["entry"], item["answer"], item["turns"])
        verdicts.append({"official": not error, "final_state": same_end, "error": error})
        # The package keeps every instance in its globals, by model name and task id.
        for name in [name for name in vars(multi_turn_utils) if name.endswith("_instance")]:
            delattr(multi_turn_utils, name)
    json.dump(verdicts, sys.stdout)


if __name__ == "__main__":
    main()

"""Run BFCL's own multi-turn checker over transcripts, in a process that can import ``bfcl_eval``.

Reads a JSON list on stdin and writes one of the same length on stdout. An item has the
benchmark's ``entry`` and ``answer``, and ``turns``: the decoded calls of every turn as
a list of steps of Python call expressions. The answer is ``{"official": bool,
"final_state": bool, "error": str, "results": [str]}``, the results of all calls.
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


def replay(side: str, number: int, entry: dict, calls: list) -> tuple[list, dict]:
    """Run calls in instances of their own; give their results and the instances."""
    return multi_turn_utils.execute_multi_turn_func_call(
        calls, entry["initial_config"], entry["involved_classes"], f"{side}{number}", entry["id"]
    )


def main() -> None:
    verdicts = []
    for number, item in enumerate(json.load(sys.stdin)):
        entry, answer, turns = item["entry"], item["answer"], item["turns"]
        error = official(number, entry, answer, turns)
        results, ours = replay("agent", number, entry, [c for turn in turns for step in turn for c in step])
        _, truth = replay("truth", number, entry, [call for turn in answer for call in turn])
        same_end = multi_turn_checker.state_checker(ours, truth)["valid"]
        verdicts.append({"official": not error, "final_state": same_end, "error": error, "results": results})
        # The package keeps every instance in its globals, by model name and task id.
        for name in [name for name in vars(multi_turn_utils) if name.endswith("_instance")]:
            delattr(multi_turn_utils, name)
    json.dump(verdicts, sys.stdout)


if __name__ == "__main__":
    main()

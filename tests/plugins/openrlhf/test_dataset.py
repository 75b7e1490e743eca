"""The phase's prompts arrive in the engines as they were rendered, and their labels lead back to the states."""

import json
from pathlib import Path

import pytest
from support.openrlhf_cpu import make_policy, run_script
from support.tiny_writer import setup, states

from wer_openrlhf import dataset
from wer_openrlhf.rendering import Renderer

SCRIPT = Path(__file__).parents[2] / "support/openrlhf_cpu/scripts/read_dataset.py"


def test_a_state_that_fills_the_last_batch_gets_a_group_of_its_own(tmp_path: Path):
    one, two = states(2)
    file = tmp_path / "prompts.jsonl"

    assert dataset.write(file, [one, two, one], lambda state: state.task.id, k=4) == 3

    labels = [json.loads(json.loads(line)["label"]) for line in file.read_text().splitlines()]
    assert labels == [
        {"state": one.id, "first": 0},
        {"state": two.id, "first": 0},
        {"state": one.id, "first": 4},
    ]


def test_what_is_written_twice_is_the_same_file(tmp_path: Path):
    for name in ("a", "b"):
        dataset.write(tmp_path / name, states(3), lambda state: state.task.id, k=2)

    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


@pytest.mark.openrlhf
@pytest.mark.slow
def test_openrlhf_reads_the_prompts_byte_for_byte_and_without_images(tmp_path: Path):
    policy = make_policy(tmp_path / "policy")
    renderer = Renderer(model=str(policy), setup=setup(policy, max_prompt_tokens=20_000))
    chosen = states(3)
    texts = [renderer.prompt(state) + "<image> \u2028 \\n \U0001f600" for state in chosen]
    rendered = dict(zip((state.id for state in chosen), texts, strict=True))
    dataset.write(tmp_path / "prompts.jsonl", chosen, lambda state: rendered[state.id], k=4)

    read = run_script(SCRIPT, str(tmp_path / "prompts.jsonl"), str(policy))

    assert read["prompts"] == texts
    assert read["images"] == [None] * 3
    assert [json.loads(label)["state"] for label in read["labels"]] == [state.id for state in chosen]
    assert [len(tokens) for tokens in read["tokens"]] == [
        len(renderer._tokenizer(text, add_special_tokens=False)["input_ids"]) for text in texts
    ]

"""Writers that cannot be asked are refused with the reason, whatever their files hold."""

import json
from pathlib import Path

import pytest
from support.openrlhf_cpu import make_policy
from support.tiny_writer import setup, states

from wer.errors import ConfigError, PromptTooLong
from wer_openrlhf.rendering import Renderer

(STATE,) = states(1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_policy(tmp_path / "writer")


def prompt(folder: Path, **changes: object) -> str:
    return Renderer(
        model=str(folder),
        setup=setup(folder, **{"max_prompt_tokens": 8000, "max_response_tokens": 8, **changes}),
    ).prompt(STATE)


def test_the_prompt_is_what_the_writers_template_makes_of_it(folder: Path):
    text = prompt(folder)

    assert text.startswith("<|im_start|>system\n") and text.endswith("<|im_start|>assistant\n")


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ raise_exception('no system role here') }}", "no system role here"),
        ("{{ messages[0].nothing.at.all }}", "refuses a request"),
        ("{% for %}", "refuses a request"),
        ("{{ messages + 1 }}", "refuses a request"),
    ],
)
def test_a_chat_template_that_fails_is_an_error_of_the_user(folder: Path, template: str, reason: str):
    (folder / "chat_template.jinja").write_text(template)

    with pytest.raises(ConfigError, match=reason):
        prompt(folder)


@pytest.mark.parametrize("gone", ["chat_template.jinja"])
def test_a_writer_without_a_chat_template_is_refused(folder: Path, gone: str):
    (folder / gone).unlink()

    with pytest.raises(ConfigError, match="has no chat template"):
        prompt(folder)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("tokenizer.json", "{"),
        ("tokenizer.json", "{}"),
        ("tokenizer_config.json", "[]"),
        ("config.json", "{"),
        ("config.json", "[]"),
        ("config.json", '{"model_type": "nobody"}'),
        ("config.json", None),
    ],
)
def test_a_damaged_writer_is_refused_with_what_is_wrong(folder: Path, file: str, text: str | None):
    if text is None:
        (folder / file).unlink()
    else:
        (folder / file).write_text(text)

    with pytest.raises(ConfigError, match="cannot read the writer"):
        prompt(folder)


def test_a_writer_without_a_tokenizer_is_refused(folder: Path):
    for file in folder.glob("tokenizer*"):
        file.unlink()

    with pytest.raises(ConfigError, match="its vocabulary is missing"):
        prompt(folder)


def test_a_context_that_the_answer_fills_is_refused(folder: Path):
    with pytest.raises(ConfigError, match="leaves no room for a prompt"):
        prompt(folder, max_response_tokens=40_000)


def test_a_prompt_over_the_limit_is_refused_and_never_cut(folder: Path):
    with pytest.raises(PromptTooLong, match="the limit is 10"):
        prompt(folder, max_prompt_tokens=10)


def test_a_context_that_is_not_a_number_counts_as_none(folder: Path):
    config = json.loads((folder / "config.json").read_text())
    del config["max_position_embeddings"]
    (folder / "config.json").write_text(json.dumps(config))

    assert prompt(folder)

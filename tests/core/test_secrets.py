"""Marked keys go in at every door, and nothing that is written or printed has one of them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from attrs import evolve
from support import counting, paying
from support.mock_openai import fails, says, sends_bytes
from support.paying import Cashier
from support.perform import configured

from wer import plugins
from wer.cli import main
from wer.configuration import to_toml
from wer.redaction import hidden, secrets

MARK = "marked-7f3a9c51d2"
RUN = ["run", "--env", "counting", "--sandbox", "memory", "--agent", "counter"]


@pytest.fixture
def wer(monkeypatch, capfd, tmp_path):
    """Call the command in an empty folder, with marked keys around; gives exit status and all that was printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plugins, "load", partial(plugins.load, extra=(counting, paying)))
    for name in ("OPENAI_API_KEY", "WER_API_KEY", "ANTHROPIC_API_KEY", "WANDB_API_KEY", "HF_TOKEN"):
        monkeypatch.setenv(name, f"{MARK}-{name.lower()}")
    monkeypatch.setenv("https_proxy", f"http://me:{MARK}@127.0.0.1:9")

    def call(*words: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as exit_:
            main(words)
        out, err = capfd.readouterr()
        return int(exit_.value.code or 0), out + err

    return call


def written(folder: Path) -> dict[str, bytes]:
    """Everything in a folder, the store's write-ahead log too."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "words",
    [
        ["--executor", f"openai/m@http://me:{MARK}@127.0.0.1:9/v1"],
        ["--executor", f"openai/m@http://{MARK}@127.0.0.1:9/v1"],
        ["--executor", f"openai/m@http://127.0.0.1:9/v1?api_key={MARK}"],
        ["--executor", "scribe/a", "--writer", f"openai/m@https://me:{MARK}@127.0.0.1:9/v1"],
        ["--executor", "scribe/a", "--price", f"openai/m@http://me:{MARK}@127.0.0.1:9/v1=1,2"],
        ["--executor", "scribe/a", "--set", f"executor_options.api_key={MARK}"],
        ["--executor", "scribe/a", "--set", f"environment.counting.headers.Authorization=Bearer {MARK}"],
        ["--executor", "scribe/a", "--set", f"tracking.wandb.api_key={MARK}"],
        ["--executor", "scribe/a", "--set", f"optimizer.prompted.password={MARK}"],
        ["--executor", "scribe/a", "--set", f"environment.counting.urls=['http://me:{MARK}@127.0.0.1']"],
        ["--executor", "scribe/a", "--config", "given.toml"],
    ],
)
def test_a_secret_in_the_configuration_is_refused_by_its_place_and_never_repeated(wer, tmp_path, words):
    (tmp_path / "given.toml").write_text(f'[executor_options]\ntoken_secret = "{MARK}"\n')

    status, printed = wer(*RUN, *words)

    assert status == 2
    assert "environment variable" in printed
    assert MARK not in printed
    assert [path.name for path in tmp_path.iterdir()] == ["given.toml"]


def test_what_only_looks_like_a_secret_is_no_secret():
    harmless = {
        "executor": "litellm/vertex_ai/claude@2025@http://127.0.0.1:1/v1",
        "max_tokens": 5,
        "token": "<sep>",
        "key": "name",
        "api_key": "",
        "text": "write to me@example.com",
        "headers": {"Authorization": "MY_AGENT_AUTH"},
    }

    assert list(secrets(harmless)) == []


def test_messages_lose_the_keys_of_the_environment_and_the_passwords_of_addresses(monkeypatch):
    monkeypatch.setenv("SOME_PROVIDERS_API_KEY", MARK)
    monkeypatch.setenv("SHORT_KEY", "key")

    shown = hidden(f"401: no key {MARK} at https://me:pass@host/v1, says me@host")

    assert shown == "401: no key (hidden) at https://(hidden)@host/v1, says me@host"


@pytest.mark.slow
def test_a_run_whose_server_repeats_the_key_writes_and_prints_it_nowhere(wer, tmp_path):
    key = f"{MARK}-wer_api_key"
    with Cashier() as cashier:
        model = f"openai/m@{cashier.url}"
        (tmp_path / "wer.toml").write_text(
            to_toml(
                evolve(
                    configured(agent="asker", training__phases=1, training__states_per_phase=3),
                    executor=model,
                    writer=model,
                )
            )
        )
        repeating = [
            fails(429, message=f"{key} is too busy", retry_after="0"),
            fails(500, message=f"Authorization: Bearer {key}"),
            sends_bytes(f"<html>{key}</html>".encode(), content_type="text/html"),
            says(f"<think>{key}</think><skill>\n1. say {key}\n</skill>"),
        ]
        cashier.fail(*repeating * 3, every=5)
        first, printed_first = wer("run", "--set", "limits.retries=9")
        (folder,) = (tmp_path / "runs").iterdir()
        cashier.fail(fails(401, message=f"wrong key {key}"))
        second, printed_second = wer("eval", str(next((folder / "skills").rglob("SKILL.md"))))
        printed = printed_first + printed_second
        for words in (
            ["show", str(folder), "--trajectories"],
            ["status", str(folder)],
            ["verify", str(folder)],
            ["export", str(folder), "--format", "jsonl", "--out", "rows.jsonl"],
            ["export", str(folder), "--format", "skill", "--out", "exported"],
        ):
            status, more = wer(*words)
            printed += more
            assert status == 0, more

    files = written(tmp_path)
    assert (first, second) == (0, 2), printed
    assert "401: " in printed_second and "Check the API key" in printed_second
    assert MARK not in printed
    assert [path for path, content in files.items() if MARK.encode() in content] == []
    assert any("wer.sqlite" in path for path in files) and any("rows.jsonl" in path for path in files)

"""``wer demo``: a recorded run that needs nothing but the wheel."""

import io
import subprocess
import sys
import tarfile
from importlib import resources

import pytest

import wer
from wer import demo
from wer.cli import main
from wer.store import Store

_EXTRAS = (
    "docker",
    "gepa",
    "litellm",
    "ray",
    "torch",
    "transformers",
    "wandb",
    "tensorboard",
    "xllamacpp",
    "bfcl_eval",
)


def test_the_demo_needs_no_extra_and_no_network():
    program = (
        "import sys, socket\n"
        f"sys.modules.update(dict.fromkeys({_EXTRAS!r}))\n"
        "def refuse(*_): raise AssertionError('the demo opens a connection')\n"
        "socket.socket.connect = refuse\n"
        "from wer.cli import main\nmain(['demo'])\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    shown = " ".join(done.stdout.split())
    assert "every verdict is the one recorded" in shown
    assert "a matched pair" in shown
    assert "refined skill" in shown


def test_a_verdict_that_no_longer_comes_out_ends_the_demo(monkeypatch, capsys):
    from wer.records import Verdict
    from wer_bfcl_checker.official import BfclChecker

    monkeypatch.setattr(BfclChecker, "judge", lambda *_: Verdict(score=1.0, passed=True))

    with pytest.raises(SystemExit) as ended:
        main(["demo"])

    assert ended.value.code == 2
    assert "verdicts differ" in capsys.readouterr().err


def test_the_recording_is_small_and_says_nothing_of_a_machine():
    packed = (resources.files("wer.demo") / demo.FILE).read_bytes()

    assert len(packed) < 300_000
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        texts = [archive.extractfile(entry).read() for entry in archive if entry.isfile()]
        assert {entry.uid for entry in archive} == {0}
    for text in texts:
        assert b"/root/" not in text and b"/home/" not in text and b"/tmp/" not in text


def test_the_recorded_run_can_be_kept_and_looked_at(tmp_path):
    with pytest.raises(SystemExit) as ended:
        main(["demo", "--keep", str(tmp_path / "runs")])

    (folder,) = (tmp_path / "runs").iterdir()
    assert not ended.value.code
    assert wer.Run(folder).verify().agrees


def test_a_folder_that_holds_something_is_not_used(tmp_path, capsys):
    (tmp_path / "mine").write_text("x")

    with pytest.raises(SystemExit) as ended:
        main(["demo", "--keep", str(tmp_path)])

    assert ended.value.code == 2
    assert "is not empty" in capsys.readouterr().err


def test_the_recording_was_made_by_the_command_that_its_page_names(tmp_path):
    config = (demo.unpack(tmp_path) / "run.toml").read_text()

    assert 'executor = "local/qwen2.5-coder-0.5b"' in config
    assert "--executor local/qwen2.5-coder-0.5b" in demo.how()
    assert "Apache License 2.0" in demo.how()


def test_packing_leaves_logs_and_the_lock_behind(tmp_path):
    folder = demo.unpack(tmp_path)
    (folder / "logs").mkdir()
    (folder / "lock").write_text("1")

    demo.pack(folder, tmp_path / "again.tar.xz")

    with tarfile.open(tmp_path / "again.tar.xz") as archive:
        names = {name.partition("/")[2].partition("/")[0] for name in archive.getnames()}
    assert names - {""} == {"run.toml", "about.toml", "report.md", "wer.sqlite", "skills"}
    assert Store(folder / "wer.sqlite").count_rollouts() > 0

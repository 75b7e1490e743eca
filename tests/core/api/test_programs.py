"""Python as users run it: a script, a notebook, and Ctrl-C."""

import signal
import subprocess
import sys
import time

import nbformat
import pytest
from nbclient import NotebookClient
from support.mock_bfcl import serving
from support.mock_openai import MockOpenAI
from support.tickets import copied, writer

from wer.skills import load_skill


@pytest.fixture
def mock():
    with serving(MockOpenAI(default=writer)) as mock:
        yield mock


def test_a_script_of_ten_lines_ends_with_a_saved_skill(tmp_path, mock):
    script = copied(tmp_path / "own-tools", mock.url)
    assert len([line for line in script.read_text().splitlines() if line.strip()]) <= 10

    done = subprocess.run([sys.executable, script.name], cwd=script.parent, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert "refined skill" in done.stdout and "+1. Add the reason as a note, then close." in done.stdout
    (saved,) = (script.parent / "skills").iterdir()
    assert "note" in load_skill(saved).body


@pytest.mark.slow
def test_a_notebook_shows_run_table_diff_and_skill(tmp_path, mock):
    folder = copied(tmp_path / "own-tools", mock.url).parent
    setting, call = (folder / "refine.py").read_text().split("run = ")
    cells = [
        setting,
        f"run = {call.splitlines()[0]}\nrun",
        "run.table",
        "run.diff",
        "run.best",
        "again = await wer.aio.evaluate(tasks='tasks.jsonl', check=check, skill=run.best, trials=1,\n"
        "    executor=agent, progress=False)\nagain.results.cell('skill', 'average').mean",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])

    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()

    shown = [[out for out in cell.outputs if out.output_type == "execute_result"] for cell in notebook.cells]
    for (result,) in shown[1:5]:
        assert "<pre" in result.data["text/html"]
        assert result.data["text/plain"]
    assert "Pass@1" in shown[2][0].data["text/html"]
    assert "Add the reason as a note" in shown[3][0].data["text/plain"]
    assert shown[5][0].data["text/plain"] == "1.0"
    assert "run folder" in "".join(
        out.text for out in notebook.cells[1].outputs if out.output_type == "stream"
    )


@pytest.mark.slow
def test_ctrl_c_ends_a_script_and_the_same_call_goes_on(tmp_path, mock):
    script = copied(tmp_path / "own-tools", mock.url)
    text = script.read_text()
    script.write_text(text.replace("from desk import agent", "from slow import agent"))
    (script.parent / "slow.py").write_text(
        "import pathlib, time\nimport desk\n\ndef agent(task, skill, seed):\n    started = pathlib.Path('started')\n"
        "    if started.exists() and not pathlib.Path('go').exists():\n        time.sleep(60)\n"
        "    started.touch()\n    return desk.agent(task, skill, seed)\n"
    )
    running = subprocess.Popen(
        [sys.executable, script.name],
        cwd=script.parent,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    while not (script.parent / "started").exists():
        time.sleep(0.05)
    time.sleep(0.3)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=30)
    (folder,) = (script.parent / "runs").iterdir()
    (script.parent / "go").touch()
    script.write_text(script.read_text().replace("executor=agent", f"executor=agent, resume={str(folder)!r}"))

    done = subprocess.run([sys.executable, script.name], cwd=script.parent, capture_output=True, text=True)

    assert running.returncode in (-signal.SIGINT, 130)
    assert "go on with the same call and resume=" in said
    assert done.returncode == 0, done.stderr
    assert (script.parent / "skills").is_dir()
    assert list((script.parent / "runs").iterdir()) == [folder]

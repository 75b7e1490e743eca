"""The environment that a table, a file of tasks and a check make of an MCP server."""

import json

import pytest
from support.mcp_domain import HERE, ask, begun, environment, pool_of, task

import wer_mcp
from wer.cli import main
from wer.contracts import Identified, Referenced
from wer.errors import ConfigError, DomainError, TaskError
from wer.records import End, Trajectory

NOBODY = Trajectory(messages=(), steps=(), end=End(by="user"), seed=0)


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("WER_CACHE", str(tmp_path_factory.mktemp("cache")))


async def verdict_of(env, name, pool, *, follow: bool):
    session = await begun(env, pool, name)
    for calls in env.reference(task(env, name)):
        if follow:
            await session.call(calls)
        await session.say("done")
    expect = await env.expect(task(env, name), await pool.lease())
    evidence = await session.evidence()
    return wer_mcp.wer_verifiers()["mcp_check"]().judge(task(env, name), NOBODY, evidence, expect)


def test_the_tools_are_what_the_server_lists_on_all_its_pages():
    tools = {tool.name: tool for tool in task(environment(), "note").tools}

    assert {"add", "read", "spins"} <= tools.keys()
    assert tools["add"].description == "Add a line to the notes."
    assert tools["add"].parameters == {"type": "object", "properties": {"text": {}}}


def test_the_server_is_asked_for_its_tools_once(monkeypatch):
    first = task(environment(), "note")
    monkeypatch.setattr("subprocess.run", None)

    assert task(environment(), "note") == first


def test_the_agent_reads_the_servers_instructions_and_then_the_policy():
    assert (
        task(environment(context="Note nothing twice."), "note").context == "Be brief.\n\nNote nothing twice."
    )


def test_what_the_task_expects_is_nowhere_in_the_task():
    assert "milk" not in json.dumps(task(environment(), "note").setup)


def test_a_changed_file_of_the_server_makes_another_task(tmp_path):
    before = task(environment(), "note")
    changed = tmp_path / "server.py"
    changed.write_text((HERE / "server.py").read_text() + "# changed\n")

    after = task(environment(files={"server.py": str(changed)}), "note")

    assert before.id == after.id and before.key != after.key


def test_it_says_what_it_is_by_content_and_how_its_tasks_are_solved():
    env = environment()

    assert isinstance(env, Identified) and isinstance(env, Referenced)
    assert set(env.identity) == {"server", "tasks", "check"}


async def test_the_reference_passes_and_doing_nothing_fails():
    env = environment()
    async with pool_of(env, "process") as pool:
        for name in ("note", "again"):
            assert (await verdict_of(env, name, pool, follow=True)).passed
            assert not (await verdict_of(env, name, pool, follow=False)).passed


async def test_a_call_that_was_to_prepare_the_task_and_failed_is_the_owners_fault():
    env = environment(setup=[["fails", {}]])
    async with pool_of(env, "process") as pool:
        with pytest.raises(DomainError, match=r"mcp/again can't begin: fails {} answered: it did not work"):
            await begun(env, pool)


async def test_a_long_line_of_files_arrives_whole(tmp_path):
    (tmp_path / "large.txt").write_bytes(b"x" * 900_000)
    env = environment(
        files={"server.py": str(HERE / "server.py"), "deep/er.txt": str(tmp_path / "large.txt")}
    )
    async with pool_of(env, "process") as pool:
        session = await begun(env, pool)

        assert json.loads((await ask(session, "whereabouts")).text)[-1] == ["deep", "server.py"]
        await session.close()


def test_a_server_that_does_not_start_is_reported_with_its_last_words():
    env = environment(command=["python", "server.py", "--broken"])

    with pytest.raises(TaskError, match=r"(?s)can't be asked for its tools.*no licence found.*did not start"):
        task(env, "note")


def test_a_program_that_no_requirement_has_is_reported():
    with pytest.raises(TaskError, match=r"(?s)no requirement has a program named 'mcp-server-nothing'"):
        task(environment(command=["mcp-server-nothing"]), "note")


def test_a_state_of_a_tool_that_is_not_there_is_refused():
    with pytest.raises(ConfigError, match=r"calls 'look', which is no tool of the server \(tools: add, read"):
        task(environment(state=[["look", {}]]), "note")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"command": []}, r"command is \[\]; expected a program of a requirement"),
        ({"command": ["python", "-m"]}, r"command is \['python', '-m'\]; expected a program"),
        ({"check": "check.py"}, "check"),
        ({"check": f"{HERE}/check.py:nothing"}, "has no 'nothing'"),
        ({"stat": []}, r"unknown key 'stat' in \[environment.mcp\]; did you mean 'state'"),
    ],
)
def test_a_faulty_table_is_refused_with_what_was_expected(changes, message):
    with pytest.raises(ConfigError, match=message):
        environment(**changes)


def test_a_faulty_beginning_of_a_task_is_named(tmp_path):
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text('{"id": "a", "query": "Go.", "state": {"file": {}}}\n')

    with pytest.raises(TaskError, match=r"task 'a': unknown key 'file' in \[state\]; did you mean 'files'"):
        environment(tasks=str(tasks)).domains()


def test_paths_start_from_the_working_directory(monkeypatch):
    monkeypatch.chdir(HERE)

    env = environment(tasks="tasks.jsonl", check="check.py:check", files={"server.py": "server.py"})

    assert task(env, "note").turns == ("Note milk.",)


@pytest.mark.slow
def test_it_passes_the_conformance_of_environments_and_its_check_the_audit(monkeypatch, capfd):
    monkeypatch.chdir(HERE)
    settings = [
        'command=["python", "server.py"]',
        'files={"server.py" = "server.py"}',
        'tasks="tasks.jsonl"',
        'check="check.py:check"',
        'state=[["structured", {}]]',
    ]

    with pytest.raises(SystemExit) as ended:
        main(["plugin", "check", "mcp", "--sandbox=process", *(f"--set={line}" for line in settings)])

    assert not ended.value.code
    assert "doing nothing passes on 0 of 2" in capfd.readouterr().out

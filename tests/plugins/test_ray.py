"""Rollouts on a cluster: the same verdicts as here, whoever dies, and nothing left behind."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import ModuleType

import pytest
from rich.console import Console
from support import afar
from support.perform import configured

from wer import hookimpl, plugins
from wer.display import Display
from wer.errors import BudgetExhausted, ConfigError, ModelError, SandboxError
from wer.loop.measuring import measure
from wer.loop.opening import opened
from wer.loop.running import run_protocol
from wer.records import Skill
from wer.store import Store

pytestmark = [
    pytest.mark.ray,
    pytest.mark.slow,
    # Ray's own: it leaves its sockets and processes to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

TESTS = Path(__file__).parent.parent
NODE = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}
TRY = Skill(name="try", description="d", body="## Workflow\n1. try")
FIRST, SECOND = {"resource": "first"}, {"resource": "second"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    from ray.cluster_utils import Cluster

    site = afar.install(tmp_path_factory.mktemp("site"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{site}{os.pathsep}{TESTS}")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.delenv("RAY_ADDRESS", raising=False)
        cluster = Cluster(initialize_head=True, head_node_args={**NODE, "resources": {"first": 1}})
        try:
            cluster.add_node(**NODE, resources={"second": 1})
            yield cluster
        finally:
            cluster.shutdown()


@pytest.fixture
def config(cluster):
    def make(**overrides):
        settings = {"agent": "walker", "runner": "ray", "ray_address": cluster.address, "writer": "scribe/a"}
        return configured(**{**settings, **overrides})

    return make


async def trials(run):
    await measure(run, {"try": {domain.name: TRY for domain in run.domains}})


def drive(folder, config, work=trials, announced=None):
    """Do some work in a new folder and give its store; what was really run is announced to a list."""
    observer = ModuleType("observer")

    @hookimpl
    def wer_rollout_finished(rollout, cached):
        if announced is not None and not cached:
            announced.append(rollout.key)

    observer.wer_rollout_finished = wer_rollout_finished
    found = plugins.load(extra=(afar, observer))
    folder.mkdir()
    store = Store(folder / "wer.sqlite", create=True)

    async def run():
        with Display(Console(quiet=True)) as display:
            async with opened(config, folder=folder, store=store, plugins=found, display=display) as run:
                await work(run)

    asyncio.run(run())
    return store


def begun(log):
    """The units that were begun, as pairs: the process's number, and what it was."""
    lines = log.read_text().splitlines() if log.exists() else []
    return [tuple(line.split(" ", 1)) for line in lines]


def of_node(node, pid):
    """Whether a process is a worker of a node: a child of its raylet, or a child's."""
    [raylet] = node.all_processes["raylet"]
    while pid > 1:
        if pid == raylet.process.pid:
            return True
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return False
    return False


def kill_once(log, due, kill):
    """Start a thread that kills something once it is due: a count of units begun, or what a function says."""
    if isinstance(due, int):
        count, due = due, lambda: len(begun(log)) >= count

    def wait():
        while not due():
            time.sleep(0.02)
        kill()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def wait_for_the_end_of(pids):
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []


def test_a_whole_run_on_two_nodes_ends_with_the_verdicts_and_the_bill_of_a_local_one(config, tmp_path):
    log = tmp_path / "log"

    here = drive(tmp_path / "here", config(runner="local"), run_protocol)
    there = drive(tmp_path / "there", config(executor_options={"log": str(log)}), run_protocol)

    assert sorted(there.results()) == sorted(here.results())
    assert there.count_rollouts() == here.count_rollouts()
    assert there.spend() == here.spend()
    units = [unit for _, unit in begun(log)]
    workers = {pid for pid, _ in begun(log)}
    assert len(units) == len(set(units))
    assert len(workers) == 2
    wait_for_the_end_of(workers)


def test_a_node_killed_half_way_loses_nothing_and_nothing_is_stored_or_announced_twice(
    config, cluster, tmp_path
):
    log, announced = tmp_path / "log", []
    doomed = cluster.add_node(**NODE)
    here = drive(tmp_path / "here", config(runner="local"))

    def kill():
        cluster.remove_node(doomed, allow_graceful=False)

    killer = kill_once(log, lambda: any(of_node(doomed, int(pid)) for pid, _ in begun(log)), kill)
    # Long enough that a unit which has begun is still at work when its node is gone.
    options = {"log": str(log), "sleep_s": 2.0}
    there = drive(tmp_path / "there", config(executor_options=options, concurrency=6), announced=announced)
    killer.join(timeout=60)

    units = [unit for _, unit in begun(log)]
    assert len(units) > len(set(units)), "the node died with nothing to do"
    assert sorted(there.results()) == sorted(here.results())
    assert there.count_rollouts() == here.count_rollouts()
    assert len(announced) == len(set(announced)) == here.count_rollouts()


def test_a_killed_worker_is_replaced_on_its_node_when_it_was_the_only_one(config, tmp_path):
    log, announced = tmp_path / "log", []
    settings = config(
        executor_options={"log": str(log), "sleep_s": 0.1}, runner_options=SECOND, concurrency=4
    )

    killer = kill_once(log, 5, lambda: os.kill(int(begun(log)[0][0]), signal.SIGKILL))
    store = drive(tmp_path / "there", settings, announced=announced)
    killer.join()

    assert len({pid for pid, _ in begun(log)}) == 2
    assert len(announced) == len(set(announced)) == store.count_rollouts()


def test_ctrl_c_ends_the_workers_and_leaves_a_run_that_goes_on_elsewhere(config, cluster, tmp_path):
    log = tmp_path / "log"
    command = [sys.executable, "-m", "wer", "run", "--env", "counting", "--executor", "scribe/a"]
    command += ["--sandbox", "memory", "--set", "agent=walker", "--set", "runner_options.resource=first"]
    command += ["--set", "executor_options.sleep_s=0.1", "--set", f"executor_options.log={log}"]
    command += ["--runner", "ray", "--ray-address", cluster.address, "--runs", str(tmp_path / "runs")]

    program = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    kill_once(log, 3, lambda: program.send_signal(signal.SIGINT)).join()
    out, err = program.communicate()
    ran = len(begun(log))
    again = [sys.executable, "-m", "wer", "run", "--resume", str(next((tmp_path / "runs").iterdir()))]
    resumed = subprocess.run([*again, "--runner", "local"], cwd=tmp_path, capture_output=True, text=True)

    assert program.returncode != 0
    assert "go on with: wer run --resume" in err
    assert "ray.init" not in out + err and "raylet" not in out + err and "Traceback" not in out + err
    wait_for_the_end_of({pid for pid, _ in begun(log)[:ran]})
    assert resumed.returncode == 0, resumed.stderr


def test_a_cluster_that_loses_its_head_ends_the_run_which_goes_on_elsewhere(config, tmp_path):
    from ray.cluster_utils import Cluster

    log = tmp_path / "log"
    doomed = Cluster(initialize_head=True, head_node_args=NODE)
    command = [sys.executable, "-m", "wer", "run", "--env", "counting", "--executor", "scribe/a"]
    command += ["--sandbox", "memory", "--set", "agent=walker", "--set", f"executor_options.log={log}"]
    command += [
        "--set",
        "executor_options.sleep_s=3",
        "--set",
        "concurrency=1",
        "--runs",
        str(tmp_path / "runs"),
    ]

    program = subprocess.Popen(
        [*command, "--runner", "ray", "--ray-address", doomed.address],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    kill_once(log, 2, doomed.head_node.kill_gcs_server).join()
    out, err = program.communicate()
    doomed.shutdown()
    del doomed
    gc.collect()  # Ray's open files, while this module's filters hold
    again = [sys.executable, "-m", "wer", "run", "--resume", str(next((tmp_path / "runs").iterdir()))]
    again += ["--runner", "local", "--set", "concurrency=32"]
    resumed = subprocess.run(again, cwd=tmp_path, capture_output=True, text=True)

    assert program.returncode == 2
    assert "the head of the Ray cluster no longer answers" in err and "Traceback" not in out + err
    assert "go on with: wer run --resume" in err
    assert resumed.returncode == 0, resumed.stderr


def test_an_address_where_nobody_answers_is_told_with_the_remedy(config, tmp_path):
    with pytest.raises(ConfigError, match=r"no Ray cluster answers at '127.0.0.1:1'.*ray start --head"):
        drive(tmp_path / "run", config(ray_address="127.0.0.1:1"))


@pytest.mark.parametrize("address", ["nonsense", "ray://127.0.0.1:10001"])
def test_an_address_that_is_none_is_told_with_an_example(config, tmp_path, address):
    with pytest.raises(ConfigError, match=r"HOST:(PORT, such as 10.0.0.1:)?6379"):
        drive(tmp_path / "run", config(ray_address=address))


def test_a_worker_that_cannot_start_names_the_cause_the_node_and_the_last_words(config, tmp_path):
    with pytest.raises(SandboxError, match=r"(?s)no room for a sandbox.*disk full.*on \d+\.\d+\.\d+\.\d+"):
        drive(tmp_path / "run", config(sandbox="roomless", runner_options=FIRST))


def test_a_node_with_another_version_of_wer_is_refused_by_number(config, cluster, tmp_path):
    old = afar.install(tmp_path / "old", version="0.0.7")
    path = f"{old}{os.pathsep}{os.environ['PYTHONPATH']}"
    node = cluster.add_node(**NODE, resources={"old": 1}, env_vars={"PYTHONPATH": path})
    try:
        with pytest.raises(ConfigError, match=r"has wer 0\.0\.7, and this machine has \d"):
            drive(tmp_path / "run", config(runner_options={"resource": "old"}))
    finally:
        cluster.remove_node(node)


def test_an_executor_that_is_another_one_on_the_nodes_is_refused(config, tmp_path, monkeypatch):
    monkeypatch.setenv("WALKER_SHOES", "new")

    with pytest.raises(ConfigError, match=r"another one: .*'shoes': 'old'.* there, .*'shoes': 'new'"):
        drive(tmp_path / "run", config(runner_options=FIRST))


def test_keys_stay_here_unless_they_are_to_be_forwarded(config, tmp_path, monkeypatch):
    monkeypatch.setenv("WALKER_KEY", "sesame")

    with pytest.raises(ConfigError, match="WALKER_KEY is not set"):
        drive(tmp_path / "without", config(executor="keyed/a", runner_options=FIRST))
    forward = {**FIRST, "forward": ["WALKER_KEY"]}
    store = drive(tmp_path / "with", config(executor="keyed/a", runner_options=forward))

    assert store.count_rollouts() > 0
    assert not any(b"sesame" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_a_models_refusal_for_good_ends_the_run_as_it_does_here(config, tmp_path):
    with pytest.raises(ModelError, match=r"401: no such key \(on "):
        drive(tmp_path / "run", config(executor="refusing/a", runner_options=FIRST))


def test_a_cap_stops_what_was_not_sent_out_yet(config, tmp_path):
    with pytest.raises(BudgetExhausted, match="--max-tokens"):
        drive(tmp_path / "run", config(budget__max_tokens=600, concurrency=1, runner_options=FIRST))

    store = Store(tmp_path / "run" / "wer.sqlite")
    assert store.count_rollouts() == 5
    assert store.spend()["executor"].prompt_tokens == 500

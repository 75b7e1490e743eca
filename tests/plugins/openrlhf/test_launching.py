"""A launch that starts a Ray of its own takes all of it down again."""

import asyncio
from pathlib import Path

import pytest
from support.openrlhf_cpu import pretend_gpus, python, variables

from wer.errors import OptimizerError
from wer_openrlhf import processes
from wer_openrlhf.launching import Launch, Limits

pytestmark = [pytest.mark.openrlhf, pytest.mark.slow]

STARTS_RAY = """
import os, ray, time
ray.init(address="local", num_cpus=1, include_dashboard=False, object_store_memory=100 * 1024**2)

@ray.remote
class PPOTrainer:
    def speak(self):
        print("ready")

actor = PPOTrainer.remote()
ray.get(actor.speak.remote())
time.sleep(3600)
"""


JOINS_RAY = """
import ray, time
ray.init()
print("ready")
while True:
    ray.cluster_resources()
    time.sleep(0.5)
"""


async def test_a_cluster_that_loses_its_head_is_named_and_nothing_of_the_launch_is_left(tmp_path: Path):
    never = asyncio.get_running_loop().create_future()
    with pretend_gpus(1) as cluster:
        launch = Launch(
            command=[python(), "-u", "-c", JOINS_RAY],
            log=tmp_path / "log.txt",
            mark=str(tmp_path),
            on_line=lambda line: cluster.kill() if line.endswith("ready") else None,
            environ={
                **variables(),
                "RAY_ADDRESS": cluster.address,
                "RAY_gcs_rpc_server_reconnect_timeout_s": "3",
            },
        )

        with pytest.raises(OptimizerError, match=rf"head of the Ray cluster at {cluster.address} no longer"):
            await launch.run(limits=Limits(start_s=600, stall_s=600), seen=lambda: None, failed=never)

    assert processes.marked(str(tmp_path)) == []


async def test_a_ray_that_the_launch_started_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    ready = asyncio.Event()
    launch = Launch(
        command=[python(), "-u", "-c", STARTS_RAY],
        log=tmp_path / "log.txt",
        mark=str(tmp_path),
        on_line=lambda line: ready.set() if line.endswith("ready") else None,
        environ=variables(),
    )
    never = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(
        launch.run(limits=Limits(start_s=600, stall_s=600), seen=lambda: None, failed=never)
    )
    await asyncio.wait([task, asyncio.create_task(ready.wait())], return_when=asyncio.FIRST_COMPLETED)
    running = processes.marked(str(tmp_path))

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert launch.alive == {"PPOTrainer"}
    assert len(running) > 3  # the driver, the two servers of Ray, and the actor
    assert processes.marked(str(tmp_path)) == []

"""What would go wrong on a GPU is said before one is used, all at once, with its remedy."""

import asyncio
import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from support.openrlhf_cpu import make_policy, pretend_gpus, python, variables
from support.tiny_writer import setup

from wer.contracts import OptimizerSetup
from wer.errors import ConfigError
from wer.tables import structure
from wer_openrlhf import estimates, preflight
from wer_openrlhf.machine import Cluster, Machine, look
from wer_openrlhf.options import OpenRlhfOptions

GB = 10**9
PINNED = {
    **{name: version for name, (version, *_) in preflight.PINS.items()},
    "flash-attn": "2.8.3",
}
EIGHT = Machine(versions=PINNED, gpus=(80 * GB,) * 8)
WHOLE = {"gpus_per_node": 8, "engines": 8, "batch": 6, "minibatch": 2}


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_policy(tmp_path_factory.mktemp("models") / "policy")


def check(
    policy: Path | str,
    options: dict[str, Any],
    *,
    machine: Machine | None = EIGHT,
    folder: Path | None = None,
    batch: int = 6,
    prompts: int = 12,
    **changes: Any,
) -> None:
    chosen = structure(OpenRlhfOptions, options, where="optimizer.openrlhf")
    made: OptimizerSetup = setup(policy, **changes)
    asyncio.run(
        preflight.check(
            made,
            chosen,
            model=str(policy),
            prompts=prompts,
            batch=batch,
            folder=folder or Path.cwd(),
            machine=machine,
        )
    )


def test_the_papers_batch_on_eight_gpus_passes(policy: Path):
    check(policy, WHOLE)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lora_rank": 8}, "lora_rank is 8: with adapters OpenRLHF 0.11.2 fails at its first weight sync"),
        ({"minibatch": 4}, "a batch of 6 states is not whole minibatches of 4"),
        (
            {"minibatch": 3},
            "3 states x 4 candidates = 12, which 8 GPUs with micro_batch 1 cannot share evenly",
        ),
        ({"engines": 4}, "4 engines x tensor_parallel 1 = 4, and 1 nodes x gpus_per_node 8 = 8"),
        ({"sync_backend": "gloo"}, "Set colocate = false"),
        ({"attention": "sdpa", "packing": True}, "packing needs flash attention"),
        ({"colocate": False}, r"needs 16 GPUs \(1 x gpus_per_node 8 \+ 8 engines x tensor_parallel 1\)"),
        ({"nodes": 2, "engines": 16, "minibatch": 0, "batch": 8}, "no cluster is named"),
        ({"warmup": 0.5}, "the rate must rise within the first phase"),
        ({"extra": ["--reward.clip_range", "0", "1"]}, "deletes every negative advantage"),
    ],
)
def test_settings_that_are_known_to_break_are_refused_with_the_reason(
    policy: Path, options: dict[str, Any], message: str
):
    with pytest.raises(ConfigError, match=message):
        check(policy, {**WHOLE, **options}, phases=3)


def test_all_problems_are_told_at_once(tmp_path: Path):
    with pytest.raises(ConfigError) as refused:
        check(tmp_path, {**WHOLE, "lora_rank": 8}, machine=Machine(), prompts=13)

    said = str(refused.value)
    assert said.startswith("10 things stand in the way of OpenRLHF:\n- ")
    assert "13 prompts are not whole batches of 6" in said
    assert "no vllm, and WER was built with vllm 0.29.0" in said
    assert "has no flash-attn" in said
    assert "needs 8 GPUs (1 x gpus_per_node 8) and this machine has 0" in said
    assert f"no weights of the writer {str(tmp_path)!r}" in said


def test_another_version_than_the_pinned_one_is_named(policy: Path):
    newer = evolve(EIGHT, versions={**PINNED, "transformers": "5.20.0"})

    with pytest.raises(
        ConfigError, match=r"has transformers 5.20.0, and WER was built with transformers 5.15.0"
    ):
        check(policy, WHOLE, machine=newer)


def test_gpus_that_the_writer_was_not_given_do_not_count(policy: Path):
    with pytest.raises(ConfigError, match=r"needs 8 GPUs .* and gpus.writer names 4"):
        check(policy, WHOLE, gpus=(0, 1, 2, 3))


def test_gpus_that_are_not_there_are_named(policy: Path):
    with pytest.raises(ConfigError, match=r"gpus.writer names GPU 8 and this machine has GPUs 0-7"):
        check(policy, {**WHOLE, "gpus_per_node": 2, "engines": 2}, gpus=(7, 8))


def test_weights_that_do_not_fit_a_gpu_are_refused_with_the_figures(policy: Path):
    small = evolve(EIGHT, gpus=(10**5,) * 8)

    with pytest.raises(ConfigError, match=r"on each GPU .* 0 GB.*zero_stage = 3"):
        check(policy, WHOLE, machine=small)


def test_a_weight_file_that_was_cut_short_is_found(tmp_path: Path):
    folder = make_policy(tmp_path / "policy")
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])

    with pytest.raises(ConfigError, match=r"cannot be read: .* is cut short"):
        check(folder, WHOLE)


def test_a_model_that_is_not_in_the_hubs_cache_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(ConfigError, match="hf download nobody/nothing"):
        check("nobody/nothing", WHOLE)


def test_too_little_disk_is_refused_with_the_figures(
    policy: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr("wer_openrlhf.weights.disk_bytes", lambda weights: 10**18)

    with pytest.raises(ConfigError, match=r"needs 1000000000 GB of disk.*put --runs on another disk"):
        check(policy, WHOLE, folder=tmp_path / "not" / "yet")


def test_a_port_that_another_program_has_is_refused(policy: Path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]

        with pytest.raises(ConfigError, match=f"port {port} cannot be had on 127.0.0.1"):
            check(policy, {**WHOLE, "port": port})


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        (Cluster(gpus=(("a", 8),), free=8, here="a"), ""),
        (Cluster(gpus=(("a", 8),), free=3, here="a"), "of the 8 of the cluster at a:1 3 are free"),
        (
            Cluster(gpus=(("a", 4), ("b", 4)), free=8, here="a"),
            "asks for 1 nodes of 8 GPUs.* has 0 of that size",
        ),
        (
            Cluster(gpus=(("a", 0), ("b", 8)), free=8, here="a"),
            "GPUs on b, which cannot reach this machine's loop",
        ),
        (None, "no Ray cluster answers at a:1: refused"),
    ],
)
def test_a_cluster_is_counted_node_by_node(policy: Path, cluster: Cluster | None, message: str):
    machine = Machine(versions=PINNED, cluster=cluster, trouble="refused")
    if not message:
        check(policy, WHOLE, machine=machine, ray_address="a:1")
        return

    with pytest.raises(ConfigError, match=message):
        check(policy, WHOLE, machine=machine, ray_address="a:1")


def test_a_python_without_openrlhf_is_told_apart_from_one_that_does_not_start(policy: Path, tmp_path: Path):
    with pytest.raises(ConfigError, match="has no openrlhf"):
        check(policy, {**WHOLE, "python": sys.executable}, machine=None)
    with pytest.raises(ConfigError, match="does not start"):
        check(policy, {**WHOLE, "python": str(tmp_path / "nothing")}, machine=None)


@pytest.mark.parametrize("program", ["/bin/true", "/bin/false", "/bin/echo", "/bin/cat", "/", "/etc/passwd"])
def test_a_program_that_is_no_python_is_refused_and_not_believed(policy: Path, program: str):
    with pytest.raises(
        ConfigError, match=rf"optimizer.openrlhf.python, '{program}', does not (answer|start)"
    ):
        asyncio.run(look(program, ""))


@pytest.mark.parametrize("address", ["foo", ":1", "ray://127.0.0.1:1", "127.0.0.1:1", "127.0.0.1:99999999"])
def test_a_cluster_that_is_none_is_told_at_once(policy: Path, address: str):
    found = asyncio.run(look(sys.executable, address))

    assert found.cluster is None and found.trouble


async def test_a_probe_that_nobody_waits_for_any_more_is_ended(tmp_path: Path):
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\necho $$ > {tmp_path / 'pid'}\nexec sleep 3600\n")
    program.chmod(0o755)
    task = asyncio.create_task(look(str(program), ""))
    for _ in range(600):
        if (tmp_path / "pid").is_file() and (tmp_path / "pid").read_text():
            break
        await asyncio.sleep(0.05)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_python_that_never_answers_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("wer_openrlhf.machine._TIMEOUT_S", 0.5)
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nexec sleep 3600\n")
    program.chmod(0o755)

    with pytest.raises(ConfigError, match=r"gave no answer in 0 s while it asked the Ray cluster at h:1"):
        asyncio.run(look(str(program), "h:1"))


def test_a_ray_that_would_be_joined_unasked_is_named_with_both_remedies(policy: Path):
    busy = evolve(EIGHT, running="10.0.0.9:6379")

    with pytest.raises(ConfigError, match=r"--ray-address 10\.0\.0\.9:6379, or end it with `ray stop`"):
        check(policy, WHOLE, machine=busy)


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ("0.0.0.0", "every machine's name for itself"),
        ("192.0.2.1", r"'192\.0\.2\.1' is no IPv4 address of this machine"),
        ("no-such-machine.invalid", "is no IPv4 address of this machine"),
        ("::1", "is no IPv4 address of this machine"),
    ],
)
def test_a_host_under_which_nobody_reaches_this_machine_is_refused(policy: Path, host: str, message: str):
    with pytest.raises(ConfigError, match=message):
        check(policy, {**WHOLE, "host": host})


def test_weights_are_counted_without_reading_them(policy: Path):
    weights = estimates.parameters(policy)

    assert weights == 115_264
    assert (
        estimates.trainer_bytes(weights, OpenRlhfOptions(zero_stage=3, gpus_per_node=4)) == weights * 16 // 4
    )
    assert estimates.trainer_bytes(weights, OpenRlhfOptions(zero_stage=2)) == weights * 16
    assert estimates.disk_bytes(weights) == weights * 30


def test_logits_of_the_papers_lengths_fit_80_gb_without_the_entropy_and_not_with_it():
    tokens, vocabulary, weights = 23_096, 151_936, 4_022_468_096  # Qwen3-4B
    on_four = OpenRlhfOptions(gpus_per_node=4)

    static = estimates.trainer_bytes(weights, on_four)
    without = estimates.logits_bytes(tokens, vocabulary, evolve(on_four, log_entropy=False))

    assert static + without < 80 * GB < static + estimates.logits_bytes(tokens, vocabulary, on_four)


@pytest.mark.openrlhf
@pytest.mark.slow
def test_the_probe_finds_the_pinned_stack_and_a_clusters_gpus(monkeypatch: pytest.MonkeyPatch, policy: Path):
    for name, value in variables().items():
        monkeypatch.setenv(name, value)
    options = {
        "python": python(),
        "colocate": False,
        "sync_backend": "gloo",
        "attention": "sdpa",
        "minibatch": 2,
    }
    with pretend_gpus(2) as ray:
        found = asyncio.run(look(python(), ray.address))
        check(policy, options, machine=None, ray_address=ray.address)

    assert found.cluster is not None
    assert (found.cluster.free, [count for _, count in found.cluster.gpus]) == (2, [2])
    assert found.versions["openrlhf"] == "0.11.2"
    assert found.gpus == ()
    assert ray.processes() == []

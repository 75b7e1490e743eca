"""Whether there are the GPUs that a launch asks for, on this machine or in the cluster."""

from __future__ import annotations

from collections.abc import Iterator

from wer.contracts import OptimizerSetup
from wer.gpus import check_present
from wer_openrlhf.machine import Cluster, Machine
from wer_openrlhf.options import OpenRlhfOptions


def problems(
    setup: OptimizerSetup, options: OpenRlhfOptions, machine: Machine, address: str
) -> Iterator[str]:
    """Say what is missing, a line each.

    Args:
        address: Of the Ray cluster to join; empty for this machine alone.
    """
    trained = options.nodes * options.gpus_per_node
    written = 0 if options.colocate else options.engines * options.tensor_parallel
    need = trained + written
    said = f"{options.nodes} x gpus_per_node {options.gpus_per_node}" + (
        f" + {options.engines} engines x tensor_parallel {options.tensor_parallel}" if written else ""
    )
    if address:
        yield from _cluster(options, machine.cluster, machine.trouble, address, need, said)
        return
    if machine.running:
        yield (
            f"a Ray runs on this machine at {machine.running}, or has left a note of it, and OpenRLHF would join it "
            f"unasked. Name it with --ray-address {machine.running}, or end it with `ray stop`."
        )
    if options.nodes > 1:
        yield (
            f"optimizer.openrlhf.nodes is {options.nodes}, and no cluster is named. Start Ray on the machines and "
            "give --ray-address HOST:PORT."
        )
    if setup.gpus:
        yield from check_present({"writer": ",".join(map(str, setup.gpus))}, len(machine.gpus))
    have = len(setup.gpus) if setup.gpus else len(machine.gpus)
    if have < need:
        whose = f"gpus.writer names {have}" if setup.gpus else f"this machine has {have}"
        yield (
            f"OpenRLHF needs {need} GPUs ({said}) and {whose}. Change optimizer.openrlhf.gpus_per_node, engines or "
            "colocate, or the writer's GPUs with --gpus."
        )


def _cluster(
    options: OpenRlhfOptions, cluster: Cluster | None, trouble: str, address: str, need: int, said: str
) -> Iterator[str]:
    if cluster is None:
        yield f"no Ray cluster answers at {address}: {trouble}. Check --ray-address, and `ray status` there."
        return
    total = sum(count for _, count in cluster.gpus)
    if cluster.free < need:
        yield (
            f"OpenRLHF needs {need} GPUs ({said}), and of the {total} of the cluster at {address} {cluster.free} "
            "are free. Add nodes, or lower optimizer.openrlhf.gpus_per_node or engines."
        )
    large = [host for host, count in cluster.gpus if count >= options.gpus_per_node]
    if len(large) < options.nodes:
        yield (
            f"optimizer.openrlhf asks for {options.nodes} nodes of {options.gpus_per_node} GPUs, and the cluster at "
            f"{address} has {len(large)} of that size."
        )
    elsewhere = [host for host, count in cluster.gpus if count and host != cluster.here]
    if elsewhere and not options.host:
        yield (
            f"the cluster has GPUs on {', '.join(elsewhere)}, which cannot reach this machine's loopback. Set "
            f"optimizer.openrlhf.host to an address of this machine that they reach, such as {cluster.here}."
        )

"""What a user may say about the cluster's workers."""

from __future__ import annotations

from attrs import field, frozen
from attrs.validators import ge


@frozen(kw_only=True)
class RayOptions:
    """``[runner_options]`` of ``runner = "ray"``.

    Attributes:
        workers_per_node: Actors a node; each has its own executor and sandbox pools. More
            than one helps where an executor computes in its own process.
        cpus: CPU cores that Ray reserves for each actor; 0 only lets it run.
        gpus: GPUs that Ray reserves for each actor, for an executor that computes there.
        resource: Only nodes that have this custom resource work, as started with
            ``ray start --resources '{"NAME": 1}'``; empty is every node.
        forward: Names of environment variables, such as API keys, that are sent to the
            workers. Without it each worker has those that its node's Ray was started with.
        start_timeout_s: Seconds for a worker to open its executor and sandbox.
    """

    workers_per_node: int = field(default=1, validator=ge(1))
    cpus: float = field(default=0.0, validator=ge(0))
    gpus: float = field(default=0.0, validator=ge(0))
    resource: str = ""
    forward: tuple[str, ...] = ()
    start_timeout_s: float = field(default=600.0, validator=ge(1))

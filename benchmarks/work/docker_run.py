"""A container an episode, the way without a pool: from `docker run` to a domain that is ready, and no call yet."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from concurrent.futures import ThreadPoolExecutor

from child import answer, asked, wall_s

from wer import plugins


async def _image() -> str:
    """The image that the sandbox builds, or has built before."""
    found = plugins.load()
    pool = await found.sandboxes.make("docker").start(found.environments.make("bfcl", {}).sandbox(""), 1)
    with contextlib.closing(_docker()) as client:
        import os

        [container] = client.containers.list(filters={"label": f"wer.pid={os.getpid()}"})
        image = str(container.attrs["Config"]["Image"])
        python = str(container.attrs["Config"]["Entrypoint"][0])
    await pool.close()
    return f"{python} {image}"


def _docker():
    import docker

    return docker.from_env()


def main() -> None:
    """Run as many as told, so many at a time."""
    python, image = asyncio.run(_image()).split()
    limits = ["--network", "none", "--read-only", "--cap-drop", "ALL", "--user", "65534:65534"]
    ready = "import wer_bfcl_domain; wer_bfcl_domain.domain()"
    command = ["docker", "run", "--rm", "--log-driver", "none", *limits, "--entrypoint", python, image]

    def once(_: int) -> None:
        subprocess.run([*command, "-c", ready], check=True, capture_output=True)

    began = wall_s()
    with ThreadPoolExecutor(asked("concurrency")) as pool:
        list(pool.map(once, range(asked("episodes"))))
    answer(rate=asked("episodes") / (wall_s() - began))


if __name__ == "__main__":
    main()

"""What is particular to the docker tier."""

import asyncio
import contextlib
import socket
import time

import pytest
from support import census, tiers

import wer_docker
from wer.errors import SandboxError
from wer_docker import daemon, labels


def docker_sandbox():
    return wer_docker.wer_sandboxes()["docker"]()


@pytest.mark.docker
def test_a_daemon_that_answers_is_available():
    assert docker_sandbox().unavailable() is None


def test_a_daemon_that_is_not_there_is_named_with_the_remedy(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")

    assert "systemctl start docker" in docker_sandbox().unavailable()


def test_a_daemon_that_never_answers_is_given_up_soon(monkeypatch, tmp_path):
    silent = tmp_path / "silent.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{silent}")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(silent))
        listening.listen()

        problem = docker_sandbox().unavailable()

    assert f"no Docker daemon answers at unix://{silent}" in problem


def test_a_daemon_that_refuses_this_user_is_told_so_with_the_remedy(monkeypatch):
    def refuse() -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(daemon, "knock", refuse)

    assert "sudo usermod -aG docker" in docker_sandbox().unavailable()


async def test_a_daemon_that_is_too_old_is_told_so(monkeypatch, tmp_path):
    body = b'{"ApiVersion": "1.40"}'
    answer = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    )

    async def serve(reader, writer):
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(answer)
        writer.close()

    server = await asyncio.start_unix_server(serve, str(tmp_path / "old.sock"))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/old.sock")

    problem = await asyncio.to_thread(docker_sandbox().unavailable)

    assert "speaks API 1.40, WER needs 1.41" in problem
    server.close()


@pytest.mark.parametrize("host", ["tcp://192.0.2.1:2375", "ssh://somewhere"])
def test_a_daemon_elsewhere_is_refused_since_the_socket_is_here(monkeypatch, host):
    monkeypatch.setenv("DOCKER_HOST", host)

    assert "a daemon on this machine" in docker_sandbox().unavailable()


async def test_starting_without_a_daemon_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")

    with pytest.raises(SandboxError, match="--sandbox process") as refused:
        await docker_sandbox().start(tiers.spec(), 1)

    assert refused.value.cause == "start"


def test_containers_of_the_living_and_of_unknown_owners_are_kept_until_their_deadline():
    mine = labels.mine()
    elsewhere = mine | {"wer.pidspace": "pid:[1]"}

    assert labels.abandoned(mine) is None
    assert labels.abandoned(elsewhere) is None
    assert labels.abandoned(elsewhere | {"wer.deadline": str(int(time.time()) - 1)}) == "past its deadline"
    assert "has ended" in labels.abandoned(mine | {"wer.pidstart": "1"})
    assert labels.abandoned(mine | {"wer.deadline": "1"}) is None, "a clock that jumped kills nobody"


@pytest.mark.docker
async def test_a_container_removed_during_a_call_is_dead_and_replaced():
    async with tiers.pool("docker") as pool:
        waiting = asyncio.create_task((await pool.lease()).request("hang", {}))
        await asyncio.sleep(0.3)
        for container in census.containers():
            container.remove(force=True)

        with pytest.raises(SandboxError, match="removed from outside") as met:
            await waiting

        assert met.value.cause == "dead"
        episode = await pool.lease()
        assert await episode.request("count", {}) == 1


@pytest.mark.docker
async def test_memory_beyond_the_containers_limit_kills_the_episode_and_not_the_worker():
    async with tiers.pool("docker", memory_bytes=128 << 20, episode_memory_bytes=1 << 30) as pool:
        survivor = await pool.lease()
        await survivor.request("count", {})

        with pytest.raises(SandboxError) as met:
            await (await pool.lease()).request("fill_memory", {"wanted_mb": 512})

        assert met.value.cause == "out_of_memory"
        assert await survivor.request("count", {}) == 2


@pytest.mark.docker
async def test_a_container_is_locked_down():
    async with tiers.pool("docker"):
        (container,) = census.containers()
        settings = container.attrs["HostConfig"]

    assert settings["NetworkMode"] == "none"
    assert settings["ReadonlyRootfs"] is True
    assert settings["CapDrop"] == ["ALL"]
    assert "no-new-privileges" in settings["SecurityOpt"]
    assert settings["Memory"] == settings["MemorySwap"] == tiers.spec().memory_bytes
    assert settings["PidsLimit"] == tiers.spec().pids
    assert settings["Init"] is True
    assert [mount["RW"] for mount in container.attrs["Mounts"]] == [False]
    assert container.attrs["Config"]["User"] == "65534:65534"
    assert settings["LogConfig"]["Config"]["max-size"] == "1m"


@pytest.mark.docker
async def test_two_starts_of_one_spec_build_one_image():
    async with tiers.pool("docker"):
        (first,) = census.containers()
    async with tiers.pool("docker"):
        (second,) = census.containers()

    assert first.attrs["Image"] == second.attrs["Image"]


@pytest.mark.docker
def test_the_base_from_this_machines_python_can_import_all_that_domains_use(tmp_path):
    import docker

    from wer_docker import hostpython, images

    client = docker.from_env()
    try:
        tag = images.base_from_this_machine(client)
        code = "import ctypes, ssl, sqlite3, decimal, zoneinfo, lzma, hashlib, json; print('whole')"
        said = client.containers.run(
            tag,
            [str(hostpython.interpreter()), "-c", code],
            remove=True,
            network_mode="none",
            user="65534:65534",
        )
    finally:
        client.close()

    assert said == b"whole\n"

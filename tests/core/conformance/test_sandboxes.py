"""Sandboxes that hold nothing are told of it; the shipped ones keep every rule."""

import pytest
from support.counting import MemoryEpisode, MemorySandbox
from support.offering import offering

from wer import plugins
from wer.conformance import Settings, check_part


class Open(MemorySandbox):
    """Refuses nothing."""

    async def start(self, spec, workers):
        pool = await super().start(spec, workers)
        pool.lease = self.lease
        return pool

    async def lease(self):
        return OpenEpisode()


class OpenEpisode(MemoryEpisode):
    async def request(self, method, params, *, timeout_s=None):
        if method == "wer_limits":
            return {"write a file": "", "start a process": "EPERM"}
        return await super().request("up", params)


@pytest.mark.parametrize("name", ["process", pytest.param("docker", marks=pytest.mark.docker)])
async def test_the_shipped_sandboxes_pass_every_check(name):
    listed = await check_part("sandbox", name, plugins.load(), Settings())

    assert {finding.status for finding in listed} == {"ok"}, listed


async def test_a_sandbox_that_isolates_nothing_is_found_out():
    listed = await check_part(
        "sandbox", "open", plugins.load(extra=[offering("wer_sandboxes", open=Open)]), Settings()
    )

    failed = {finding.sentence: finding for finding in listed if finding.status == "failed"}
    assert (
        failed["an episode can't write, connect or start a process"].detail == "an episode could write a file"
    )
    assert "wer_raise ended with 'an answer'" in " ".join(finding.detail for finding in failed.values())
    assert "a domain that can't be imported was started" in " ".join(
        finding.detail for finding in failed.values()
    )


async def test_a_sandbox_that_does_not_work_here_says_why():
    class Absent(MemorySandbox):
        def unavailable(self):
            return "no daemon answers. Start it."

    listed = await check_part(
        "sandbox", "absent", plugins.load(extra=[offering("wer_sandboxes", absent=Absent)]), Settings()
    )

    assert {finding.status for finding in listed} == {"not applicable"}
    assert "no daemon answers" in listed[0].detail

"""The real benchmark in the real process sandbox."""

import pytest

import wer_bfcl
import wer_process
from wer import wheels
from wer_bfcl import benchmark


@pytest.fixture
def bfcl():
    return wer_bfcl.wer_environments()["bfcl"]({})


@pytest.fixture
def bfcl_prefix():
    return wer_bfcl.wer_environments()["bfcl"]({"max_turns": 1})


@pytest.fixture(scope="session")
def bfcl_wheels():
    return wheels.fetch(benchmark.REQUIREMENTS)


@pytest.fixture
async def bfcl_pool(bfcl):
    sandbox = wer_process.wer_sandboxes()["process"]()
    pool = await sandbox.start(bfcl.sandbox("file_system"), workers=1)
    yield pool
    await pool.close()

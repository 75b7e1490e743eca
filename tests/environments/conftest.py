"""The real benchmarks in the real process sandbox."""

import pytest

import wer_bfcl
import wer_process
import wer_tau2
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


@pytest.fixture
def tau2():
    return wer_tau2.wer_environments()["tau2"]({})


@pytest.fixture
async def tau2_pool(tau2):
    sandbox = wer_process.wer_sandboxes()["process"]()
    pool = await sandbox.start(tau2.sandbox("airline"), workers=1)
    yield pool
    await pool.close()

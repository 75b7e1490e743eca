"""Helper scripts in the sandbox: what they return, and what becomes of those that misbehave."""

import json
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
from attrs import evolve
from support import tiers

from wer.records import ToolCall
from wer.scripts import SCRIPTS, read_script, run_script, try_script

FORGING = 'import os, time\nos.write(3, b\'{"id": 1, "result": 5}\\n\')\ntime.sleep(9)'

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module", params=tiers.ALL)
async def pool(request):
    async with opened(request.param, call_timeout_s=120.0) as started:
        yield started


@asynccontextmanager
async def opened(tier, **changes):
    with tiers.path_of(tier):
        started = await tiers.sandbox(tier).start(evolve(SCRIPTS, **changes), 1)
        yield started
        await started.close()


def script(body, parameters=""):
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return read_script("scripts/helper.py", f'def helper({parameters}) -> object:\n    "Help."\n{lines}\n')


async def run(pool, body, parameters="", **arguments):
    call = ToolCall(name="script_helper", arguments=arguments)
    return await run_script(pool, script(body, parameters), call)


async def test_a_script_answers_with_text_or_json(pool):
    text = await run(pool, "return name.upper()", "name: str", name="ada")
    data = await run(pool, "return {'sum': a + b}", "a: int, b: int = 2", a=1)

    assert (text.text, text.ok) == ("ADA", True)
    assert (json.loads(data.text), data.ok) == ({"sum": 3}, True)


async def test_no_call_knows_of_an_earlier_one(pool):
    body = "import json\nseen = getattr(json, 'seen', 0)\njson.seen = seen + 1\nreturn seen"

    assert [(await run(pool, body)).text for _ in range(2)] == ["0", "0"]


@pytest.mark.parametrize(
    ("body", "parameters", "arguments", "reason"),
    [
        ("return 1 / 0", "", {}, "ZeroDivisionError"),
        ("return n", "n: int", {"n": "x"}, "n must be an integer"),
        ("return n", "n: int", {}, "'n' is missing"),
        ("return {1, 2}", "", {}, "not JSON serializable"),
        ("return 'x' * 1000000", "", {}, "at most 20000"),
        ("raise SystemExit(3)", "", {}, "SystemExit: 3"),
        pytest.param("while True: pass", "", {}, "more than 2 seconds", marks=pytest.mark.slow),
        pytest.param("while True: print('x' * 10000)", "", {}, "more than 2 seconds", marks=pytest.mark.slow),
        ("import os\nos._exit(0)", "", {}, "the episode died"),
        ("open('/tmp/left', 'w')", "", {}, "Error: "),
        ("return open('/etc/passwd').read()", "", {}, "Error: "),
        ("import socket\nsocket.create_connection(('127.0.0.1', 9), 1)", "", {}, "Error: "),
        ("import subprocess\nreturn subprocess.run(['ls']).returncode", "", {}, "Error: "),
        ("return bytearray(1 << 30)", "", {}, "MemoryError"),
        (
            'import os\nos.write(3, b\'{"id": 1, "result": 5}\\n\')\nimport time\ntime.sleep(9)',
            "",
            {},
            "something else",
        ),
    ],
)
async def test_what_a_script_does_wrong_is_an_observation_with_a_reason(
    pool, body, parameters, arguments, reason
):
    seen = await run(pool, body, parameters, **arguments)

    assert not seen.ok
    assert reason in seen.text


async def test_a_script_that_sleeps_for_ever_is_ended():
    async with opened("process", call_timeout_s=1.0) as hasty:
        seen = await run(hasty, "import time\ntime.sleep(3600)")

    assert not seen.ok
    assert "gave no answer in 1 s" in seen.text


@pytest.mark.slow
async def test_a_script_that_swallows_the_interruption_is_ended(pool):
    seen = await run(pool, "while True:\n    try:\n        sum(range(10**6))\n    except BaseException: pass")

    assert not seen.ok
    assert "the episode died" in seen.text


async def test_tests_find_the_script_under_its_name_and_as_a_module(pool):
    source = 'def double(n: int) -> int:\n    "Double."\n    return 2 * n'

    assert await try_script(pool, "double", source, "assert double(2) == 4") == ""
    assert await try_script(pool, "double", source, "import double as d\nassert d.double(2) == 4") == ""


async def test_a_failing_test_is_quoted(pool):
    source = 'def double(n: int) -> int:\n    "Double."\n    return n'

    problem = await try_script(pool, "double", source, "x = 2\nassert double(x) == 4")

    assert problem == "Error: AssertionError:  in line 2 of the tests: assert double(x) == 4"

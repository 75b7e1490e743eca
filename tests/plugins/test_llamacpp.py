"""Local models: names and errors without a model, behaviour with a real one."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time

import pytest

from wer import catalogue
from wer.contracts import ModelSetup
from wer.errors import ConfigError, ModelError, PromptTooLong, WerError
from wer.records import Message, Sampling, ToolSpec
from wer_llamacpp import wer_models
from wer_llamacpp.naming import LocalName

NAME = "qwen2.5-coder-0.5b"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def said(text):
    return (Message(role="system", content="You are terse."), Message(role="user", content=text))


@pytest.fixture(scope="module")
def model():
    """One real model for all tests of this module."""
    model = wer_models()["local"](ModelSetup(name=f"{NAME}?context=1024&instances=2"))
    yield model
    asyncio.run(model.close())


def test_a_name_takes_context_and_instances():
    name = LocalName.parse("m?context=1024&instances=3")

    assert (name.name, name.options.context, name.instances) == ("m", 1024, 3)


@pytest.mark.parametrize("query", ["contxt=1", "context=many", "context=-1", "context=1", "context"])
def test_an_option_that_is_none_is_a_configuration_error(query):
    with pytest.raises(ConfigError, match="local/m"):
        LocalName.parse(f"m?{query}")


def test_a_path_without_a_file_is_a_configuration_error():
    with pytest.raises(ConfigError, match=r"no file '/nowhere/m\.gguf'"):
        wer_models()["local"](ModelSetup(name="/nowhere/m.gguf"))


def test_an_unknown_name_is_a_configuration_error():
    with pytest.raises(ConfigError, match="no model named"):
        wer_models()["local"](ModelSetup(name="qwen-0.5b"))


def test_a_file_that_is_no_model_is_an_error_that_says_so(tmp_path):
    path = tmp_path / "m.gguf"
    path.write_bytes(b"not a model")

    with pytest.raises(ModelError, match="Check that it is a GGUF file"):
        wer_models()["local"](ModelSetup(name=str(path)))


def test_without_xllamacpp_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    path = tmp_path / "m.gguf"
    path.write_bytes(b"")

    with pytest.raises(WerError, match=r"pip install 'wer-skills\[local\]'"):
        wer_models()["local"](ModelSetup(name=str(path)))


@pytest.mark.llm
def test_identity_is_the_files_content(model):
    assert model.identity["sha256"] == catalogue.find(NAME).sha256


@pytest.mark.llm
async def test_a_schema_constrains_the_reply(model):
    reply = await model.complete(
        said("Where is the Colosseum?"), (), Sampling(json_schema=SCHEMA, max_tokens=40)
    )

    assert set(json.loads(reply.text)) == {"city"}
    assert reply.usage.completion_tokens > 0
    assert reply.usage.usd == 0.0


@pytest.mark.llm
async def test_greedy_replies_repeat_and_their_prompt_stays_cached(model):
    asked = said("Name three colours.")
    sampling = Sampling(temperature=0.0, max_tokens=12)

    first = await model.complete(asked, (), sampling)
    second = await model.complete(asked, (), sampling)

    assert second.text == first.text
    assert second.usage.cached_tokens == second.usage.prompt_tokens - 1


@pytest.mark.llm
async def test_the_seed_decides_a_sampled_reply_when_the_cache_is_as_it_was(model):
    asked = said("Invent a name for a cat.")
    seeds = (1, 1, 2, 3, 4)
    await model.complete(asked, (), Sampling(max_tokens=1))

    texts = [
        (await model.complete(asked, (), Sampling(temperature=1.5, seed=s, max_tokens=8))).text for s in seeds
    ]

    assert texts[0] == texts[1]
    assert len(set(texts)) > 1


@pytest.mark.llm
async def test_top_k_of_one_is_greedy(model):
    asked = said("Name a fruit.")

    greedy = await model.complete(asked, (), Sampling(temperature=0.0, max_tokens=8))
    narrow = await model.complete(asked, (), Sampling(temperature=2.0, top_k=1, seed=9, max_tokens=8))

    assert narrow.text == greedy.text


@pytest.mark.llm
async def test_a_reply_that_reaches_its_limit_says_so(model):
    reply = await model.complete(said("Count to a hundred."), (), Sampling(max_tokens=5))

    assert reply.finish == "length"
    assert reply.usage.completion_tokens == 5


@pytest.mark.llm
async def test_tools_reach_the_model(model):
    tool = ToolSpec(name="weather_station", description="Read a weather station.", parameters=SCHEMA)

    bare = await model.complete(said("Hi"), (), Sampling(max_tokens=1))
    tooled = await model.complete(said("Hi"), (tool,), Sampling(max_tokens=1))

    assert tooled.usage.prompt_tokens > bare.usage.prompt_tokens + 50


@pytest.mark.llm
async def test_a_prompt_that_does_not_fit_is_refused_and_not_cut(model):
    with pytest.raises(PromptTooLong, match=r"context of 1024.*context=2048"):
        await model.complete(said("word " * 1100), (), Sampling())


@pytest.mark.llm
async def test_a_schema_that_is_none_is_an_error_for_good(model):
    with pytest.raises(ModelError, match="refused the request"):
        await model.complete(said("Hi"), (), Sampling(json_schema={"type": "nonsense"}))


@pytest.mark.llm
async def test_the_event_loop_goes_on_while_the_model_works(model):
    work = asyncio.create_task(model.complete(said("Count to ten."), (), Sampling(max_tokens=20)))
    ticks = 0

    while not work.done():
        await asyncio.sleep(0.005)
        ticks += 1

    assert ticks > 10


@pytest.mark.llm
async def test_a_cancelled_call_frees_its_instance():
    model = wer_models()["local"](ModelSetup(name=f"{NAME}?context=1024&instances=1"))
    endless = asyncio.create_task(model.complete(said("Count to 1000."), (), Sampling(max_tokens=900)))
    await asyncio.sleep(0.5)

    endless.cancel()
    with pytest.raises(asyncio.CancelledError):
        await endless
    reply = await model.complete(said("Hi"), (), Sampling(max_tokens=2))

    assert reply.usage.completion_tokens <= 2
    await model.close()


@pytest.mark.llm
async def test_closing_ends_what_runs_with_an_error_and_can_be_repeated():
    model = wer_models()["local"](ModelSetup(name=f"{NAME}?context=1024&instances=1"))
    endless = asyncio.create_task(model.complete(said("Count to 1000."), (), Sampling(max_tokens=900)))
    await asyncio.sleep(0.5)

    await model.close()
    await model.close()

    with pytest.raises(ModelError, match="closed"):
        await endless


@pytest.mark.llm
@pytest.mark.slow
def test_a_process_that_forgets_to_close_ends_by_itself_and_prints_nothing():
    program = (
        "import asyncio, wer_llamacpp\n"
        "from wer.contracts import ModelSetup\n"
        "from wer.records import Message, Sampling\n"
        f"model = wer_llamacpp.wer_models()['local'](ModelSetup(name='{NAME}?context=512'))\n"
        "hi = (Message(role='user', content='Hi'),)\n"
        "asyncio.run(model.complete(hi, (), Sampling(max_tokens=2)))\n"
    )

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


@pytest.mark.llm
@pytest.mark.slow
def test_an_interrupted_process_ends_by_itself():
    program = (
        "import asyncio, wer_llamacpp\n"
        "from wer.contracts import ModelSetup\n"
        "from wer.records import Message, Sampling\n"
        f"model = wer_llamacpp.wer_models()['local'](ModelSetup(name='{NAME}?context=2048'))\n"
        "hi = (Message(role='user', content='Count to 1000.'),)\n"
        "print('ready', flush=True)\n"
        "asyncio.run(model.complete(hi, (), Sampling(max_tokens=2000)))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline() == b"ready\n"
    time.sleep(1.0)

    process.send_signal(2)
    _, stderr = process.communicate(timeout=60)

    assert process.returncode in {-2, 1, 130}
    assert b"KeyboardInterrupt" in stderr

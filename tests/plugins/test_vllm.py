"""vLLM as a provider, with a program in its place that dies, hangs and leaves processes behind on demand."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import counting
from support.fake_vllm import TESTS, FakeVllm
from support.mock_openai import MockOpenAI, fails, says
from support.perform import configured, perform

from wer import plugins
from wer.contracts import ModelSetup
from wer.errors import ConfigError, ModelError, ModelUnavailable, PromptTooLong
from wer.loop.checking import check_names
from wer.records import Message, Sampling, ToolSpec
from wer_vllm import families, wer_models
from wer_vllm.causes import likely_cause
from wer_vllm.leftovers import notes_folder, reap

HELLO = (Message(role="user", content="hello"),)
LS = ToolSpec(name="ls", description="List.", parameters={"type": "object", "properties": {}})


@pytest.fixture(autouse=True)
def private_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WER_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def vllm(tmp_path, monkeypatch):
    fake = FakeVllm.install(tmp_path)
    monkeypatch.setenv("WER_VLLM", str(fake.path))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-users-own")
    yield fake
    assert fake.processes() == []


def opened(name="Qwen/tiny", **setup):
    return wer_models()["vllm"](ModelSetup(name=name, **setup))


async def ask(model, *, tools=(), **sampling):
    return await model.complete(HELLO, tools, Sampling(**sampling))


def flags(start):
    """The command line as a table: a flag's value, or the next flag's absence as None."""
    words = start["argv"]
    following = [*words[1:], "--"]
    pairs = zip(words, following, strict=True)
    return {word: None if after.startswith("--") else after for word, after in pairs if word.startswith("--")}


def gone(fake, seconds=30):
    """Wait until no process of the fake is left."""
    for _ in range(seconds * 20):
        if not fake.processes():
            return True
        time.sleep(0.05)
    return False


async def test_a_server_is_started_asked_and_stopped_with_all_its_processes(vllm, tmp_path):
    said = []
    model = opened(folder=tmp_path / "logs", say=said.append)

    await model.ready()
    reply = await ask(model)
    await model.close()

    assert reply.text.startswith("<think>") and reply.usage.usd == 0.0
    assert vllm.processes() == []
    assert "loading" in (tmp_path / "logs" / "vllm-Qwen-tiny.log").read_text()
    assert [line.partition(" after")[0] for line in said][-1] == "vllm/Qwen/tiny is ready"


async def test_a_server_listens_on_loopback_and_shares_prefixes(vllm):
    model = opened("Qwen/tiny?context=4096&memory=45&revision=v2&eager=1")

    await ask(model)
    await model.close()

    told = flags(vllm.starts()[0])
    assert vllm.starts()[0]["argv"][:2] == ["serve", "Qwen/tiny"]
    assert (told["--host"], told["--max-model-len"], told["--gpu-memory-utilization"]) == (
        "127.0.0.1",
        "4096",
        "0.45",
    )
    assert (told["--tool-call-parser"], told["--revision"]) == ("hermes", "v2")
    assert {"--enable-prefix-caching", "--enforce-eager", "--enable-auto-tool-choice"} <= told.keys()


async def test_a_request_leaves_nothing_of_the_sampling_to_the_models_own_configuration(vllm):
    model = opened("Qwen/tiny?thinking=off")

    await ask(model, temperature=0.5, seed=3, max_tokens=7, json_schema={"type": "object"})
    await ask(model, top_k=9, top_p=0.5, tools=(LS,))
    await model.close()

    first, second = vllm.requests()
    assert (first["top_p"], first["top_k"], first["min_p"], first["repetition_penalty"]) == (1.0, 0, 0.0, 1.0)
    assert (first["temperature"], first["seed"], first["max_tokens"]) == (0.5, 3, 7)
    assert first["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert first["chat_template_kwargs"] == {"enable_thinking": False}
    assert (second["top_p"], second["top_k"], second["tools"][0]["function"]["name"]) == (0.5, 9, "ls")
    assert flags(vllm.starts()[0])["--generation-config"] == "vllm"


async def test_the_key_is_in_the_servers_environment_and_nowhere_else(vllm, tmp_path):
    model = opened(folder=tmp_path / "logs")

    await ask(model)
    start = vllm.starts()[0]
    notes = [path.read_text() for path in notes_folder().iterdir()]
    await model.close()

    key = start["environ"]["VLLM_API_KEY"]
    assert len(key) > 30 and "OPENAI_API_KEY" not in start["environ"]
    shown = [*start["argv"], *notes, repr(model), str(model.identity), *_texts(tmp_path / "logs")]
    assert len(notes) == 1 and not any(key in text for text in shown)


async def test_gpus_of_the_role_are_the_only_ones_that_the_server_sees(vllm):
    model = opened("Qwen/tiny?data=2", gpus=(4, 5, 6, 7))

    await ask(model)
    await model.close()

    start = vllm.starts()[0]
    assert start["environ"]["CUDA_VISIBLE_DEVICES"] == "4,5,6,7"
    assert (flags(start)["--tensor-parallel-size"], flags(start)["--data-parallel-size"]) == ("2", "2")


def test_gpus_that_cannot_be_divided_as_asked_are_refused_before_anything_starts(vllm):
    with pytest.raises(ConfigError, match="tensor times data"):
        opened("Qwen/tiny?tensor=3", gpus=(0, 1))

    assert vllm.starts() == []


async def test_a_server_that_dies_at_its_start_says_why(vllm):
    vllm.orders.write_text("die ValueError: Free memory on device (1/80 GiB) on startup is less than desired")
    model = opened()

    with pytest.raises(
        ModelError, match=r"did not start: out of memory.*\n.*\nValueError: Free memory"
    ) as it:
        await model.ready()
    with pytest.raises(ModelError):
        await ask(model)
    await model.close()

    assert not isinstance(it.value, ModelUnavailable)
    assert len(vllm.starts()) == 1


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried", "out of memory"),
        (
            "ValueError: max seq len (32768) is larger than the maximum number of tokens",
            "context does not fit",
        ),
        ("OSError: Qwen/Qwen9 is not a local folder and is not a valid model identifier", "no such model"),
        ("huggingface_hub.errors.GatedRepoError: 401", "gated"),
        ("OSError: [Errno 98] Address already in use", "took its port"),
        ("RuntimeError: No CUDA GPUs are available", "not there"),
        ("importlib.metadata.PackageNotFoundError: No package metadata was found for vllm", "docs/vllm.md"),
        ("vllm: error: unrecognized arguments: --enable-prefix-caching", "another version"),
        ("AssertionError: 14 is not divisible by tensor parallel size", "can't be divided"),
        ("RuntimeError: CPU Generator does not use offset", "docs/vllm.md"),
        ("ERROR Dumping input data: tensor_parallel_size=1, seed=0", "exit status 1"),
        ("something else", "exit status 1"),
    ],
)
def test_the_likely_cause_of_a_death_is_named(words, cause):
    assert cause in likely_cause(f"INFO loading\n{words}\n", status=1)


async def test_a_server_that_never_answers_is_given_up_and_stopped(vllm):
    vllm.orders.write_text("hang")
    model = opened("Qwen/tiny?start_s=1")

    with pytest.raises(ModelError, match=r"has not answered in 1 s: it is still busy[^\0]*\?start_s="):
        await ask(model)

    assert vllm.processes() == []
    await model.close()


async def test_a_server_that_dies_on_the_way_is_started_again_and_not_for_ever(vllm):
    vllm.orders.write_text("die once asked")
    said = []
    model = opened(say=said.append)

    for _ in range(3):
        with pytest.raises(ModelUnavailable, match=r"died: out of memory[^\0]*CUDA out of memory"):
            await ask(model)
    with pytest.raises(ModelError, match="started 3 times; not again"):
        await ask(model)
    await model.close()

    assert len(vllm.starts()) == 3
    assert sum("starting it again" in line for line in said) == 2


async def test_after_a_death_the_next_try_is_answered_by_a_new_server(vllm):
    vllm.orders.write_text("die once asked")
    model = opened()
    await model.ready()
    vllm.orders.unlink()

    with pytest.raises(ModelUnavailable):
        await ask(model)
    reply = await ask(model)
    await model.close()

    assert reply.text


async def test_a_crowd_that_meets_a_death_starts_one_new_server(vllm):
    vllm.orders.write_text("die once asked")
    model = opened()
    await model.ready()
    vllm.orders.unlink()

    await asyncio.gather(*(ask(model) for _ in range(8)), return_exceptions=True)
    replies = await asyncio.gather(*(ask(model) for _ in range(8)))
    await model.close()

    assert len(vllm.starts()) == 2 and all(reply.text for reply in replies)


def test_a_killed_driver_leaves_no_server(vllm):
    driver = _driver(vllm)

    driver.kill()
    driver.wait()

    assert gone(vllm)


async def test_a_killed_keeper_leaves_no_server_once_the_model_is_closed(vllm):
    model = opened()
    await model.ready()
    keeper = vllm.starts()[0]["pids"][2]

    os.kill(keeper, signal.SIGKILL)
    await model.close()

    assert gone(vllm)


def test_what_a_killed_driver_and_keeper_left_is_ended_at_the_next_start(vllm):
    driver = _driver(vllm)
    server, engine, keeper = vllm.starts()[0]["pids"]
    os.kill(server, signal.SIGSTOP)  # it will not see that the keeper is gone
    os.kill(keeper, signal.SIGKILL)
    driver.kill()
    driver.wait()
    assert engine in vllm.processes()

    lines = reap()

    assert gone(vllm)
    assert lines == ["2 processes of vllm/Qwen/tiny, left by a run that was killed"]
    assert reap() == [] and list(notes_folder().glob("*.json")) == []


def test_the_servers_of_a_living_run_are_left_alone(vllm):
    driver = _driver(vllm)

    lines = reap()

    assert lines == [] and len(vllm.processes()) == 3
    driver.kill()
    driver.wait()
    assert gone(vllm)


def test_a_note_whose_keepers_pid_belongs_to_another_process_kills_nobody(vllm):
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    dead = {"boot": Path("/proc/sys/kernel/random/boot_id").read_text().strip(), "space": "", "start": "1"}
    dead["space"] = str(Path("/proc/self/ns/pid").readlink())
    note = {"model": "m", "owner": {**dead, "pid": "999999999"}, "keeper": {**dead, "pid": str(stranger.pid)}}
    (notes_folder() / "x.json").write_text(json.dumps(note))

    lines = reap()

    assert lines == [] and stranger.poll() is None
    stranger.kill()
    stranger.wait()


async def test_a_closed_model_is_not_started_again(vllm):
    model = opened()
    await model.close()
    await model.close()

    with pytest.raises(ModelError, match="closed"):
        await ask(model)


async def test_a_running_server_by_address_is_asked_and_none_is_started(vllm, monkeypatch):
    monkeypatch.setenv("WER_API_KEY", "sk-server")

    async with MockOpenAI(says("hi")) as mock:
        model = opened(f"tiny?thinking=on@{mock.url}")
        reply = await ask(model)
        await model.close()

    assert (reply.text, vllm.starts()) == ("hi", [])
    assert mock.headers[0]["Authorization"] == "Bearer sk-server"
    assert mock.requests[0]["chat_template_kwargs"] == {"enable_thinking": True}
    assert mock.requests[0]["top_k"] == 0


async def test_a_prompt_beyond_vllms_context_is_too_long():
    words = "This model's maximum context length is 1024 tokens. However, you requested 8 output tokens"

    async with MockOpenAI(fails(400, message=words)) as mock:
        model = opened(f"tiny@{mock.url}")
        with pytest.raises(PromptTooLong, match="Shorten the skill"):
            await ask(model)
        await model.close()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "needs a name"),
        ("?context=4", "needs a name"),
        ("m?contxt=4", "did you mean 'context'"),
        ("m?context=many", "expected an integer"),
        ("m?memory=100", "memory"),
        ("m?thinking=maybe", "expected '' or 'on' or 'off'"),
        ("m?context=4096@http://127.0.0.1:1/v1", "runs already"),
    ],
)
def test_a_name_that_cannot_be_served_is_refused_with_the_reason(name, words):
    with pytest.raises(ConfigError, match=words):
        opened(name)


def test_without_vllm_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.delenv("WER_VLLM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(ConfigError, match=r"no vLLM is installed here.*WER_VLLM="):
        opened()


def test_a_vllm_that_is_named_and_not_there_is_refused(monkeypatch):
    monkeypatch.setenv("WER_VLLM", "/nowhere/vllm")

    with pytest.raises(ConfigError, match="'/nowhere/vllm', which is no program"):
        opened()


async def test_a_python_that_has_vllm_may_be_named(vllm, tmp_path, monkeypatch):
    modules = tmp_path / "modules"
    (modules / "vllm/entrypoints/cli").mkdir(parents=True)
    (modules / "vllm/entrypoints/cli/main.py").write_text(
        f"from support.fake_vllm import main\nmain({str(tmp_path)!r})\n"
    )
    monkeypatch.setenv("WER_VLLM", sys.executable)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(modules), str(TESTS)]))
    model = opened()

    reply = await ask(model)
    await model.close()

    assert reply.text and vllm.starts()[0]["argv"][0] == "serve"


async def test_two_servers_of_one_model_are_one_model_and_other_weights_are_another(vllm, tmp_path):
    folder = tmp_path / "weights"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "qwen2"}')
    (folder / "model.safetensors").write_bytes(b"1" * 100)
    site = vllm.path.parent.parent / "lib/python3.11/site-packages"
    (site / "vllm-0.29.0.dist-info").mkdir(parents=True)
    (site / "vllm_ascend-9.dist-info").mkdir()

    async def identity():
        model = opened(str(folder))
        await model.close()
        return model.identity

    first, second = await identity(), await identity()
    (folder / "model.safetensors").write_bytes(b"1" * 99 + b"2")
    third = await identity()

    assert first == second != third
    assert (first["name"], first["parser"], first["version"]) == ("weights", "hermes", "0.29.0")


async def test_a_model_whose_tool_calls_are_not_known_is_not_asked_for_them(vllm):
    model = opened("acme/mystery")

    with pytest.raises(ModelError, match=r"\?parser="):
        await ask(model, tools=(LS,))
    reply = await ask(model)
    await model.close()

    assert reply.text and "--tool-call-parser" not in flags(vllm.starts()[0])


@pytest.mark.parametrize(
    ("name", "parser"),
    [
        ("Qwen/Qwen3-8B", "hermes"),
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct", "qwen3_coder"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama3_json"),
        ("openai/gpt-oss-20b", "openai"),
        ("acme/mystery", ""),
    ],
)
def test_the_parser_of_tool_calls_follows_the_family(name, parser):
    assert families.parser(name) == parser


def test_a_run_with_one_model_in_all_roles_starts_one_server(vllm, tmp_path):
    config = configured(executor="vllm/Qwen/tiny", training__phases=1, gpus={"executor": "1", "writer": "0"})

    store = perform(tmp_path / "run", config)

    assert store.results() and len(vllm.starts()) == 1 and vllm.requests()
    assert vllm.starts()[0]["environ"]["CUDA_VISIBLE_DEVICES"] == "1,0"
    assert (tmp_path / "run/logs/vllm-Qwen-tiny.log").exists()


def test_a_run_whose_server_does_not_start_ends_before_its_first_rollout(vllm, tmp_path):
    vllm.orders.write_text("die RuntimeError: No CUDA GPUs are available")

    with pytest.raises(ModelError, match="GPUs that it was given are not there"):
        perform(tmp_path / "run", configured(executor="vllm/Qwen/tiny"))


@pytest.mark.parametrize("role", ["executor", "user_model"])
def test_a_server_of_wers_own_is_refused_where_rollouts_run_elsewhere(role):
    config = configured(runner="ray", **{"executor": "openai/m", role: "vllm/Qwen/tiny?context=9"})

    with pytest.raises(ConfigError, match=rf"{role} is .*reach: vllm/Qwen/tiny@http://HOST:PORT/v1"):
        check_names(config, plugins.load(extra=(counting,)))


def test_a_server_by_address_serves_rollouts_elsewhere_and_one_of_wers_own_the_writer():
    config = configured(runner="ray", executor="vllm/m@http://h:8000/v1", writer="vllm/Qwen/tiny")

    check_names(config, plugins.load(extra=(counting,)))


def _texts(folder):
    return [path.read_text() for path in folder.iterdir()]


def _driver(fake):
    """A process that has started a server and does nothing more."""
    script = (
        "import asyncio, time\n"
        "from wer.contracts import ModelSetup\n"
        "from wer_vllm import wer_models\n"
        "model = wer_models()['vllm'](ModelSetup(name='Qwen/tiny'))\n"
        "asyncio.run(model.ready())\n"
        "print('ready', flush=True)\n"
        "time.sleep(600)\n"
    )
    driver = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert driver.stdout is not None
    with driver.stdout:
        assert driver.stdout.readline() == b"ready\n"
    return driver

"""Every flag derives from WER's configuration, and the real command line takes all of them."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.openrlhf_cpu import run_script
from support.tiny_writer import setup

from wer.configuration import RunConfig, presets, resolve
from wer.tables import structure
from wer_openrlhf import flags
from wer_openrlhf.arguments import argv
from wer_openrlhf.options import OpenRlhfOptions

SCRIPT = Path(__file__).parents[2] / "support/openrlhf_cpu/scripts/parse.py"
PLACES: dict[str, Any] = {
    "model": "/models/writer",
    "dataset": Path("/run/prompts.jsonl"),
    "agent": Path("/run/agent.py"),
    "checkpoints": Path("/run/trainer"),
    "output": Path("/run/export"),
}
EVERYTHING = {
    "packing": True,
    "adam_offload": True,
    "enforce_eager": True,
    "rollout_correction": "token",
    "scale_advantages": True,
    "extra": ["--actor.adam.betas", "0.9", "0.98"],
}


def words(
    options: dict[str, Any] | None = None, *, share: tuple[float, float] = (0, 1), **changes: Any
) -> list[str]:
    chosen = structure(OpenRlhfOptions, options or {}, where="optimizer.openrlhf")
    return argv(
        setup("w", **changes),
        chosen,
        states=12,
        batch=chosen.batch,
        share=share,
        logs=Path("/run/logs"),
        **PLACES,
    )


def of_preset(config: RunConfig) -> list[str]:
    return words(
        dict(config.optimizer.get("openrlhf", {})),
        k=config.training.k,
        phases=config.training.phases,
        temperature=config.training.temperature,
        max_prompt_tokens=config.training.max_prompt_tokens,
        max_response_tokens=config.training.max_response_tokens,
    )


def value(line: list[str], flag: str) -> str:
    return line[line.index(flag) + 1]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the real command line makes of the arguments of every preset, and of some others."""
    lists = {
        name: of_preset(resolve(name, None, [], {"writer": "w", "executor": "openai/m"}))
        for name in presets()
    }
    lists["everything"] = words(EVERYTHING)
    lists["one"] = words(k=1)
    file = tmp_path_factory.mktemp("arguments") / "lists.json"
    file.write_text(json.dumps(list(lists.values())))
    answer = run_script(SCRIPT, str(file))
    return {"flags": answer["flags"], **dict(zip(lists, answer["parsed"], strict=True))}


@pytest.mark.openrlhf
@pytest.mark.slow
@pytest.mark.parametrize("name", [*presets(), "everything"])
def test_the_real_parser_takes_what_a_preset_becomes(real: dict[str, Any], name: str):
    arguments = real[name]["arguments"]

    assert arguments["critic"]["model_name_or_path"] is None
    assert arguments["reward"]["remote_url"] == ["agent"]
    assert arguments["reward"]["clip_range"] == [-10, 10]
    assert arguments["algo"]["kl"]["init_coef"] == 0
    assert arguments["ds"]["lora"]["rank"] == 0
    assert (
        arguments["vllm"]["enable_sleep"]
        == arguments["ds"]["enable_sleep"]
        == arguments["train"]["colocate_all"]
    )


@pytest.mark.openrlhf
@pytest.mark.slow
def test_the_papers_settings_arrive_in_the_trainer(real: dict[str, Any]):
    arguments = real["paper"]["arguments"]

    assert arguments["rollout"]["n_samples_per_prompt"] == 4
    assert arguments["rollout"]["temperature"] == 0.95
    assert arguments["rollout"]["max_new_tokens"] == 4096
    assert arguments["data"]["max_len"] == 19_000 + 4096
    assert arguments["algo"]["advantage"]["estimator"] == "dr_grpo"
    assert arguments["actor"]["adam"]["lr"] == 1e-6
    assert arguments["actor"]["lr_scheduler"] == "cosine_with_min_lr"


@pytest.mark.openrlhf
@pytest.mark.slow
def test_the_real_parser_refuses_a_group_of_one(real: dict[str, Any]):
    assert "n_samples_per_prompt > 1" in real["one"]["refused"]


@pytest.mark.openrlhf
@pytest.mark.slow
def test_every_flag_of_the_real_parser_is_derived_or_allowed_or_refused_and_none_is_made_up(
    real: dict[str, Any],
):
    for name in real["flags"]:
        refused = any(name.startswith(beginning) for beginning in flags.REFUSED)
        assert name in flags.DERIVED or name in flags.ALLOWED or refused, name
    assert flags.ALLOWED | set(flags.DERIVED) <= set(real["flags"])


def test_no_flag_is_given_that_is_not_known_as_derived():
    given = {word for word in words({**EVERYTHING, "extra": []}) if word.startswith("--")}

    assert given == set(flags.DERIVED)


def test_a_minibatch_makes_several_steps_a_batch_so_that_clipping_acts():
    line = words({"batch": 6, "minibatch": 3}, k=4)

    assert (value(line, "--rollout.batch_size"), value(line, "--train.batch_size")) == ("6", "12")


def test_a_warm_up_shorter_than_one_step_is_left_out():
    short, long = words({"batch": 6, "warmup": 0.03}), words({"batch": 1, "warmup": 0.25})

    assert value(short, "--actor.lr_warmup_ratio") == "0.0"
    assert value(long, "--actor.lr_warmup_ratio") == "0.25"


def test_phases_follow_one_cosine_end_to_end():
    first, second, third = (words({"warmup": 0.0}, share=(p / 3, (p + 1) / 3), phases=3) for p in range(3))

    rates = [float(value(line, "--actor.adam.lr")) for line in (first, second, third)]
    ends = [
        float(value(line, "--actor.min_lr_ratio")) * rate
        for line, rate in zip((first, second, third), rates, strict=True)
    ]
    assert rates[0] == 1e-6
    assert ends[:2] == pytest.approx(rates[1:])
    assert ends[2] == pytest.approx(0.0, abs=1e-20)


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        (["--reward.clip_range", "0", "1"], "deletes every negative advantage"),
        (["--ds.lora.rank", "8"], "fails at its first weight sync"),
        (["--train.async_enable"], "cannot be resumed"),
        (["--algo.kl.use_loss"], "no KL term"),
        (["--rollout.n_samples_per_prompt=8"], "decided by training.k"),
        (
            ["--actor.adam.beta", "0.9", "0.98"],
            "no flag of exactly this name; did you mean '--actor.adam.betas'",
        ),
        (["--logger.wandb.key", "k"], "can read a command line"),
        (["0.9"], "a flag comes before its values"),
        (["-h"], "trains nothing"),
        (["--"], "no flag of exactly this name"),
        (["--ds.overlap_comm", "-x"], "no flag of exactly this name"),
    ],
)
def test_a_further_flag_that_breaks_something_is_refused_with_the_reason(extra: list[str], reason: str):
    (problem,) = flags.problems(extra)

    assert reason in problem


def test_a_further_flag_that_breaks_nothing_is_handed_on():
    extra = ["--actor.adam.betas", "0.9", "0.98", "--ds.overlap_comm"]

    assert flags.problems(extra) == []
    assert words({"extra": extra})[-4:] == extra

import re
from collections.abc import Mapping
from typing import Any, Literal

import pytest
from attrs import field, frozen
from hypothesis import given
from hypothesis import strategies as st

from wer import configuration
from wer.configuration import RunConfig, from_toml, resolve, structure, to_toml
from wer.errors import ConfigError

WORD = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)
GIVEN = {"env": "bfcl", "executor": "openai/gpt-4o"}


def _positive(_, __, value):
    if value < 1:
        raise ValueError(f"depth must be positive, got {value}")


@frozen(kw_only=True)
class Inner:
    depth: int = field(default=1, validator=_positive)


@frozen(kw_only=True)
class Options:
    mode: Literal["plan", "step"] = "plan"
    steps: int = 3
    warmth: float = 0.5
    loud: bool = False
    names: tuple[str, ...] = ()
    inner: Inner = Inner()
    free: Mapping[str, Any] = field(factory=dict)
    note: str | None = None


@frozen(kw_only=True)
class Needy:
    path: str


def test_a_table_becomes_a_record():
    table = {
        "mode": "step",
        "warmth": 1,
        "names": ["a"],
        "inner": {"depth": 2},
        "free": {"x": [1]},
        "note": "n",
    }

    options = structure(Options, table, where="executor_options")

    assert options == Options(
        mode="step", warmth=1.0, names=("a",), inner=Inner(depth=2), free={"x": [1]}, note="n"
    )
    assert isinstance(options.warmth, float)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"names": ["a", ""]}, r"x\.names is \['a', ''\] \(a list\), expected a list without empty strings"),
        ({"names": ["a\0b"]}, r"x\.names\[0\] is 'a\\x00b' \(a string\), expected a string without NUL"),
    ],
)
def test_empty_strings_in_lists_and_nul_characters_are_refused(table, message):
    with pytest.raises(ConfigError, match=message):
        structure(Options, table, where="x")


@pytest.mark.parametrize(
    "deep", ["[" * 40 + "]" * 40, "[" * 5000 + "]" * 5000, "{a=" * 2000 + "1" + "}" * 2000]
)
def test_a_file_or_an_option_that_is_nested_too_deeply_is_refused(tmp_path, deep):
    file = tmp_path / "wer.toml"
    file.write_text(f"executor_options.x = {deep}\n")

    with pytest.raises(ConfigError, match="levels deep"):
        resolve(None, file, (), GIVEN)
    with pytest.raises(ConfigError, match="levels deep"):
        resolve(None, None, [f"executor_options.x={deep}"], GIVEN)


def test_an_option_with_too_many_dots_is_refused():
    with pytest.raises(ConfigError, match="levels deep"):
        resolve(None, None, ["a." * 2000 + "a=1"], GIVEN)


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path):
    file = tmp_path / "wer.toml"
    file.write_bytes(b"\xef\xbb\xbfseed = 3\n")

    assert resolve(None, file, (), GIVEN).seed == 3


def test_an_unknown_key_names_its_table_and_the_nearest_known_key():
    with pytest.raises(
        ConfigError, match=r"unknown key 'modle' in \[executor_options\]; did you mean 'mode'\?"
    ):
        structure(Options, {"modle": "plan"}, where="executor_options")


def test_an_unknown_key_of_a_nested_table_has_the_whole_path():
    with pytest.raises(ConfigError, match=r"unknown key 'dept' in \[optimizer.x.inner\]"):
        structure(Options, {"inner": {"dept": 2}}, where="[optimizer.x]")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"steps": "ten"}, r"x\.steps is 'ten' \(a string\), expected an integer"),
        ({"steps": True}, r"x\.steps is True \(a boolean\), expected an integer"),
        ({"steps": 1.5}, r"x\.steps is 1\.5 \(float\), expected an integer"),
        ({"loud": 1}, r"x\.loud is 1 \(int\), expected true or false"),
        ({"warmth": False}, r"x\.warmth is False \(a boolean\), expected a number"),
        ({"names": "a"}, r"x\.names is 'a' \(a string\), expected a list"),
        ({"names": ["a", 2]}, r"x\.names\[1\] is 2 \(int\), expected a string"),
        ({"inner": 3}, r"x\.inner is 3 \(int\), expected a table"),
        ({"free": []}, r"x\.free is \[\] \(a list\), expected a table"),
        ({"mode": "pan"}, r"x\.mode is 'pan' \(a string\), expected 'plan' or 'step'"),
        ({"mode": ["plan"]}, r"x\.mode is \['plan'\] \(a list\), expected 'plan' or 'step'"),
        ({"note": 3}, r"x\.note is 3 \(int\), expected a string"),
        ({"inner": {"depth": 0}}, r"x\.inner: depth must be positive, got 0"),
    ],
)
def test_a_wrong_value_is_shown_with_its_path_and_what_was_expected(table, message):
    with pytest.raises(ConfigError, match=message):
        structure(Options, table, where="x")


def test_all_mistakes_are_reported_at_once():
    with pytest.raises(ConfigError) as caught:
        structure(Options, {"steps": "ten", "loud": "no", "extra": 1}, where="x")

    assert len(str(caught.value).splitlines()) == 3


def test_a_key_without_default_must_be_given():
    with pytest.raises(ConfigError, match=r"missing key 'path' in \[x\]"):
        structure(Needy, {}, where="x")


def test_later_sources_win_key_by_key(tmp_path):
    file = tmp_path / "wer.toml"
    file.write_text('seed = 7\n[training]\nk = 5\nstates_per_phase = 9\n[executor_options]\nmode = "step"\n')

    config = resolve("cpu", file, ["training.k=6", "seed=8"], {**GIVEN, "seed": 9, "method": None})

    assert (config.training.k, config.training.states_per_phase, config.seed) == (6, 9, 9)
    assert config.executor_options["mode"] == "step" and config.executor_options["temperature"] > 0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4", 4),
        ("0.5", 0.5),
        ("true", True),
        ('"4"', "4"),
        ("[1, 2]", [1, 2]),
        ("openai/gpt-4o", "openai/gpt-4o"),
        ("a=b", "a=b"),
        ("", ""),
        ("1\nb = 2", "1\nb = 2"),
    ],
)
def test_set_takes_a_toml_value_or_else_a_bare_string(text, value):
    config = resolve(None, None, [f"executor_options.x={text}"], GIVEN)

    assert config.executor_options == {"x": value}


def test_set_without_equals_sign_is_refused():
    with pytest.raises(ConfigError, match=r"'training\.k' is not key=value"):
        resolve(None, None, ["training.k"], GIVEN)


def test_malformed_toml_names_file_line_and_column(tmp_path):
    file = tmp_path / "wer.toml"
    file.write_text("seed = 1\nexecutor = openai/gpt\n")

    with pytest.raises(ConfigError, match=re.escape(str(file)) + r".*line 2, column \d+"):
        resolve(None, file, [], GIVEN)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot read .*none\.toml"):
        resolve(None, tmp_path / "none.toml", [], GIVEN)


def test_an_unknown_preset_error_names_the_nearest():
    with pytest.raises(
        ConfigError,
        match=r"no preset named 'papr'; did you mean 'paper'.*cpu, cpu-long, cpu-tiny, paper, paper-open",
    ):
        resolve("papr", None, [], GIVEN)


@pytest.mark.parametrize("preset", configuration.presets())
def test_every_preset_resolves(preset):
    config = resolve(preset, None, [], {"env": "bfcl"})

    assert config.executor and config.training.k >= 2


def test_without_executor_the_error_says_how_to_name_one():
    with pytest.raises(ConfigError, match="executor is empty: give --executor"):
        resolve(None, None, [], {"env": "bfcl"})


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (["training.k=1"], r"training: k must be finite and at least 2, got 1"),
        (["training.n=1"], r"training: n must be at least 2 when phases is 3"),
        (["executor_options.temperature=0"], "greedy executor repeats itself"),
        (["executor_options.temperature=0.0"], "greedy executor repeats itself"),
        (["limits.rollout_timeout_s=nan"], "must be finite"),
        (["limits.rollout_timeout_s=inf"], "finite"),
        (["reward.fmt_weight_end=1.5"], "must lie in 0..1"),
        (["evaluation.conditions=[]"], "conditions is empty"),
        (["evaluation.conditions=['none', 'none']"], "names 'none' twice"),
        (["training=3"], r"training is 3 \(int\), expected a table"),
        (["env=[]"], "env is empty"),
    ],
)
def test_settings_that_cannot_work_are_refused_with_the_reason(sets, message):
    with pytest.raises(ConfigError, match=message):
        resolve("cpu", None, ["env=bfcl", "training.phases=3", *sets], {})


def test_one_rollout_a_candidate_is_fine_when_nothing_is_retained():
    config = resolve(
        None, None, ["training.n=1", "training.phases=1", "executor_options.temperature=0"], GIVEN
    )

    assert config.training.n == 1


@given(
    seed=st.integers(0, 2**31),
    executor=WORD,
    warmth=st.floats(0, 2, allow_nan=False),
    free=st.dictionaries(
        WORD,
        st.one_of(
            st.integers(-9, 9),
            st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
            st.booleans(),
        ),
    ),
    env=st.lists(WORD, min_size=1, max_size=3),
)
def test_a_written_configuration_reads_back_equal(seed, executor, warmth, free, env):
    config = RunConfig(
        env=tuple(env),
        executor=executor,
        seed=seed,
        training=configuration.TrainingConfig(temperature=warmth),
        executor_options={"free": free, "list": [1, {"a": 2}]},
        environment={"bfcl": free},
        optimizer={"grpo": {"lr": 1e-6}},
    )

    assert from_toml(to_toml(config)) == config

import re
import sys
from types import ModuleType

import pytest

from wer import hookimpl, plugins
from wer.errors import PluginError


def plugin(name, **functions):
    module = ModuleType(name)
    for key, function in functions.items():
        setattr(module, key, function)
    return module


def offer(parts):
    return hookimpl(lambda: parts)


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a tiny distribution: modules, and entry points that name them."""
    names = []

    def installed(distribution, entry_points, group="wer", **sources):
        for name, source in sources.items():
            (tmp_path / f"{name}.py").write_text(source)
            names.append(name)
        info = tmp_path / f"{distribution.replace('-', '_')}-1.2.dist-info"
        info.mkdir()
        info.joinpath("METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\nProvides-Extra: big\n"
            "Requires-Dist: no_such_library>=1; extra == 'big'\n"
        )
        lines = [f"{name} = {module}\n" for name, module in entry_points.items()]
        info.joinpath("entry_points.txt").write_text(f"[{group}]\n" + "".join(lines))

    monkeypatch.syspath_prepend(str(tmp_path))
    yield installed
    for name in names:
        sys.modules.pop(name, None)


def test_unknown_verifier_error_lists_the_installed_ones():
    found = plugins.load(extra=[plugin("mine", wer_verifiers=offer({"state_watch": object}))])

    with pytest.raises(
        PluginError,
        match=r"no verifier named 'state_wach' \(installed: .*state_watch.*\); did you mean 'state_watch'\? "
        r"Check the spelling in wer\.toml, or install the plugin that offers it\.",
    ):
        found.verifiers.make("state_wach")


def test_a_part_is_made_with_its_arguments():
    found = plugins.load(
        extra=[plugin("mine", wer_environments=offer({"shop": lambda options: options["a"]}))]
    )

    assert found.environments.make("shop", {"a": 3}) == 3
    assert "shop" in found.environments.names()


def test_a_model_is_opened_by_provider_and_rest():
    found = plugins.load(extra=[plugin("mine", wer_models=offer({"echo": lambda setup: setup.name}))])

    assert found.model("echo/org/name@http://host/v1") == "org/name@http://host/v1"


@pytest.mark.parametrize("spec", ["echo", "echo/", "/name", ""])
def test_a_model_without_provider_or_name_is_refused(spec):
    found = plugins.load(extra=[plugin("mine", wer_models=offer({"echo": lambda setup: setup.name}))])

    with pytest.raises(PluginError, match=r"names no model\. Write provider/name"):
        found.model(spec)


def test_two_plugins_that_offer_one_name_are_both_named():
    pair = [plugin(name, wer_verifiers=offer({"same": object})) for name in ("left", "right")]

    with pytest.raises(
        PluginError, match=r"'(left|right)' and '(left|right)' both offer a verifier named 'same'"
    ):
        plugins.load(extra=pair)


def test_a_misspelt_hook_is_refused_with_the_nearest_spelling():
    with pytest.raises(PluginError, match=r"'mine' has 'wer_verifier'.*Did you mean 'wer_verifiers'\?"):
        plugins.load(extra=[plugin("mine", wer_verifier=offer({}))])


def test_a_hook_without_its_mark_is_refused():
    with pytest.raises(PluginError, match="'wer_verifiers' without @hookimpl"):
        plugins.load(extra=[plugin("mine", wer_verifiers=dict)])


def test_an_observer_with_arguments_that_do_not_exist_is_refused():
    def observe(rollout, colour):
        pass

    with pytest.raises(PluginError, match=r"plugin 'mine'[^.]*colour"):
        plugins.load(extra=[plugin("mine", wer_rollout_finished=hookimpl(observe))])


def test_observers_are_called_with_the_arguments_that_they_ask_for():
    seen = []
    observer = plugin("mine", wer_phase_finished=hookimpl(lambda phase: seen.append(phase)))
    found = plugins.load(extra=[observer])

    found.hook.wer_phase_finished(phase=2, outcome=None)

    assert seen == [2]
    assert any(row.kind == "observer" and row.plugin == "mine" for row in found.listing())


def test_a_plugin_that_cannot_be_imported_is_reported_and_the_others_go_on(install):
    install(
        "wer-plugin-pair",
        {"bad": "wer_test_bad", "good": "wer_test_good", "quits": "wer_test_quits"},
        wer_test_bad="import no_such_library",
        wer_test_quits="raise SystemExit(3)",
        wer_test_good=(
            "from wer import hookimpl\n@hookimpl\ndef wer_verifiers():\n"
            "    return {'good_one': lambda: 'here'}\n"
        ),
    )

    found = plugins.load()

    assert found.verifiers.make("good_one") == "here"
    assert "no_such_library" in found.broken["bad"]
    assert "SystemExit" in found.broken["quits"]
    rows = {row.plugin: row for row in found.listing()}
    assert rows["good"].distribution == "wer-plugin-pair 1.2"
    assert rows["bad"].status.startswith("broken: ModuleNotFoundError")
    with pytest.raises(PluginError, match=r"Not loaded: .*bad.*see wer plugin list"):
        found.verifiers.make("nope")


@pytest.mark.parametrize(
    ("group", "remedy"),
    [("wer2", "pip install -U wer-skills"), ("wer0", "pip install -U wer-plugin-foreign")],
)
def test_a_plugin_for_another_version_of_the_api_is_refused_by_name_and_never_imported(
    install, group, remedy
):
    install(
        "wer-plugin-foreign",
        {"foreign": "wer_test_foreign"},
        group=group,
        wer_test_foreign="raise AssertionError('imported')",
    )

    found = plugins.load()

    assert found.broken == {
        "foreign": f"made for version {group[-1]} of the plugin API, and this WER has 1.0. "
        + ("Upgrade WER: " if group == "wer2" else "Upgrade the plugin: ")
        + remedy
    }
    assert "toolagent" in found.executors.names()
    assert any(
        row.distribution == "wer-plugin-foreign 1.2" and row.status.startswith("broken: made for version")
        for row in found.listing()
    )


def test_a_plugin_in_the_group_wer1_is_told_that_the_group_is_wer(install):
    install("wer-plugin-foreign", {"foreign": "wer_test_foreign"}, group="wer1", wer_test_foreign="")

    assert plugins.load().broken == {
        "foreign": "its entry points are in the group 'wer1'. Version 1 has the group 'wer'"
    }


def test_a_plugin_whose_hook_raises_is_reported_and_the_others_go_on():
    def fail():
        raise RuntimeError("no luck")

    found = plugins.load(
        extra=[plugin("mine", wer_models=hookimpl(fail), wer_verifiers=offer({"v": object}))]
    )

    assert "wer_models raised RuntimeError: no luck" in found.broken["mine"]
    assert "v" in found.verifiers.names()


def test_a_missing_library_of_a_part_is_named_with_the_extra_that_brings_it(install):
    install(
        "wer-plugin-heavy",
        {"heavy": "wer_test_heavy"},
        wer_test_heavy=(
            "from wer import hookimpl\n@hookimpl\ndef wer_verifiers():\n    return {'heavy': make}\n"
            "def make():\n    import no_such_library\n"
        ),
    )
    found = plugins.load()

    with pytest.raises(PluginError, match=re.escape("pip install 'wer-plugin-heavy[big]'")):
        found.verifiers.make("heavy")


def test_two_distributions_with_one_plugin_name_are_both_named(install):
    install("wer-plugin-a", {"twin": "json"})
    install("wer-plugin-b", {"twin": "json"})

    with pytest.raises(
        PluginError, match=r"wer-plugin-[ab] 1\.2 and wer-plugin-[ab] 1\.2 both have .* 'twin'"
    ):
        plugins.load()

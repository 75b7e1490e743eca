"""The environment and its verifier, as the loop finds them."""

from __future__ import annotations

import textwrap
from types import ModuleType

import pytest

import wer
from wer import hookimpl, plugins
from wer.configuration import resolve
from wer.contracts import Identified, Referenced
from wer.domain import Domain
from wer.errors import ConfigError, DomainError, PluginError
from wer.loop.checking import check_names
from wer.loop.domains import domains, environments

COUNTING = "def count(self) -> int:\n    '''Count.'''\n    return 1"
SCAFFOLD = '''
    """Refunds of a small shop."""

    import wer


    class Refunds(wer.State):
        def __init__(self, orders: dict):
            self.orders = orders

        def refund(self, order_id: str, amount: float) -> str:
            """Refund an order.

            Args:
                amount: In euro.
            """
            self.orders[order_id]["refunded"] = amount
            return "refunded"


    def check(task, end):
        return end.state == task.expect


    @wer.hookimpl
    def wer_environments():
        return {"refunds": wer.Domain(Refunds, tasks="tasks.jsonl", check=check)}
'''
TASK = '{"id": "a", "query": "Refund 1.", "state": {"orders": {"1": {}}}, "split": "train"}\n'


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Install a package as pip would: a folder on the path, with an entry point."""
    (tmp_path / "wer_refunds").mkdir()
    (tmp_path / "wer_refunds" / "__init__.py").write_text(textwrap.dedent(SCAFFOLD).lstrip())
    (tmp_path / "wer_refunds" / "tasks.jsonl").write_text(TASK)
    info = tmp_path / "wer_plugin_refunds-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: wer-plugin-refunds\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[wer]\nrefunds = wer_refunds\n")
    monkeypatch.syspath_prepend(str(tmp_path))


def offering(name, domain):
    module = ModuleType("mine")
    module.wer_environments = hookimpl(lambda: {name: domain})
    return module


def config(*env, **more):
    return resolve(None, None, (), {"env": list(env), "executor": "openai/x", **more})


def test_a_domain_with_its_verifier_and_its_plugin_takes_at_most_thirty_lines(package):
    found = plugins.load()

    env = found.environments.make("refunds", {})
    [task] = env.tasks("refunds", "train")
    assert len(textwrap.dedent(SCAFFOLD).strip().splitlines()) <= 30
    assert (task.id, task.env, task.tools[0].name) == ("refunds/a", "refunds", "refund")
    assert env.verifier() == "refunds"
    assert found.verifiers.make("refunds").check.__name__ == "check"
    assert env.sandbox("refunds").packages == ("wer_refunds",)
    assert {row.kind for row in found.listing() if row.plugin == "refunds"} == {"environment", "verifier"}


def test_a_domain_is_identified_and_has_references(shop):
    assert isinstance(shop, Identified) and isinstance(shop, Referenced)
    [task] = [
        task for split in ("train", "test") for task in shop.tasks("orders", split) if task.id == "shop/move"
    ]
    assert [[call.name for call in turn] for turn in shop.reference(task)] == [
        ["get_customer"],
        ["change_address"],
    ]


def test_tasks_have_stable_ids_and_disjoint_splits_in_every_domain(shop):
    splits = {
        split: [task.id for domain in shop.domains() for task in shop.tasks(domain, split)]
        for split in ("train", "test")
    }

    assert shop.domains() == ("refunds", "orders")
    assert len(splits["train"]) == len(splits["test"]) == 4
    assert not set(splits["train"]) & set(splits["test"])
    assert [task.key for task in shop.tasks("orders", "test")] == [
        task.key for task in plugins.load().environments.make(shop.verifier(), {}).tasks("orders", "test")
    ]


def test_what_a_task_expects_is_not_in_the_task(shop):
    [task] = [task for split in ("train", "test") for task in shop.tasks("refunds", split)][:1]

    assert "expect" not in repr(task) and "reference" not in repr(task)


def test_the_seed_of_the_split_is_an_option_of_the_environment(write):
    reference = write(COUNTING, *({"id": f"t{i}", "query": "Go."} for i in range(8)))

    drawn = {
        seed: [
            task.id
            for task in plugins.load().environments.make(reference, {"seed": seed}).tasks("world", "test")
        ]
        for seed in (0, 1)
    }

    assert drawn[0] != drawn[1]
    with pytest.raises(ConfigError, match=r"unknown key 'sed' in \[environment\.world\]"):
        check_names_of(config(reference, environment={"world": {"sed": 1}}))


def check_names_of(given):
    found = plugins.load()
    check_names(given, found)
    return environments(given, found)


def test_a_domain_that_a_file_names_has_the_name_of_its_variable_in_reports(write):
    reference = write(COUNTING)

    [domain] = domains(config(reference), check_names_of(config(reference)))

    assert (domain.name, domain.env) == ("world/world", "world")


def test_a_path_is_absolute_in_the_configuration_whoever_gave_it(write, tmp_path, monkeypatch):
    reference = write(COUNTING)
    (tmp_path / "wer.toml").write_text('env = "world.py:world"\nexecutor = "openai/x"\n')
    monkeypatch.chdir(tmp_path)

    assert config("world.py:world").env == (reference,)
    monkeypatch.chdir("/")
    assert resolve(None, tmp_path / "wer.toml", (), {}).env == (reference,)
    assert config("bfcl", "package.module:shop").env == ("bfcl", "package.module:shop")


def test_two_domains_of_one_name_are_refused_unless_one_is_given_another(write, tmp_path):
    reference = write(COUNTING)
    twin = tmp_path / "twin.py"
    twin.write_text((tmp_path / "world.py").read_text())

    with pytest.raises(ConfigError, match=r"two environments are named 'world'.*name=\.\.\."):
        check_names_of(config(reference, f"{twin}:world"))
    twin.write_text(twin.read_text().replace("check=check", "check=check, name='twin'"))
    assert list(check_names_of(config(reference, f"{twin}:world"))) == ["world", "twin"]


def test_a_file_may_not_take_the_name_of_an_installed_environment(write, tmp_path):
    file = tmp_path / "world.py"
    reference = write(COUNTING)
    file.write_text(file.read_text().replace("world = wer", "bfcl = wer"))

    with pytest.raises(ConfigError, match="two environments are named 'bfcl'"):
        check_names_of(config(reference.replace(":world", ":bfcl")))


def test_a_verifier_of_the_name_of_a_domain_is_named_with_both_plugins(shop):
    other = ModuleType("other")
    other.wer_verifiers = hookimpl(lambda: {"shop": object})

    with pytest.raises(PluginError, match=r"'other' and 'mine' both offer a verifier named 'shop'"):
        plugins.load(extra=[other, offering("shop", shop)])


@pytest.mark.parametrize(
    ("edit", "part"),
    [
        (("return True", "return False"), "check"),
        (("return 1", "return 2"), "class"),
    ],
)
def test_its_identity_follows_what_the_code_says_and_not_how_it_is_laid_out(write, tmp_path, edit, part):
    reference = write(COUNTING)
    file = tmp_path / "world.py"
    before = plugins.load().environments.make(reference, {}).identity

    file.write_text(file.read_text().replace(*edit) + "\n\n# a comment\n")

    after = plugins.load().environments.make(reference, {}).identity
    assert before[part] != after[part] and before["tasks"] == after["tasks"]
    file.write_text(file.read_text().replace(*reversed(edit)))
    assert plugins.load().environments.make(reference, {}).identity == before


def test_its_identity_follows_a_neighbour_that_its_check_imports(write, tmp_path):
    (tmp_path / "wer_test_rules.py").write_text("LIMIT = 1\n")
    reference = write(COUNTING, head="import wer_test_rules")
    before = plugins.load().environments.make(reference, {}).identity

    (tmp_path / "wer_test_rules.py").write_text("LIMIT = 2\n")

    assert plugins.load().environments.make(reference, {}).identity["check"] != before["check"]


async def _later(task, end):
    return True


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"state": object()}, "is made of a class, got <object.*make no instance"),
        ({"check": "check.py"}, r"is a plain function check\(task, end\), got 'check.py'"),
        ({"check": _later}, "A coroutine can't judge"),
        ({"tasks": [{}]}, r"the tasks of a Domain are a file, got \[\{\}\]"),
        ({"requirements": "anyascii==0.3.3"}, r"takes lists .*Write \['anyascii==0.3.3'\]"),
        ({"requirements": ["anyascii>=0.3"]}, r"'anyascii>=0.3' of a Domain is no exact pin\. Write name=="),
    ],
)
def test_a_domain_of_the_wrong_things_says_what_it_takes(given, message):
    with pytest.raises(DomainError, match=message):
        Domain(**{"state": wer.State, "tasks": "tasks.jsonl", "check": print, **given})


def test_its_identity_follows_the_tasks(write):
    before = plugins.load().environments.make(write(COUNTING), {}).identity
    after = (
        plugins.load()
        .environments.make(write(COUNTING, {"id": "a", "query": "Go.", "expect": 1}), {})
        .identity
    )

    assert before["tasks"] != after["tasks"] and before["class"] == after["class"]


def test_a_class_that_is_in_no_file_is_refused_with_the_remedy():
    class Local(wer.State):
        def act(self) -> None:
            """Act."""

    with pytest.raises(
        DomainError, match=r"Local is defined in a notebook.*Put it at the top level of a file"
    ):
        Domain(Local, tasks="tasks.jsonl", check=lambda task, end: True).named("x").tasks("x", "test")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("{file}:word", r"has no 'word'; did you mean 'world'\? It has"),
        ("{file}:World", r"is of type type, expected a wer\.Domain"),
        ("{file}", r"names a file and no object in it\. Write .*world\.py:NAME"),
        ("/nonexistent/x.py:x", "cannot read '/nonexistent/x.py'"),
        ("no_such_package.x:x", "cannot import 'no_such_package.x': ModuleNotFoundError"),
    ],
)
def test_a_name_that_leads_nowhere_says_what_is_wrong_with_it(write, name, message):
    file = write(COUNTING).removesuffix(":world")

    with pytest.raises(ConfigError, match=message):
        check_names_of(config(name.format(file=file)))


@pytest.mark.parametrize(
    ("head", "why"),
    [
        ("import no_such_library", "ModuleNotFoundError: .*no_such_library"),
        ("raise SystemExit(4)", "SystemExit: 4"),
    ],
)
def test_a_file_that_cannot_be_imported_says_why(write, head, why):
    reference = write(COUNTING, head=head)

    with pytest.raises(ConfigError, match=rf"world\.py can't be imported: {why}"):
        check_names_of(config(reference))

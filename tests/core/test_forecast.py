"""What is said before anything is opened or paid: cost and pace by provider, and caps that can't be kept."""

from types import ModuleType

import pytest
from support import till

from wer import hookimpl, plugins
from wer.cli.forecast import foresee
from wer.configuration import resolve
from wer.contracts import Provider
from wer.errors import ConfigError
from wer.loop.checking import check_names
from wer.loop.domains import Domain
from wer.loop.roles import concurrency
from wer.records import Task
from wer.reports.forecast import Plan, forecast, total

TASK = Task(id="t", env="bfcl", domain="d", split="train", turns=("go",))
DOMAIN = Domain(name="bfcl/d", env="bfcl", train=(TASK,), test=(TASK,))


def never(rest):
    raise AssertionError("a model was opened before the forecast")


def found_module(provider):
    module = ModuleType("mine")
    module.wer_models = hookimpl(lambda: {"mine": provider})
    return module


def found(provider):
    return plugins.load(extra=[found_module(provider)])


def config(**given):
    return resolve(None, None, (), {"env": ["bfcl"], "executor": "mine/m", **given})


def executor_usd(config, plugins):
    return next(role.usd for role in forecast(config, [DOMAIN], plugins).roles if role.role == "executor")


def test_a_model_that_runs_here_is_forecast_to_cost_nothing():
    assert executor_usd(config(), found(Provider(never, cost="free"))) == 0.0


@pytest.mark.parametrize("provider", [never, Provider(never, cost="unpriced")])
def test_the_cost_of_a_model_is_unknown_until_it_has_a_price(provider):
    priced = config(prices={"mine/m": [1.0, 2.0]})

    assert executor_usd(config(), found(provider)) is None
    assert executor_usd(priced, found(provider)) > 0


def test_a_writer_that_is_a_folder_of_weights_costs_nothing():
    ahead = forecast(config(writer="runs/one/merged"), [DOMAIN], found(never))

    assert next(role.usd for role in ahead.roles if role.role == "writer") == 0.0


def test_a_simulated_user_has_a_line_of_its_own():
    open_ended = Task(id="t", env="tau2", domain="d", split="train", turns=())
    domain = Domain(name="tau2/d", env="tau2", train=(open_ended,), test=(open_ended,), roles=("user",))
    priced = config(user_model="mine/u", prices={"mine/u": [1.0, 2.0]})

    roles = {role.role: role for role in forecast(priced, [domain, DOMAIN], found(never)).roles}
    alone = {role.role: role for role in forecast(priced, [DOMAIN], found(never)).roles}

    assert roles["user"].model == "mine/u"
    assert roles["executor"].calls > roles["user"].calls > alone["executor"].calls
    assert roles["user"].usd > 0
    assert "user" not in alone


def test_rollouts_at_a_time_are_what_the_provider_says_unless_configured():
    provider = Provider(never, concurrency=3)

    assert concurrency(config(), found(provider), {}) == 3
    assert concurrency(config(concurrency=7), found(provider), {}) == 7


def test_a_cap_on_money_is_refused_before_an_unpriced_model_is_opened():
    capped = config(budget={"max_cost": 5.0})

    with pytest.raises(ConfigError, match=r"the price of 'mine/m' is unknown\. Give it with --price mine/m="):
        check_names(capped, found(Provider(never, cost="unpriced")))


@pytest.mark.parametrize("cost", ["free", "reported"])
def test_a_cap_on_money_is_kept_for_models_whose_cost_is_known(cost):
    check_names(config(budget={"max_cost": 5.0}), found(Provider(never, cost=cost)))


def test_the_agent_that_does_nothing_is_counted_as_a_cap_counts_it():
    ahead = forecast(config(), [DOMAIN], found(never), Plan(conditions=2))

    assert ahead.total == 2 * 3 + 1


def test_methods_are_forecast_with_their_own_settings():
    plain, deep = config(), config(refinement={"rounds": 5})
    alone = [forecast(each, [DOMAIN], found(never), Plan(revised=1)) for each in (plain, deep)]

    both = total([forecast(plain, [DOMAIN], found(never), Plan(scans=2, conditions=2)), *alone])

    assert dict(both.rollouts)["refinement rounds"] == (2 + 5) * 2
    assert next(role.calls for role in both.roles if role.role == "writer") == 2 + 5
    assert both.measured == 1


@pytest.mark.parametrize(("split", "plan"), [("train", Plan(scans=2)), ("test", Plan(conditions=2))])
def test_a_split_without_tasks_is_refused_before_anything_is_paid(split, plan):
    class Lacking(till.Till):
        def tasks(self, domain, wanted):
            return () if wanted == split else super().tasks(domain, wanted)

    offered = plugins.load(extra=[till.plugin(Lacking), found_module(never)])
    lacking = resolve(None, None, (), {"env": ["till"], "executor": "mine/m"})

    with pytest.raises(ConfigError, match=f"till/till has no {split}(ing)? tasks"):
        foresee(lacking, offered, plan)

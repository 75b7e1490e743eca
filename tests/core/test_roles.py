"""Which models take part in an environment's episodes: named by the configuration, or refused early."""

import pytest
from support.counting import Counting
from support.perform import configured

from wer.errors import ConfigError, PluginError
from wer.loop.roles import cast


class Asking(Counting):
    def __init__(self, *roles):
        super().__init__()
        self._roles = roles

    def roles(self):
        return self._roles


def test_an_environment_without_roles_needs_no_model():
    assert cast(configured(), "counting", Counting()) == {}


def test_the_users_model_is_the_one_that_is_configured():
    assert cast(configured(user_model="scribe/u"), "asking", Asking("user")) == {"user": "scribe/u"}


def test_a_role_without_a_model_is_refused_with_the_option_that_names_it():
    with pytest.raises(ConfigError, match=r"'asking' needs a model that plays the user\. .*--user-model"):
        cast(configured(), "asking", Asking("user"))


def test_a_role_that_there_is_not_is_refused_with_those_that_there_are():
    with pytest.raises(PluginError, match=r"'asking' wants a model in the role 'judge'.*\(roles: user\)"):
        cast(configured(), "asking", Asking("judge"))

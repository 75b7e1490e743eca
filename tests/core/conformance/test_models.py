"""Models that break a rule are told of it, with the remedy; the shipped clients keep them all."""

import re

import aiohttp
import pytest
from support.mock_openai import MockOpenAI, says
from support.offering import offering

from wer import plugins
from wer.conformance import Settings, check_part
from wer.errors import ModelError, ModelUnavailable
from wer.records import Reply, Usage


class Plain:
    """A client of a server that answers anything."""

    tries = 1

    def __init__(self, setup):
        self.name, _, self.url = setup.name.partition("@")

    @property
    def identity(self):
        return {"name": self.name}

    async def complete(self, messages, tools, sampling):
        for left in reversed(range(self.tries)):
            try:
                return await self.asked()
            except ModelUnavailable:
                if not left:
                    raise
        raise AssertionError

    async def asked(self):
        try:
            url = f"{self.url}/chat/completions"
            async with aiohttp.ClientSession() as client, client.post(url, json={}) as response:
                await response.read()
                if response.status == 429 or response.status >= 500:
                    raise ModelUnavailable(str(response.status))
                if response.status != 200:
                    raise self.refused(response.status)
        except aiohttp.ClientError as error:
            raise ModelUnavailable(str(error)) from error
        return Reply(text="hello", usage=self.usage())

    def refused(self, status):
        return ModelError(str(status))

    def usage(self):
        return Usage(calls=1, prompt_tokens=3, completion_tokens=1)

    async def close(self): ...


class Free(Plain):
    def usage(self):
        return Usage()


class Patient(Plain):
    tries = 3


class Hopeful(Plain):
    def refused(self, status):
        return ModelUnavailable(str(status))


async def findings(model, name="plain"):
    async with MockOpenAI(default=says("hello")) as mock:
        settings = Settings(model=f"{name}/m@{mock.url}")
        return await check_part(
            "model", name, plugins.load(extra=[offering("wer_models", plain=model)]), settings
        )


@pytest.mark.parametrize("name", ["plain", "openai", "vllm"])
async def test_a_model_that_keeps_the_rules_passes_every_check(name):
    listed = await findings(Plain, name)

    assert {finding.status for finding in listed} == {"ok"}, listed


@pytest.mark.parametrize(
    ("model", "sentence", "why", "remedy"),
    [
        (Free, "says what it cost", "answered with Reply", "usage counts 1 call"),
        (
            Patient,
            "told apart",
            "was asked for 3 times",
            "retries, their waits and their number are the loop's",
        ),
        (Hopeful, "told apart", "an answer 401 is ModelUnavailable", "another try won't mend is ModelError"),
    ],
)
async def test_a_broken_rule_is_named_with_its_remedy(model, sentence, why, remedy):
    listed = await findings(model)

    finding = next(finding for finding in listed if sentence in finding.sentence)
    assert finding.status == "failed", listed
    assert re.search(why, finding.detail), finding
    assert re.search(remedy, finding.remedy), finding


async def test_a_provider_without_a_model_to_ask_says_what_to_give():
    listed = await check_part("model", "openai", plugins.load(), Settings())

    assert {finding.status for finding in listed} == {"not applicable"}
    assert "give --model openai/NAME, or openai/NAME@URL" in listed[0].detail

"""An HTTP endpoint of the user's as a frozen agent: one POST a turn."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import aiohttp
from attrs import field, frozen

from wer.chat import dumps, loads
from wer.contracts import AgentSetup, Executor
from wer.errors import AgentError, InfrastructureError, ModelError
from wer.records import Json, JsonObject, Outcome, Skill
from wer.redaction import redacted
from wer.serving.answers import for_now, read_json
from wer.tables import structure
from wer_agents import resetting
from wer_agents.assignment import skill_text
from wer_agents.conversation import Ask
from wer_agents.options import OutsideOptions, check_url, secret
from wer_agents.outside import OutsideAgent
from wer_agents.telling import read_outcome
from wer_agents.upstream import upstream_of


@frozen(kw_only=True)
class EndpointOptions(OutsideOptions):
    """The table ``[executor_options]`` of an endpoint.

    Attributes:
        headers: Headers of every request, and for each the name of the environment variable that
            holds its value: ``{Authorization = "MY_AGENT_AUTH"}``.
    """

    headers: Mapping[str, str] = field(factory=dict)


def endpoint_agent(setup: AgentSetup) -> Executor:
    """Make the executor of an endpoint.

    Raises:
        ConfigError: Its address is none, or the value of a header isn't there.
    """
    options = structure(EndpointOptions, setup.options, where="executor_options")
    check_url(setup.name, "executor", "http://127.0.0.1:8000/")
    headers = {name: secret(variable, "headers") for name, variable in options.headers.items()}
    return OutsideAgent(
        setup=setup,
        way=Endpoint(url=setup.name, headers=headers),
        reset=resetting.find(options.reset),
        upstream=upstream_of(options),
        version=options.version,
    )


@frozen(kw_only=True)
class Endpoint:
    """A `wer_agents.outside.Way`.

    Attributes:
        headers: With their values; never printed.
    """

    url: str
    headers: Mapping[str, str] = field(factory=dict, repr=False)

    @property
    def name(self) -> str:
        """Its address, without what may be a key in it."""
        return f"your agent at {redacted(self.url)}"

    @property
    def identity(self) -> JsonObject:
        """Its address: what answers there is the user's to tell, with ``version``."""
        return {"executor": "http", "url": self.url}

    @asynccontextmanager
    async def opened(self, skill: Skill, token: str) -> AsyncIterator[Ask]:
        """Open connections for one rollout. How long an answer may take is the loop's to say."""
        given = {
            "name": skill.name,
            "description": skill.description,
            "body": skill_text(skill),
        }
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=20.0)
        async with aiohttp.ClientSession(timeout=timeout, headers=self.headers) as client:

            async def ask(request: JsonObject) -> Outcome:
                return await self._ask(client, {**request, "skill": given}, (token, *self.headers.values()))

            yield ask

    async def _ask(
        self, client: aiohttp.ClientSession, request: JsonObject, secrets: tuple[str, ...]
    ) -> Outcome:
        try:
            async with client.post(self.url, json=request, allow_redirects=False) as response:
                told = await read_json(response, self.name)
                status = response.status
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise InfrastructureError(
                f"{self.name} can't be asked: {type(error).__name__}: {error}. Start it, or check the address."
            ) from error
        if status == 200:
            return read_outcome(_plain(told, self.name), agent=self.name)
        said = str(told)[:500]
        for each in secrets:
            said = said.replace(each, "***")
        if for_now(status):
            raise InfrastructureError(f"{self.name} answered {status}: {said}")
        raise ModelError(
            f"{self.name} answered {status} ({said or 'nothing'}). Expected 200 and an outcome as JSON: check the "
            "address, which is not left for another, and the headers that it wants (executor_options.headers)."
        )


def _plain(told: Json, agent: str) -> Json:
    """The same, without what JSON can smuggle in and no store can keep."""
    try:
        return loads(dumps(told))
    except ValueError as error:
        raise AgentError(
            f"{agent} told no plain JSON: {error}. Tell finite numbers, not nested too deeply."
        ) from error

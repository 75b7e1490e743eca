"""What OpenRLHF's rollout actor runs for each candidate: write it, and have WER execute and reward it.

This file is copied into the phase's folder and loaded there by OpenRLHF's own Python, which has no
WER: it imports the standard library, aiohttp and OpenRLHF only. Beside the copy lies ``connection.json``
with the address and the token of the driver's evaluation service, readable by this user alone.
"""

from __future__ import annotations

import asyncio
import json
import math
import uuid
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
from openrlhf.utils.agent import SingleTurnAgentExecutor

_TRIES = 6
_REQUEST_S = 90.0
_WAIT_S = 0.25


class AgentExecutor(SingleTurnAgentExecutor):  # type: ignore[misc]
    """Answers one prompt once. The name and the missing arguments are OpenRLHF's interface."""

    def __init__(self) -> None:
        super().__init__(remote_rm_url=None)
        settings = json.loads(Path(__file__).with_name("connection.json").read_text("utf-8"))
        self._top_k = int(settings["top_k"])
        self._service = _Service(settings["url"], settings["token"])

    async def execute(
        self,
        prompt: str,
        label: str,
        sampling_params: Any,
        max_length: int,
        hf_tokenizer: Any,
        llm_engine: Any,
        images: Any = None,
    ) -> dict[str, Any]:
        """Write a candidate, or recall one that an interrupted launch wrote, and give it its reward."""
        place = json.loads(label)
        try:
            claim = await self._service.ask("claim", {**place, "request": uuid.uuid4().hex})
            engine = _Recorded(claim["recorded"]) if claim["recorded"] else llm_engine
            params = deepcopy(sampling_params)
            params.top_k = self._top_k or -1
            output: dict[str, Any] = await super().execute(
                prompt, label, params, max_length, hf_tokenizer, engine
            )
            answer = await self._service.ask("evaluate", _candidate(place, claim, output, hf_tokenizer))
            while answer.get("pending"):
                answer = await self._service.ask("result", {"state": place["state"], "index": claim["index"]})
            reward = _finite(answer["reward"])
        except _Refused:
            raise
        except Exception as error:
            await self._service.report(f"{type(error).__name__}: {error}")
            raise
        output.update(reward=reward, scores=reward, extra_logs=answer["logs"])
        return output

    async def close(self) -> None:
        """Let go of the connections; OpenRLHF never asks for it."""
        await self._service.close()


def _candidate(
    place: dict[str, Any], claim: dict[str, Any], output: dict[str, Any], tokenizer: Any
) -> dict[str, Any]:
    """Describe what was written: the exact tokens of the response, and their text."""
    start, end = output["action_ranges"][0]
    if end <= start:
        raise ValueError("vLLM answered without a single token, so there is nothing to learn from")
    tokens = [int(token) for token in output["observation_tokens"][start:end]]
    logprobs = output["rollout_log_probs"]
    return {
        "state": place["state"],
        "index": claim["index"],
        "text": tokenizer.decode(tokens, skip_special_tokens=True),
        "token_ids": tokens,
        "prompt_tokens": start,
        "logprobs": [float(value) for value in logprobs[start:end]] if logprobs else [],
        "truncated": bool(output["truncated"]),
    }


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError(f"the evaluation service answered with the reward {value!r}")
    return float(value)


class _Recorded:
    """Stands in for the engine: answers with the tokens that an interrupted launch wrote."""

    def __init__(self, recorded: dict[str, Any]) -> None:
        self._recorded = recorded

    async def generate(self, prompt_token_ids: list[int], sampling_params: Any, **_: Any) -> Any:
        """Give the recorded answer in the shape of vLLM's."""
        tokens, logprobs = self._recorded["token_ids"], self._recorded["logprobs"]
        limit = sampling_params.max_tokens
        known = [
            {token: SimpleNamespace(logprob=value)} for token, value in zip(tokens, logprobs, strict=False)
        ]
        finish = "length" if limit is not None and len(tokens) >= limit else "stop"
        output = SimpleNamespace(token_ids=tokens, finish_reason=finish, logprobs=known or None)
        return SimpleNamespace(outputs=[output])


class _Refused(Exception):
    """The service knows why, and has told the user."""


class _Service:
    """Talks to the driver; a lost connection is tried again, an answer in the negative is final."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}"}
        self._session: aiohttp.ClientSession | None = None

    async def ask(self, what: str, body: dict[str, Any]) -> dict[str, Any]:
        """Post one question.

        Raises:
            RuntimeError: The service can't be reached.
            _Refused: It stops the training.
        """
        for attempt in range(_TRIES):
            try:
                async with self._open().post(f"{self._url}/{what}", json=body) as response:
                    if response.status != 200:
                        raise _Refused(f"WER stops the training ({response.status} {await response.text()})")
                    return dict(await response.json())
            except (TimeoutError, aiohttp.ClientConnectionError) as error:
                if attempt + 1 == _TRIES:
                    raise RuntimeError(
                        f"WER's evaluation service does not answer ({type(error).__name__}): the program that "
                        "started this training has ended, or this machine can't reach it"
                    ) from error
            await asyncio.sleep(_WAIT_S * 2.0**attempt)
        raise AssertionError("unreachable")

    async def report(self, what: str) -> None:
        """Tell the driver of a fault, if it still listens."""
        try:
            async with self._open().post(f"{self._url}/fault", json={"what": what[:2000]}):
                pass
        except (TimeoutError, aiohttp.ClientError):
            return

    async def close(self) -> None:
        """Safe to call twice."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                headers=self._headers,
                timeout=aiohttp.ClientTimeout(total=_REQUEST_S),
                connector=aiohttp.TCPConnector(limit=0),
            )
        return self._session

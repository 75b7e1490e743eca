"""Candidates without learning: vLLM in OpenRLHF's Python, kept open between requests."""

from __future__ import annotations

import asyncio
import json
import os
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attrs import define, field

from wer.contracts import OptimizerSetup
from wer.errors import OptimizerError
from wer.records import Candidate, RefinementState, Usage, derive_seed
from wer.writing import parse_candidate
from wer_openrlhf import processes
from wer_openrlhf.launching import devices, environment
from wer_openrlhf.options import OpenRlhfOptions
from wer_openrlhf.rendering import Renderer

_SCRIPT = Path(__file__).with_name("write.py")


@define(kw_only=True, eq=False)
class Generator:
    """A policy that is only asked, in a process of its own that starts at the first request.

    Attributes:
        model: A Hugging Face folder, or a name on the hub.
    """

    setup: OptimizerSetup
    options: OpenRlhfOptions
    model: str
    renderer: Renderer
    _process: asyncio.subprocess.Process | None = field(default=None, init=False)
    _listener: asyncio.Task[None] | None = field(default=None, init=False)
    _tail: deque[str] = field(factory=lambda: deque(maxlen=20), init=False)

    async def write(
        self, states: Sequence[RefinementState], k: int, seed: int
    ) -> dict[str, tuple[Candidate, ...]]:
        """Write k candidates a state; equal seeds and weights give equal candidates.

        Raises:
            OptimizerError: vLLM did not start, or ended, with its last lines.
        """
        request = {
            "prompts": [self.renderer.prompt(state) for state in states],
            "seeds": [derive_seed(seed, state.id) for state in states],
            "k": k,
            "temperature": self.setup.temperature,
            "top_k": self.setup.top_k,
            "max_tokens": self.setup.max_response_tokens,
        }
        if self._process is None:
            await self._start()
        answer = await self._ask(request)
        return {
            state.id: self._candidates(state, group)
            for state, group in zip(states, answer["groups"], strict=True)
        }

    async def close(self) -> None:
        """End vLLM. Safe to call twice."""
        if self._process is None:
            return
        await processes.end(self._mark)
        await self._process.wait()
        if self._listener is not None:
            await asyncio.gather(self._listener, return_exceptions=True)
        self._process = self._listener = None

    @property
    def _mark(self) -> str:
        return f"writer-{os.getpid()}-{id(self)}"

    async def _start(self) -> None:
        self.setup.progress("starting vLLM to write candidates")
        self._process = await asyncio.create_subprocess_exec(
            *processes.tied([self.options.interpreter, "-u", str(_SCRIPT)]),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment({**devices(self.setup), processes.MARK: self._mark}),
            start_new_session=True,
            limit=1 << 28,
        )
        self._listener = asyncio.create_task(self._listen(self._process))
        settings = {
            "model": self.model,
            "max_model_len": self.renderer.max_prompt_tokens + self.setup.max_response_tokens,
            "tensor_parallel": self.options.tensor_parallel,
            "gpu_memory": self.options.gpu_memory,
            "enforce_eager": self.options.enforce_eager,
        }
        await self._ask(settings, within_s=self.options.start_timeout_s)

    async def _ask(self, request: dict[str, Any], *, within_s: float | None = None) -> dict[str, Any]:
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        try:
            async with asyncio.timeout(within_s):
                process.stdin.write(json.dumps(request).encode() + b"\n")
                await process.stdin.drain()
                line = await process.stdout.readline()
        except (ConnectionError, TimeoutError) as error:
            await self.close()
            raise OptimizerError(self._broken(f"does not answer ({type(error).__name__})")) from error
        except asyncio.CancelledError:
            await self.close()
            raise
        if not line:
            await self.close()
            raise OptimizerError(self._broken("ended before it answered"))
        return dict(json.loads(line))

    def _broken(self, what: str) -> str:
        return f"vLLM, which writes for the openrlhf backend, {what}. Its last lines:\n" + "\n".join(
            self._tail
        )

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while raw := await process.stderr.readline():
            self._tail.append(raw.decode("utf-8", "replace").rstrip()[:500])

    def _candidates(self, state: RefinementState, group: dict[str, Any]) -> tuple[Candidate, ...]:
        candidates = []
        for index, answer in enumerate(group["answers"]):
            tokens = tuple(answer["token_ids"])
            usage = Usage(
                calls=1,
                prompt_tokens=0 if index else group["prompt_tokens"],
                completion_tokens=len(tokens),
            )
            self.setup.charge(usage)
            candidates.append(
                parse_candidate(answer["text"], state=state, index=index, token_ids=tokens, usage=usage)
            )
        return tuple(candidates)

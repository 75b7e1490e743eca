"""The batch engine: one thread owns the model and moves all rows on by one pass at a time.

Decoding is bound by reading the weights, so sixteen rows cost little more than one. Rows
join and leave between passes; the prompt of a new row is read beside the next tokens
of the others, and only from where no earlier row has read it already.
"""

from __future__ import annotations

import atexit
import queue
import threading
from collections.abc import Sequence
from concurrent.futures import Future

import torch

from wer.records import Sampling
from wer_torch.attention import NAME, Segment, positions
from wer_torch.grammar import Constraint
from wer_torch.prefixes import PrefixCache, shared
from wer_torch.rows import Completion, Row
from wer_torch.sampling import choose
from wer_torch.weights import Loaded

_PASS_TOKENS = 512  # prompt tokens read in one pass
_WORTH_WAITING = 64  # tokens that another row is about to read anyway


class Engine:
    """Answers prompts of token ids. Safe to use from any thread.

    Args:
        batch: The most rows at work.
        cache_bytes: Keys and values of finished rows to keep.
    """

    def __init__(self, loaded: Loaded, *, batch: int, cache_bytes: int) -> None:
        loaded.model.set_attn_implementation(NAME)
        self._batch = batch
        self._inbox: queue.SimpleQueue[Row | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._stopped = ""
        worker = _Worker(loaded, self._inbox, batch, PrefixCache(limit=cache_bytes))
        self._thread = threading.Thread(target=self._work, args=(worker,), name="wer-torch", daemon=True)
        self._thread.start()
        atexit.register(self.close)  # a thread inside torch at the very end would abort the process

    def submit(
        self, prompt: Sequence[int], most: int, sampling: Sampling, constraint: Constraint | None
    ) -> Future[Completion]:
        """Queue one prompt. Cancelling the future frees its row at the next pass.

        Args:
            most: Tokens that may be written, at least 1.
        """
        row = Row(prompt=prompt, most=most, sampling=sampling, constraint=constraint)
        with self._lock:
            if self._stopped:
                row.fail(self._stopped)
            else:
                self._inbox.put(row)
        return row.future

    def close(self) -> None:
        """Stop after the pass that is running, and free all keys and values. Safe to call twice."""
        self._stop("the model was closed while it was asked")
        self._thread.join()
        atexit.unregister(self.close)

    def _stop(self, why: str) -> None:
        with self._lock:
            self._stopped = self._stopped or why
            self._inbox.put(None)

    def _work(self, worker: _Worker) -> None:
        try:
            worker.run()
        except Exception as error:
            self._stop(f"the torch engine failed: {type(error).__name__}: {error}")
        with self._lock:
            rows = [*worker.rows, *worker.waiting]
            while not self._inbox.empty():
                row = self._inbox.get_nowait()
                rows += [row] if row is not None else []
        for row in rows:
            row.fail(self._stopped)


class _Worker:
    """What happens in the engine's thread."""

    def __init__(
        self, loaded: Loaded, inbox: queue.SimpleQueue[Row | None], batch: int, cache: PrefixCache
    ) -> None:
        self.rows: list[Row] = []
        self.waiting: list[Row] = []
        self._inbox = inbox
        self._batch = batch
        self._cache = cache
        self._ends = loaded.end_tokens
        self._device = loaded.model.device
        self._decoder = getattr(loaded.model, loaded.model.base_model_prefix)
        self._head = loaded.model.get_output_embeddings()
        config = loaded.model.config.get_text_config()
        heads = config.num_attention_heads
        width = getattr(config, "head_dim", None) or config.hidden_size // heads
        self._shape = (config.num_hidden_layers, 2, getattr(config, "num_key_value_heads", heads), width)

    @torch.inference_mode()
    def run(self) -> None:
        """Work until the inbox says None."""
        while self._listen():
            self.rows = [row for row in self.rows if not row.future.cancelled()]
            self.waiting = [row for row in self.waiting if not row.future.cancelled()]
            self._admit()
            if self.rows:
                self._pass()

    def _listen(self) -> bool:
        """Take what has arrived; sleep when there is nothing to do. False is the end."""
        idle = not self.rows and not self.waiting
        while idle or not self._inbox.empty():
            row = self._inbox.get()
            if row is None:
                return False
            self.waiting.append(row)
            idle = False
        return True

    def _admit(self) -> None:
        """Give waiting rows a place, copying the beginning that some row has read already.

        A row whose beginning another row is reading right now waits until it is there.
        """
        for row in list(self.waiting):
            if len(self.rows) >= self._batch:
                return
            known, length = self._cache.find(row.prompt_tokens, [other.known for other in self.rows])
            unread = [shared(other.prompt_tokens, row.prompt_tokens) for other in self.rows if other.reading]
            if max(unread, default=0) > length + _WORTH_WAITING:
                continue
            self.waiting.remove(row)
            layers, two, heads, width = self._shape
            block = torch.empty(
                (layers, two, heads, row.capacity, width), dtype=self._head.weight.dtype, device=self._device
            )
            length = min(length, len(row.prompt_tokens) - 1)  # the last token's logits are needed
            if known is not None:
                block[:, :, :, :length] = known.block[:, :, :, :length]
            row.begin(block, length)
            self.rows.append(row)

    def _pass(self) -> None:
        """Run the model once over the pending tokens of all rows, and choose a token for each."""
        budget = _PASS_TOKENS
        segments: list[Segment] = []
        tokens: list[int] = []
        taking: list[Row] = []
        for row in self.rows:
            pending = row.pending(budget)
            if pending:
                budget -= len(pending) - 1
                segments.append(Segment(block=row.block, start=row.read, count=len(pending)))
                tokens += pending
                taking.append(row)
        hidden = self._decoder(
            input_ids=torch.tensor([tokens], device=self._device),
            position_ids=positions(segments, self._device),
            use_cache=False,
            segments=segments,
        ).last_hidden_state[0]  # (N, D)
        lasts: list[int] = []
        at = -1
        speaking: list[Row] = []
        for row, segment in zip(taking, segments, strict=True):
            at += segment.count
            row.read += segment.count
            if not row.reading:
                lasts.append(at)
                speaking.append(row)
        if speaking:
            logits = self._head(hidden[lasts]).float().cpu()  # (R, V)
            for row, scores in zip(speaking, logits, strict=True):
                self._speak(row, scores)

    def _speak(self, row: Row, scores: torch.Tensor) -> None:
        try:
            allowed = None if row.constraint is None else row.constraint.allowed()
            over = row.write(choose(scores, allowed, row.sampling, row.dice), self._ends)
        except ValueError as error:
            self.rows.remove(row)
            row.fail(str(error))
            return
        if over:
            self.rows.remove(row)
            self._cache.keep(row.known)
            row.finish()

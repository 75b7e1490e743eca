"""The policy pi_theta in torch: prompts in, sampled answers and their log-probabilities out.

One definition of the policy serves sampling and training. A step's distribution is the
softmax of ``logits / temperature`` over its *support*: the top-k tokens of the policy that
sampled. The support is part of the sampled action and stays fixed while the policy
learns, so that the ratio of Eq. 6 compares two distributions over the same tokens. Logits
on the support are computed in float32 from the same hidden states by the same code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from attrs import frozen
from torch.nn.functional import embedding, linear
from torch.utils.checkpoint import checkpoint

from wer.errors import ConfigError, OptimizerError
from wer_grpo.branches import Packed

_CHUNK = 128


@frozen(kw_only=True, eq=False)
class Answer:
    """What the policy wrote after a prompt.

    Shapes use ``T`` for the tokens of the answer and ``S`` for the tokens of a support.

    Attributes:
        token_ids: Shape ``(T,)``; ends with an end token unless it was cut.
        logprobs: Shape ``(T,)``, in nats, of the distribution that was sampled from.
        support: Shape ``(T, S)``, ids of the tokens that could have been sampled; None
            is all tokens.
    """

    token_ids: torch.Tensor
    logprobs: torch.Tensor
    support: torch.Tensor | None


@frozen(kw_only=True, eq=False)
class Scores:
    """Log-probabilities of the answers of one group, in nats.

    Attributes:
        logprobs: K tensors ``(T_k,)``.
        entropy: Mean entropy of the steps' distributions, in nats.
    """

    logprobs: tuple[torch.Tensor, ...]
    entropy: float


@frozen(kw_only=True)
class Policy:
    """A causal language model as the policy.

    Attributes:
        model: Its attention is `branch_attention`; adapters, if any, are in place.
        temperature: Above 0; greedy choice is the sampler's business.
        top_k: 0 is no limit.
    """

    model: Any
    temperature: float
    top_k: int

    @property
    def device(self) -> torch.device:
        """Where the weights are, and so where its inputs must be."""
        return cast("torch.device", self.model.device)

    def hidden(self, tokens: torch.Tensor, positions: torch.Tensor, layout: object) -> torch.Tensor:
        """Run the decoder, without the vocabulary's projection.

        Args:
            tokens: Shape ``(B, T)``.
            positions: Shape ``(B, T)``.

        Returns:
            Shape ``(B, T, D)``.
        """
        decoder = getattr(self.model, self.model.base_model_prefix)
        outputs = decoder(input_ids=tokens, position_ids=positions, use_cache=False, layout=layout)
        return cast("torch.Tensor", outputs.last_hidden_state)

    def choose_support(self, hidden: torch.Tensor) -> torch.Tensor | None:
        """Find the top-k tokens of each step, most likely first; shape ``(T, top_k)``."""
        head = self.model.get_output_embeddings()
        if not 0 < self.top_k < head.weight.shape[0]:
            return None
        return torch.cat([head(part).topk(self.top_k).indices for part in torch.split(hidden, _CHUNK)])

    def distribution(self, hidden: torch.Tensor, support: torch.Tensor | None) -> torch.Tensor:
        """Give the log-probabilities of the tokens in the support.

        Args:
            hidden: Shape ``(T, D)``.
            support: Shape ``(T, S)``, or None for all tokens.

        Returns:
            Shape ``(T, S)``, in nats, at least float32.
        """
        head = self.model.get_output_embeddings()
        precision = torch.promote_types(hidden.dtype, torch.float32)
        if support is None:
            logits = linear(hidden, head.weight).to(precision)
        else:
            rows = embedding(support, head.weight).to(precision)  # (T, S, D)
            logits = (rows @ hidden.to(precision)[:, :, None]).squeeze(-1)
        return (logits / self.temperature).log_softmax(dim=-1)

    def score(self, prompt: torch.Tensor, answers: Sequence[Answer]) -> Scores:
        """Score a group in one pass in which its prompt appears once.

        Args:
            prompt: Shape ``(P,)``.
        """
        hidden = self._after(prompt, answers)
        tokens = torch.cat([answer.token_ids for answer in answers])
        support = None
        if all(answer.support is not None for answer in answers):
            support = torch.cat([cast("torch.Tensor", answer.support) for answer in answers])
        return self._scores(hidden, tokens, support, [len(answer.token_ids) for answer in answers])

    def recall(self, prompt: torch.Tensor, tokens: Sequence[torch.Tensor]) -> tuple[Answer, ...]:
        """Make answers of stored tokens: their support and log-probabilities as the policy has them now.

        A sampled token that just fell out of its step's top-k, because numbers round
        differently in another pass, takes the place of the least likely token.
        """
        blank = [Answer(token_ids=ids, logprobs=ids[:0], support=None) for ids in tokens]
        lengths = [len(ids) for ids in tokens]
        with torch.no_grad():
            hidden = self._after(prompt, blank)
            support = self.choose_support(hidden)
            flat = torch.cat(list(tokens))
            if support is not None:
                missing = ~(support == flat[:, None]).any(dim=1)
                support[missing, -1] = flat[missing]
            logprobs = self._scores(hidden, flat, support, lengths).logprobs
        supports = [None] * len(tokens) if support is None else torch.split(support, lengths)
        return tuple(
            Answer(token_ids=ids, logprobs=values, support=tokens_of)
            for ids, values, tokens_of in zip(tokens, logprobs, supports, strict=True)
        )

    def _after(self, prompt: torch.Tensor, answers: Sequence[Answer]) -> torch.Tensor:
        """Give the hidden states that predict the answers' tokens, shape ``(sum T_k, D)``."""
        branches = [len(answer.token_ids) - 1 for answer in answers]
        layout = Packed.of(len(prompt), branches, prompt.device)
        tokens = torch.cat([prompt, *(answer.token_ids[:-1] for answer in answers)])[None]
        hidden = self.hidden(tokens, layout.positions, layout)[0]
        last, *rest = torch.split(hidden[len(prompt) - 1 :], [1, *branches])
        return torch.cat([part for branch in rest for part in (last, branch)])

    def _scores(
        self, hidden: torch.Tensor, tokens: torch.Tensor, support: torch.Tensor | None, lengths: list[int]
    ) -> Scores:
        chosen, entropies = [], []
        for start in range(0, len(tokens), _CHUNK):
            part = slice(start, start + _CHUNK)
            here = None if support is None else support[part]
            logprobs, entropy = checkpoint(
                self._chosen, hidden[part], tokens[part], here, use_reentrant=False, preserve_rng_state=False
            )
            chosen.append(logprobs)
            entropies.append(entropy.detach())
        mean = float(torch.cat(entropies).mean())
        return Scores(logprobs=torch.split(torch.cat(chosen), lengths), entropy=mean)

    def _chosen(
        self, hidden: torch.Tensor, tokens: torch.Tensor, support: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        logprobs = self.distribution(hidden, support)
        place = tokens[:, None] if support is None else (support == tokens[:, None]).int().argmax(1)[:, None]
        entropy = -(logprobs.exp() * logprobs).sum(dim=-1)
        return logprobs.gather(1, place).squeeze(1), entropy


def check_writer(policy: Policy, prompt: torch.Tensor) -> None:
    """Refuse a model whose group pass would not equal separate sequences.

    Raises:
        ConfigError: The model scales its logits.
        OptimizerError: Sharing the prompt changes what the model computes, for example
            because a layer keeps a recurrent state.
    """
    for name in ("final_logit_softcapping", "logit_scale", "logits_scaling"):
        if getattr(policy.model.config, name, None) not in (None, 0, 1, 1.0):
            raise ConfigError(f"the writer's configuration has {name}, which GRPO here does not compute")
    ids = [prompt.flip(0)[:3], prompt[:2]]
    answers = [Answer(token_ids=each, logprobs=each[:0], support=None) for each in ids]
    with torch.no_grad():
        together = policy.score(prompt, answers).logprobs
        alone = [policy.score(prompt, [answer]).logprobs[0] for answer in answers]
        worst = max(float((a - b).abs().max()) for a, b in zip(together, alone, strict=True))
    if not worst < 0.3:
        raise OptimizerError(
            f"the writer computes other log-probabilities when a group shares its prompt (off by {worst:.3g} "
            "nats): its layers do more than attend. Choose a writer whose layers are all plain attention."
        )

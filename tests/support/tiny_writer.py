"""A writer of two layers and thirty letters, and an evaluation that pays for letters: GRPO in seconds."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM, Qwen2Tokenizer

from wer.contracts import OptimizerSetup
from wer.records import Candidate, Experience, RefinementState, Reward, Skill, Task

LETTERS = "abcdefghijklmnopqrstuvwxyz0123"
OPTIONS = {"dtype": "float64", "threads": 1, "batch": 2, "lora_rank": 0, "learning_rate": 1e-3}
VOCABULARY = {token: index for index, token in enumerate(["<pad>", "<end>", *LETTERS])}


def make_folder(
    folder: Path, *, seed: int = 0, dtype: torch.dtype = torch.float64, words: Sequence[str] = ()
) -> Path:
    """Write a random Qwen2 and its tokenizer; the prompt is the request's first letters.

    Args:
        words: Further tokens, such as whole answers.
    """
    tokenizer = Qwen2Tokenizer(
        vocab=VOCABULARY, merges=[], eos_token="<end>", pad_token="<pad>", unk_token="<pad>"
    )
    tokenizer.add_tokens(list(words))
    tokenizer.chat_template = "{{ messages[-1]['content'][:80] }}"
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = Qwen2ForCausalLM(
            Qwen2Config(
                vocab_size=len(VOCABULARY) + len(words),
                hidden_size=32,
                intermediate_size=48,
                num_hidden_layers=2,
                num_attention_heads=4,
                num_key_value_heads=2,
                max_position_embeddings=512,
                tie_word_embeddings=False,
                eos_token_id=1,
                pad_token_id=0,
                bos_token_id=None,
                initializer_range=0.15,
            )
        )
    model.to(dtype).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def setup(folder: Path | str, *, options: Mapping[str, Any] | None = None, **changes: Any) -> OptimizerSetup:
    def no_model() -> Any:
        raise AssertionError("the grpo backend holds the weights itself")

    values: dict[str, Any] = {
        "writer": str(folder),
        "open_model": no_model,
        "k": 4,
        "phases": 1,
        "seed": 0,
        "temperature": 0.95,
        "top_k": 12,
        "max_prompt_tokens": 400,
        "max_response_tokens": 12,
        "options": {**OPTIONS, **(options or {})},
        "progress": lambda line: None,
        "check": lambda: None,
        "charge": lambda usage: None,
        "record": lambda step, metrics: None,
    }
    return OptimizerSetup(**{**values, **changes})


def states(count: int, *, phase: int = 0, round: int = 0) -> list[RefinementState]:
    return [
        RefinementState(
            task=Task(id=f"t{number}", env="e", domain="d", split="train", turns=(LETTERS[number % 20] * 3,)),
            skill=Skill(name="s", body=f"b{number}"),
            evidence=(),
            phase=phase,
            round=round,
        )
        for number in range(count)
    ]


def share_of_early_letters(candidate: Candidate) -> float:
    """Pay for letters of the first half of the alphabet."""
    return sum(letter < "n" and letter.isalpha() for letter in candidate.text) / max(len(candidate.text), 1)


class PaidByLetters:
    """An `Evaluate` that runs nothing: the text alone decides the reward, and groups are recorded."""

    def __init__(
        self,
        pay: Callable[[Candidate], float] = share_of_early_letters,
        *,
        arrange: Callable[[list[float]], list[float]] = list,
        fail_at: int | None = None,
    ) -> None:
        self.groups: dict[str, list[Candidate]] = {}
        self.pay = pay
        self.arrange = arrange
        self.fail_at = fail_at
        self.calls = 0
        self.means: list[float] = []

    async def __call__(
        self, proposals: Sequence[tuple[RefinementState, Candidate]], n: int | None = None
    ) -> Sequence[Experience]:
        self.calls += 1
        groups: dict[str, list[Candidate]] = {}
        for state, candidate in proposals:
            groups.setdefault(state.id, []).append(candidate)
        self.groups |= groups
        if self.calls == self.fail_at:
            raise RuntimeError("killed")
        earned = {key: [self.pay(candidate) for candidate in group] for key, group in groups.items()}
        flat = [value for values in earned.values() for value in values]
        self.means.append(sum(flat) / len(flat))
        paid = {key: iter(self.arrange(values)) for key, values in earned.items()}
        return [self._experience(state, candidate, next(paid[state.id])) for state, candidate in proposals]

    def recorded(self, state: RefinementState) -> Sequence[Candidate]:
        return self.groups.get(state.id, ())

    def _experience(self, state: RefinementState, candidate: Candidate, paid: float) -> Experience:
        reward = Reward(fmt=0.0, task=paid, len=0.0, total=paid / 3)
        return Experience(state=state, candidate=candidate, rollouts=(), reward=reward)

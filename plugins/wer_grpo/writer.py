"""The writer in memory: tokenizer, model, adapters, and prompts as token ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from attrs import frozen
from peft import LoraConfig, LoraModel
from transformers import AttentionInterface, AutoModelForCausalLM
from transformers.utils import logging

from wer.contracts import OptimizerSetup
from wer.errors import ConfigError, PromptTooLong
from wer.records import Candidate, Message, RefinementState, Usage
from wer.writing import parse_candidate, revision_messages
from wer_grpo.asking import open_tokenizer, rendered
from wer_grpo.branches import NAME, branch_attention
from wer_grpo.options import GrpoOptions
from wer_grpo.policy import Answer, Policy, check_writer
from wer_grpo.sources import writer_folder

_DTYPES = {"bfloat16": torch.bfloat16, "float32": torch.float32, "float64": torch.float64}


@frozen(kw_only=True)
class Writer:
    """A policy that reads states and writes candidates.

    Attributes:
        name: As the user named it.
        model: The model as it is trained; with adapters, PEFT's `LoraModel` around it.
        tokenizer: Has a chat template.
        end_tokens: Any of them ends an answer.
        max_prompt_tokens: What the run and the model's context allow.
    """

    name: str
    model: Any
    policy: Policy
    tokenizer: Any
    end_tokens: frozenset[int]
    max_prompt_tokens: int

    def prompt(self, state: RefinementState) -> torch.Tensor:
        """Give the request for a revision as token ids, shape ``(P,)``.

        Raises:
            PromptTooLong: The request does not fit; it is never cut.
        """
        ids = self.encode(revision_messages(state))
        if len(ids) > self.max_prompt_tokens:
            raise PromptTooLong(
                f"the prompt for task {state.task.id!r} has {len(ids)} tokens and the limit is "
                f"{self.max_prompt_tokens}: WER never truncates evidence. Raise training.max_prompt_tokens if the "
                "writer's context allows it, or leave the task out."
            )
        return ids

    def encode(self, request: Sequence[Message]) -> torch.Tensor:
        """Give a request as token ids, shape ``(P,)``, however many they are."""
        text = rendered(self.tokenizer, request, self.name)
        ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return torch.tensor(ids, device=self.policy.device)

    def candidate(
        self, state: RefinementState, index: int, prompt: torch.Tensor, answer: Answer
    ) -> Candidate:
        """Read an answer of the policy."""
        return parse_candidate(
            self.text(answer),
            state=state,
            index=index,
            token_ids=tuple(answer.token_ids.tolist()),
            logprobs=tuple(answer.logprobs.tolist()),
            usage=self.usage(prompt, index, answer),
        )

    def text(self, answer: Answer) -> str:
        """Give what the policy wrote, without its special tokens."""
        text: str = self.tokenizer.decode(answer.token_ids.tolist(), skip_special_tokens=True)
        return text

    def usage(self, prompt: torch.Tensor, index: int, answer: Answer) -> Usage:
        """What an answer cost. The prompt is read once a group, so the first answer bears it."""
        return Usage(
            calls=1,
            prompt_tokens=0 if index else len(prompt),
            completion_tokens=len(answer.token_ids),
        )

    def trainable(self) -> dict[str, torch.nn.Parameter]:
        """Give the weights that learn, by name."""
        return {name: weight for name, weight in self.model.named_parameters() if weight.requires_grad}


def open_writer(setup: OptimizerSetup, options: GrpoOptions) -> Writer:
    """Load the writer, put adapters in place, and check that it can share a prompt.

    Raises:
        ConfigError: The writer is not a causal language model with a chat template that
            this machine can read.
    """
    if options.threads:
        torch.set_num_threads(options.threads)
    device = _device(options)
    dtype = _dtype(options, device)
    AttentionInterface.register(NAME, branch_attention)
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    folder = writer_folder(setup.writer, setup.progress)
    tokenizer = open_tokenizer(folder, setup.writer)
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation=NAME)
    except Exception as error:  # configurations and weights raise whatever comes
        raise ConfigError(
            f"the grpo backend cannot train the writer {setup.writer!r} ({error}). It needs weights: a Hugging Face "
            "folder of a causal language model, a .gguf file, or local/NAME of `wer models list`."
        ) from error
    model = model.to(device)
    policy = Policy(model=model, temperature=setup.temperature or 1.0, top_k=setup.top_k)
    check_writer(policy, torch.tensor(tokenizer("You revise the written skill.")["input_ids"], device=device))
    context = getattr(model.config, "max_position_embeddings", None) or setup.max_prompt_tokens
    return Writer(
        name=setup.writer,
        model=_adapted(model, options, setup.seed),
        policy=policy,
        tokenizer=tokenizer,
        end_tokens=_end_tokens(model, tokenizer),
        max_prompt_tokens=min(setup.max_prompt_tokens, context - setup.max_response_tokens),
    )


def _adapted(model: Any, options: GrpoOptions, seed: int) -> Any:
    """Freeze the model and put seeded adapters in place; or, with rank 0, leave all weights free."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0  # the ratio of Eq. 6 compares one policy with itself
    adapted = model
    if options.lora_rank:
        targets: Any = list(options.lora_targets)
        config = LoraConfig(
            r=options.lora_rank,
            lora_alpha=options.lora_alpha,  # type: ignore[arg-type]
            target_modules="all-linear" if targets == ["all-linear"] else targets,
            task_type="CAUSAL_LM",
        )
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            adapted = LoraModel(model, {"default": config}, "default")
    model.eval()
    if options.gradient_checkpointing:
        # The older name, which transformers 5.0 has, is deprecated in later releases.
        enable = (
            getattr(model, "activation_checkpointing_enable", None) or model.gradient_checkpointing_enable
        )
        enable({"use_reentrant": False})
        model.train()
    return adapted


def _end_tokens(model: Any, tokenizer: Any) -> frozenset[int]:
    named = getattr(model.generation_config, "eos_token_id", None)
    ids: Iterable[int | None] = named if isinstance(named, list) else [named]
    return frozenset(token for token in [*ids, tokenizer.eos_token_id] if token is not None)


def _device(options: GrpoOptions) -> torch.device:
    if options.device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("optimizer.grpo.device is 'cuda', but torch finds no CUDA here. Set it to 'auto'.")
    if options.device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(options.device)


def _dtype(options: GrpoOptions, device: torch.device) -> torch.dtype:
    if options.dtype != "auto":
        return _DTYPES[options.dtype]
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float32
    flags: Callable[[], dict[str, object]] = getattr(torch.cpu, "get_capabilities", dict)
    return torch.bfloat16 if flags().get("avx512_bf16") or flags().get("amx_bf16") else torch.float32

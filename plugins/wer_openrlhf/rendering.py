"""Prompts as the writer's own chat template has them, so that OpenRLHF is given finished text."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from attrs import define
from jinja2 import TemplateError
from transformers import AutoConfig, AutoTokenizer

from wer.contracts import OptimizerSetup
from wer.errors import ConfigError, PromptTooLong
from wer.records import RefinementState
from wer.writing import revision_messages


@define(kw_only=True, slots=False)
class Renderer:
    """Renders states for one writer.

    Attributes:
        model: A Hugging Face folder, or the name of a model on the hub.
    """

    model: str
    setup: OptimizerSetup

    @cached_property
    def max_prompt_tokens(self) -> int:
        """What the run and the model's context allow."""
        config = self._loaded(AutoConfig)
        context = getattr(config, "max_position_embeddings", None)
        allowed = self.setup.max_prompt_tokens
        if not isinstance(context, int):
            return allowed
        if context <= self.setup.max_response_tokens:
            raise ConfigError(
                f"training.max_response_tokens is {self.setup.max_response_tokens} and the context of the writer "
                f"{self.model!r} {context}, which leaves no room for a prompt. Lower it."
            )
        return min(allowed, context - self.setup.max_response_tokens)

    def check(self) -> None:
        """Try the writer's context, tokenizer and chat template, before anything is paid.

        Raises:
            ConfigError: One of them is of no use.
        """
        _ = self.max_prompt_tokens
        self._rendered([{"role": "system", "content": "You revise."}, {"role": "user", "content": "Revise."}])

    def prompt(self, state: RefinementState) -> str:
        """Write the request for a revision as the text that the policy reads.

        Raises:
            PromptTooLong: The request does not fit; it is never cut.
        """
        chat = [{"role": message.role, "content": message.content} for message in revision_messages(state)]
        text = self._rendered(chat)
        tokens = len(self._tokenizer(text, add_special_tokens=False)["input_ids"])
        if tokens > self.max_prompt_tokens:
            raise PromptTooLong(
                f"the prompt for task {state.task.id!r} has {tokens} tokens and the limit is "
                f"{self.max_prompt_tokens}: WER never truncates evidence. Raise training.max_prompt_tokens if the "
                "writer's context allows it, or leave the task out."
            )
        return text

    def fitting(self, states: list[RefinementState]) -> list[RefinementState]:
        """Leave out the states that the loop assembled and whose prompt is too long, and say how many.

        Raises:
            PromptTooLong: A seed state does not fit.
        """
        fitting, refusals = [], []
        for state in states:
            try:
                self.prompt(state)
            except PromptTooLong as refusal:
                if state.round == 0:
                    raise
                refusals.append(refusal)
            else:
                fitting.append(state)
        if refusals:
            self.setup.progress(
                f"{len(refusals)} of {len(states)} states are over {self.max_prompt_tokens:,} prompt tokens "
                "and left out"
            )
        return fitting

    def _rendered(self, chat: list[dict[str, str]]) -> str:
        try:
            text: str = self._tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        except (TemplateError, TypeError, ValueError) as error:
            raise ConfigError(
                f"the chat template of the writer {self.model!r} refuses a request of a system and a user message "
                f"({error}). Choose a model whose template takes both, or mend its chat_template.jinja."
            ) from error
        return text

    @cached_property
    def _tokenizer(self) -> Any:
        tokenizer = self._loaded(AutoTokenizer)
        if tokenizer.chat_template is None:
            raise ConfigError(
                f"the writer {self.model!r} has no chat template: choose an instruction-tuned model."
            )
        if not tokenizer("a")["input_ids"]:  # transformers makes an empty one where the files are missing
            raise ConfigError(
                f"the writer {self.model!r} has a tokenizer that reads nothing: its vocabulary is missing. Put the "
                "model's tokenizer.json into its folder."
            )
        return tokenizer

    def _loaded(self, kind: Any) -> Any:
        try:
            return kind.from_pretrained(self.model)
        except Exception as error:  # tokenizers and configurations raise whatever comes, bare Exception too
            raise ConfigError(
                f"the openrlhf backend cannot read the writer {self.model!r} ({error}). It needs a Hugging Face "
                "folder, or the name of a model on the hub."
            ) from error

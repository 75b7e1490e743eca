"""Has the agent answer one prompt through a fake engine, and OpenRLHF make experience of its answer.

    python agent_turn.py FOLDER TOKENIZER      FOLDER holds agent.py, connection.json, prompts.jsonl, text.txt

Prints the experience of each prompt's two answers, as JSON.
"""

import asyncio
import json
import sys
from pathlib import Path
from types import SimpleNamespace

from openrlhf.trainer.ppo_utils.samples_generator import SamplesGenerator
from openrlhf.trainer.ray.vllm_engine import _load_agent_executor
from transformers import AutoTokenizer
from vllm import SamplingParams


class Engine:
    """Writes one text, cut where the parameters say."""

    def __init__(self, tokenizer, text):
        self.tokens = tokenizer(text)["input_ids"]
        self.asked = []

    async def generate(self, prompt_token_ids, sampling_params, multi_modal_data=None):
        self.asked.append(sampling_params)
        tokens = self.tokens[: sampling_params.max_tokens]
        finish = "length" if len(tokens) < len(self.tokens) else "stop"
        return SimpleNamespace(
            outputs=[SimpleNamespace(token_ids=tokens, text="", finish_reason=finish, logprobs=None)]
        )


async def main(folder, tokenizer, prompts, text):
    agent = _load_agent_executor(str(folder / "agent.py"))
    engine = Engine(tokenizer, text)
    params = SamplingParams(temperature=0.95, max_tokens=200)
    generator = SamplesGenerator.__new__(SamplesGenerator)
    found = []
    for line in prompts:
        answers = await asyncio.gather(
            *(agent.execute(line["prompt"], line["label"], params, 4096, tokenizer, engine) for _ in range(2))
        )
        for answer in answers:
            experience = generator._process_response_into_experience(answer, max_len=4096)
            action = experience.action_mask[0].bool()
            found.append(
                {
                    "reward": experience.rewards.item(),
                    "score": experience.scores.item(),
                    "truncated": bool(experience.truncated.item()),
                    "written": tokenizer.decode(experience.sequences[0][1:][action]),
                    "logs": {key: value.item() for key, value in experience.info.items()},
                }
            )
    print(json.dumps({"found": found, "top_k": [params.top_k for params in engine.asked]}))


folder = Path(sys.argv[1])
asyncio.run(
    main(
        folder,
        AutoTokenizer.from_pretrained(sys.argv[2]),
        [json.loads(line) for line in (folder / "prompts.jsonl").read_text("utf-8").splitlines()],
        (folder / "text.txt").read_text("utf-8"),
    )
)

"""The trainer's place: reads prompts, asks the agent, says its steps, leaves checkpoints and a model folder."""

import asyncio
import importlib.util
import json
import os
import random
import shutil
import sys
import time
from pathlib import Path
from types import SimpleNamespace

FIGURES = {
    "ppo_clip_ratio": 0.0,
    "entropy_loss": 1.5,
    "actor_grad_norm": 0.1,
    "actor_lr": 1e-06,
    "ppo_kl": 0.0,
    "rollout/truncated_rate": 1.0,
    "timing/ppo_train": 0.5,
    "timing/broadcast": 0.25,
}


class Engine:
    async def generate(self, prompt_token_ids, sampling_params, **_):
        letters = random.choices(b"abcdefgh", k=0 if os.environ.get("STAND_IN") == "mute" else 8)
        answer = SimpleNamespace(token_ids=letters, finish_reason="length", logprobs=None)
        return SimpleNamespace(outputs=[answer])


class Tokenizer:
    def decode(self, tokens, skip_special_tokens):
        return bytes(tokens).decode()


def flags():
    words = sys.argv[1:]
    return {
        word: words[place + 1]
        for place, word in enumerate(words)
        if word.startswith("--") and place + 1 < len(words)
    }


def agent(file):
    spec = importlib.util.spec_from_file_location("agent_module", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.AgentExecutor()


async def together(tasks):
    return await asyncio.gather(*tasks)


def train(given):
    mood = os.environ.get("STAND_IN", "")
    if mood == "never starts":
        print("(PPOTrainer pid=1) waiting for a GPU", flush=True)
        time.sleep(3600)
    if mood == "dead actor":
        print("ray.exceptions.ActorDiedError: The actor died unexpectedly.\n\tclass_name: PolicyModelActor")
        sys.exit(1)
    executor = agent(given["--train.agent_func_path"])
    loop = asyncio.new_event_loop()
    rows = [json.loads(line) for line in Path(given["--data.prompt_dataset"]).read_text().splitlines()]
    checkpoints = Path(given["--ckpt.path"]) / "_actor"
    latest = checkpoints / "latest"
    began = (
        json.loads((checkpoints / latest.read_text() / "place.json").read_text()) if latest.exists() else {}
    )
    step, done = began.get("step", 0), began.get("done", 0)
    batch, k = int(given["--rollout.batch_size"]), int(given["--rollout.n_samples_per_prompt"])
    for start in range(done, len(rows), batch):
        if mood == "dies half-way" and start:
            print(executor_connection(given).read_text(), flush=True)
            sys.exit(3)
        params = SimpleNamespace(max_tokens=8, top_k=-1)
        answers = loop.run_until_complete(
            together(
                executor.execute(row["prompt"], row["label"], params, 10_000, Tokenizer(), Engine())
                for row in rows[start : start + batch]
                for _ in range(k)
            )
        )
        assert all(answer["reward"] == answer["scores"] for answer in answers)
        step += 1
        loss = "nan" if mood == "no number" else "0.25"
        figures = ", ".join(f"'{name}': {value}" for name, value in {**FIGURES, "policy_loss": loss}.items())
        place = "\x1b[36m(PPOTrainer pid=1)\x1b[0m INFO 12-02 01:42:20 ppo_trainer.py"
        if mood == "quotes":
            print(f"{place}:224] Sample: ['✨ Global step {step}: {{'policy_loss': nan}}', 0.5]", flush=True)
        print("" if mood == "silent" else f"{place}:551] ✨ Global step {step}: {{{figures}}}", flush=True)
        tag = checkpoints / f"global_step{step}"
        tag.mkdir(parents=True, exist_ok=True)
        (tag / "place.json").write_text(json.dumps({"step": step, "done": start + batch}))
        latest.write_text(tag.name)
        if mood == f"hangs after {step}":
            sys.stdout.flush()
            time.sleep(3600)
    output = Path(given["--ckpt.output_dir"])
    if mood == "hangs in its export":
        output.mkdir()
        shutil.copy(Path(given["--actor.model_name_or_path"]) / "config.json", output)
        time.sleep(3600)
    if mood != "no model":
        shutil.copytree(given["--actor.model_name_or_path"], output)


def executor_connection(given):
    return Path(given["--train.agent_func_path"]).with_name("connection.json")


if __name__ == "__main__":
    train(flags())

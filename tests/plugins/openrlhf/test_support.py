"""The tests' own support: the real trainer runs here, and leaves nothing behind."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from support.openrlhf_cpu import CPU_FLAGS, make_policy, pretend_gpus, python, variables

pytestmark = [pytest.mark.openrlhf, pytest.mark.slow]

REWARD = """\
def reward_func(queries, prompts, labels):
    return {"rewards": 0.25, "scores": 0.25, "extra_logs": {"length": float(len(queries[0]))}}
"""


def test_the_real_trainer_trains_a_tiny_policy_and_its_ray_leaves_nothing(tmp_path: Path):
    policy = make_policy(tmp_path / "policy")
    (tmp_path / "reward.py").write_text(REWARD)
    lines = [json.dumps({"input": f"Write {word}.", "label": word}) for word in ("one", "two", "six", "ten")]
    (tmp_path / "prompts.jsonl").write_text("\n".join(lines) + "\n")

    with pretend_gpus(2) as ray:
        done = subprocess.run(
            [
                *(python(), "-m", "openrlhf.cli.train_ppo_ray", *CPU_FLAGS),
                *(
                    "--actor.model_name_or_path",
                    str(policy),
                    "--reward.remote_url",
                    str(tmp_path / "reward.py"),
                ),
                *("--data.prompt_dataset", str(tmp_path / "prompts.jsonl"), "--data.label_key", "label"),
                *("--actor.num_gpus_per_node", "1", "--vllm.num_engines", "1", "--ds.zero_stage", "2"),
                *(
                    "--rollout.batch_size",
                    "2",
                    "--rollout.n_samples_per_prompt",
                    "2",
                    "--train.batch_size",
                    "4",
                ),
                *("--algo.advantage.estimator", "dr_grpo", "--algo.kl.init_coef", "0"),
                *("--data.max_len", "64", "--rollout.max_new_tokens", "8"),
                *(
                    "--ckpt.output_dir",
                    str(tmp_path / "trained"),
                    "--ckpt.path",
                    str(tmp_path / "checkpoints"),
                ),
            ],
            env={**os.environ, **variables(), "RAY_ADDRESS": ray.address},
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=480,
        )

    assert done.returncode == 0, done.stdout[-6000:]
    assert "Global step 2" in done.stdout
    assert (tmp_path / "trained" / "config.json").is_file()
    assert ray.processes() == []
    assert not ray.folder.exists()

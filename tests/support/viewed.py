"""Runs to look at: a small one with every kind of thing in it, of any words; and the same grown to 10,000 rollouts."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from attrs import evolve
from support.perform import configured

from wer import folders
from wer.records import (
    NO_SKILL,
    Candidate,
    End,
    Evidence,
    Experience,
    Observation,
    RefinementState,
    Reward,
    Rollout,
    Skill,
    Step,
    Task,
    ToolCall,
    Trajectory,
    Usage,
    Verdict,
)
from wer.store import Store

SEED = Skill(name="refunds", description="Refund orders.", body="## Workflow\n1. Refund what is asked.")
HOSTILE = (
    "<script>window.ran = 1</script><img src=x onerror='window.ran = 1'>\"'</script><!--"
    "\x1b[31m\u202e\ud800]]>&lt;${window.ran=1}{{ran}}javascript:window.ran=1"
)


def recorded(root: Path, words: str = "", *, text_length: int = 0) -> Path:
    """A run folder with two tasks, a pair, candidates that were retained and refined, results, steps and costs.

    Args:
        words: Put into everything that models and authors of tasks write.
        text_length: Of each result of a tool.
    """
    folder = folders.create(root, configured(), command="run", now=datetime(2026, 1, 2, tzinfo=UTC))
    store = Store(folder / "wer.sqlite", create=True)
    tasks = [_task(split, words) for split in ("train", "test")]
    seed = evolve(SEED, body=f"{SEED.body}\n2. Say so. {words}")
    final = evolve(SEED, body=f"## Workflow\n1. Look the order up first. {words}\n2. Say so. {words}")
    _learn(store, tasks[0], seed, final, words, text_length)
    _measure(store, tasks[1], {"none": NO_SKILL, "seed": seed, "refined": final}, words, text_length)
    for step in range(3):
        store.put_metrics("train/0", step, {"reward": step / 4, "reward_task": step / 5, "entropy": 1.5})
    store.add_spend("executor", Usage(calls=9, prompt_tokens=8_000, completion_tokens=700, usd=None))
    store.add_spend(
        f"writer {column(words)}", Usage(calls=3, prompt_tokens=900, completion_tokens=300, usd=0.02)
    )
    store.add_time(f"phase 0: 1 states {column(words)}", 75.0)
    store.put_document("about", "tier", f"in memory {column(words)}")
    store.close()
    return folder


def grown(root: Path, rollouts: int) -> Path:
    """The same run with so many rollouts, a quarter as many candidates, and results of as many tasks."""
    folder = recorded(root, text_length=2_000)
    with closing(sqlite3.connect(folder / "wer.sqlite")) as db, db:
        numbers = "with recursive n(i) as (select 1 union all select i + 1 from n where i < ?) "
        each = rollouts // 8
        for table, columns, values, count in (
            ("tasks", "key, id, domain, split, json", "key||n.i, id||n.i, domain, split, json", each),
            (
                "rollouts",
                "key, task_key, skill_id, seed, verifier, tries, json",
                "key||n.i, task_key||(n.i % 40 + 1), skill_id, seed + n.i, verifier, tries, json",
                each,
            ),
            (
                "states",
                "id, task_key, skill_id, evidence, parent, round, phase",
                "id||n.i, task_key||iif(n.i % 2, '', n.i % 100 + 1), skill_id, evidence, parent, round, phase",
                rollouts // 16,
            ),
            (
                "candidates",
                'stage, state_id, "index", id, json, rollouts, reward',
                "stage, state_id||n.i, \"index\", id||n.i, replace(json, 'up first', 'up at '||n.i), rollouts, reward",
                rollouts // 16,
            ),
            (
                "results",
                "condition, task_key, trial, rollout",
                "condition, task_key||(n.i % 40 + 1), n.i, rollout||n.i",
                each,
            ),
            ("metrics", "stage, step, json", "stage, step + 10 * n.i, json", rollouts // 16),
        ):
            db.execute(
                f"insert or ignore into {table} ({columns}) {numbers} select {values} from {table}, n",
                (count,),
            )
    return folder


def column(words: str) -> str:
    """What of the words can be a column of the store, where a half character can't."""
    return words[:200].replace("\ud800", "")


def _task(split: str, words: str) -> Task:
    return Task(
        id=f"shop/{split}-1{column(words)}",
        env="shop",
        domain=f"refunds{column(words)}",
        split="train" if split == "train" else "test",
        turns=(f"Refund order 7. {words}",),
        marks=(f"made up {words}",),
    )


def _rollout(
    key: str, task: Task, skill: Skill, words: str, length: int, *, passed: bool, asked: str = "look"
) -> Rollout:
    end = End(by="agent", why=f"done{words}")
    steps = (
        Step(
            turn=0,
            text=f"I will see. {words}",
            calls=(ToolCall(name=f"find{words}", arguments={"order": f"7{words}"}),),
            observations=(Observation(text=f"found {words}"),),
        ),
        Step(
            turn=0,
            text="",
            calls=(ToolCall(name="refund", arguments={"order": 7, "how": asked}),),
            observations=(Observation(text=f"answer to {asked} {words} {'x' * length}", ok=passed),),
        ),
    )
    return Rollout(
        key=key,
        task_id=task.id,
        skill_id=skill.id,
        seed=1,
        trajectory=Trajectory(messages=task.turns, steps=steps, end=end, seed=1, wall_s=2.5),
        evidence=Evidence(turns=(), end=end),
        verdict=Verdict(
            score=float(passed), passed=passed, diagnostics=() if passed else (f"not paid {words}",)
        ),
    )


def _learn(store: Store, task: Task, seed: Skill, final: Skill, words: str, length: int) -> None:
    pair = tuple(
        _rollout(f"{name}-rollout", task, seed, words, length, passed=name == "good", asked=name)
        for name in ("good", "bad")
    )
    for rollout in pair:
        store.put_rollout(rollout, task=task, skill=seed, verifier="paid", tries=1)
    state = RefinementState(task=task, skill=seed, evidence=pair)
    retained = _write(store, f"train/0{column(words)}", state, [final, None], words, length)
    later = RefinementState(
        task=task, skill=final, evidence=retained.rollouts, parent=retained.candidate.id, round=1, phase=1
    )
    _write(store, f"refine/refined/0{column(words)}", later, [final], words, length)
    store.put_skill(seed)
    for condition, skill in (("seed", seed), ("refined", final)):
        store.put_document("published", f"{condition} shop/refunds{column(words)}", skill.id)


def _write(
    store: Store, stage: str, state: RefinementState, skills: list[Skill | None], words: str, length: int
) -> Experience:
    """Store the group of a state with its rollouts; gives the first."""
    store.put_state(state)
    group = [
        Candidate(
            state_id=state.id,
            index=index,
            text=f"<think>{words}</think>",
            reasoning=f"It refunded blindly. {words}",
            skill=skill,
            well_formed=skill is not None,
            problem="" if skill else f"no <skill> block {words}",
        )
        for index, skill in enumerate(skills)
    ]
    store.put_group(stage, group)
    found = [_scored(store, stage, state, candidate, words, length) for candidate in group]
    return found[0]


def _scored(
    store: Store, stage: str, state: RefinementState, candidate: Candidate, words: str, length: int
) -> Experience:
    rollouts = []
    for passed in (True, False) if candidate.skill else ():
        key = f"{stage.partition('<')[0].replace('/', '-')}-{candidate.index}-{passed}"
        rollouts.append(
            _rollout(key, state.task, candidate.skill, words, length, passed=passed, asked=str(passed))
        )
        store.put_rollout(rollouts[-1], task=state.task, skill=candidate.skill, verifier="paid", tries=1)
    task = len(rollouts) / 4
    reward = Reward(
        fmt=float(bool(rollouts)), task=task, len=1.0, total=(float(bool(rollouts)) + task + 1) / 3
    )
    experience = Experience(state=state, candidate=candidate, rollouts=tuple(rollouts), reward=reward)
    store.put_experience(stage, experience)
    return experience


def _measure(store: Store, task: Task, skills: dict[str, Skill], words: str, length: int) -> None:
    for condition, skill in skills.items():
        rollout = _rollout(f"{condition}-rollout", task, skill, words, length, passed=condition == "refined")
        store.put_rollout(rollout, task=task, skill=skill, verifier="paid", tries=1)
        store.put_results([(condition, task, 0, rollout)])

"""``wer refine``: rounds of revision on the training split, by any writer, without training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from wer import plugins
from wer.cli import options
from wer.cli.performing import create_and_perform
from wer.configuration import resolve
from wer.lineage import diff
from wer.opening import Run
from wer.running import begin, publish, refine_all
from wer.skills import load_skill


def refine(
    skill: Path,
    *,
    env: options.Env = None,
    domains: options.Domains = None,
    backend: options.Backend = None,
    executor: options.ExecutorModel = None,
    writer: options.Writer = None,
    sandbox: options.SandboxName = None,
    verifier: options.VerifierName = None,
    rounds: Annotated[
        int | None, Parameter(help="Revisions of each training task's skill. Default: 2.")
    ] = None,
    preset: options.Preset = None,
    config: options.ConfigFile = None,
    sets: options.Sets = None,
    seed: options.Seed = None,
    max_rollouts: options.MaxRollouts = None,
    max_tokens: options.MaxTokens = None,
    max_cost: options.MaxCost = None,
    runs: options.Runs = Path("runs"),
) -> None:
    """Revise a skill from what happens when it is used on the training tasks, then merge a domain's revisions.

    The test split is not touched: measure the result with `wer eval`. A writer that `wer run` trained is used
    with `--backend grpo --writer runs/ID/checkpoints/final`.

    Args:
        skill: A SKILL.md or its folder.
    """
    before = load_skill(skill)
    resolved = resolve(
        preset,
        options.config_file(config),
        sets or (),
        options.overrides(
            env=env,
            domains=domains,
            backend=backend,
            executor=executor,
            writer=writer,
            sandbox=sandbox,
            verifier=verifier,
            seed=seed,
            seed_skill=str(skill),
            refinement__rounds=rounds,
            budget__max_rollouts=max_rollouts,
            budget__max_tokens=max_tokens,
            budget__max_cost=max_cost,
        ),
    )

    async def work(run: Run) -> None:
        start = await begin(run)
        optimizer = run.optimizer()
        try:
            refined = await refine_all(run, optimizer, start, "refined")
        finally:
            await optimizer.close()
        publish(run, {"refined": refined})
        out = Console(highlight=False, soft_wrap=True)
        for domain, after in refined.items():
            out.print(f"{domain}: {run.folder / 'skills' / 'refined' / after.name}", markup=False)
            out.print(diff(before, after), markup=False)

    create_and_perform(resolved, runs, plugins.load(), work)

"""``wer run``: the whole protocol, from seed skills to a table."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from attrs import evolve
from cyclopts import Parameter
from rich.console import Console

from wer import folders, plugins
from wer.cli import options
from wer.cli.forecast import print_forecast
from wer.cli.performing import perform
from wer.configuration import RunConfig, resolve
from wer.opening import Run, check_names, environments
from wer.opening import domains as list_domains
from wer.reporting import print_report, write_report
from wer.running import run_protocol


def run(
    *,
    env: options.Env = None,
    domains: options.Domains = None,
    backend: options.Backend = None,
    executor: options.ExecutorModel = None,
    writer: options.Writer = None,
    sandbox: options.SandboxName = None,
    verifier: options.VerifierName = None,
    preset: options.Preset = None,
    config: options.ConfigFile = None,
    sets: options.Sets = None,
    seed: options.Seed = None,
    max_rollouts: options.MaxRollouts = None,
    max_tokens: options.MaxTokens = None,
    max_cost: options.MaxCost = None,
    resume: Annotated[
        str | None, Parameter(help="Go on with this run (id or folder): nothing is paid twice.")
    ] = None,
    dry_run: Annotated[bool, Parameter(help="Print the forecast and stop.", negative=())] = False,
    runs: options.Runs = Path("runs"),
) -> None:
    """Make better skills, and measure them: seed skills, training, refinement, merge, test split.

    The whole loop on this machine, without a key: `wer run --env bfcl --backend grpo --preset cpu`.
    With an API model: `wer run --env bfcl --executor openai/gpt-4o-mini --max-cost 5`.
    """
    caps: dict[str, Any] = {
        "budget__max_rollouts": max_rollouts,
        "budget__max_tokens": max_tokens,
        "budget__max_cost": max_cost,
    }
    found = plugins.load()
    if resume is not None:
        folder = folders.find(runs, resume)
        resolved = _raised(folders.configuration(folder), caps)
        _perform(resolved, folder, found)
        return
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
            **caps,
        ),
    )
    _forecast(resolved, found)
    if dry_run:
        return
    _perform(resolved, folders.create(runs, resolved, now=datetime.now(UTC)), found)


def _raised(config: RunConfig, caps: dict[str, Any]) -> RunConfig:
    given = {name.partition("__")[2]: value for name, value in caps.items() if value is not None}
    return evolve(config, budget=evolve(config.budget, **given))


def _forecast(config: RunConfig, found: plugins.Plugins) -> None:
    check_names(config, found)
    chosen = list_domains(config, environments(config, found), test_limit=config.evaluation.test_limit)
    print_forecast(Console(), config, chosen)


def _perform(config: RunConfig, folder: Path, found: plugins.Plugins) -> None:
    async def work(run: Run) -> None:
        await run_protocol(run)
        run.display.end_stage()
        write_report(folder, run.store, config)
        print_report(Console(), run.store, folder, config)

    perform(config, folder, found, work, again=f"wer run --resume {folder}")

"""Who owes what to whom: the typed protocols between the loop and its parts.

Hooks only register parts; these protocols do the work. Every method says its
failure policy: what is data, what is an error of the infrastructure (retried, never
scored), and what is an error of the user.
"""

from wer.contracts.agents import AgentSetup, Settling
from wer.contracts.environments import Environment, Identified, Referenced, Roles, Session, Verifier
from wer.contracts.models import Cost, Model, ModelSetup, Provider, Starting
from wer.contracts.optimizers import (
    Consolidating,
    Evaluate,
    Imitating,
    Notebook,
    Notes,
    Optimizer,
    OptimizerSetup,
    Searching,
)
from wer.contracts.policies import Lesson, Policy, Written
from wer.contracts.runners import Executor, Runner, RunnerSetup
from wer.contracts.sandboxes import Episode, Pool, Sandbox
from wer.contracts.trackers import Tell, Tracing, Tracker, TrackerSetup

__all__ = [
    "AgentSetup",
    "Consolidating",
    "Cost",
    "Environment",
    "Episode",
    "Evaluate",
    "Executor",
    "Identified",
    "Imitating",
    "Lesson",
    "Model",
    "ModelSetup",
    "Notebook",
    "Notes",
    "Optimizer",
    "OptimizerSetup",
    "Policy",
    "Pool",
    "Provider",
    "Referenced",
    "Roles",
    "Runner",
    "RunnerSetup",
    "Sandbox",
    "Searching",
    "Session",
    "Settling",
    "Starting",
    "Tell",
    "Tracing",
    "Tracker",
    "TrackerSetup",
    "Verifier",
    "Written",
]

"""The real OpenRLHF trainer on a CPU: its Python, its environment, its Ray, and a policy small enough."""

from support.openrlhf_cpu.cluster import Cluster, pretend_gpus
from support.openrlhf_cpu.environment import CPU_FLAGS, python, run_script, variables
from support.openrlhf_cpu.policy import make_policy

__all__ = ["CPU_FLAGS", "Cluster", "make_policy", "pretend_gpus", "python", "run_script", "variables"]

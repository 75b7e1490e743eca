"""Domains without a package: a class in a sandbox, a file of tasks, and a function that checks the end."""

from wer.domain.environment import Domain
from wer_sandbox.state import State

__all__ = ["Domain", "State"]

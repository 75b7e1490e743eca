"""What can go wrong, split by who can act: the user, the machine, or nobody.

A `WerError` is for the user: it says what happened, what was expected and what
to do, and the command line prints it without a traceback. An
`InfrastructureError` is the machine's or an API's own failure: the rollout that
met it has no verdict and is tried again, and a skill is never blamed for it.
"""


class WerError(Exception):
    """Something that the user can act on."""


class ConfigError(WerError):
    """The configuration asks for something that cannot be done."""


class PluginError(WerError):
    """A plugin is missing, broken, or in conflict with another."""


class SkillError(WerError):
    """A document is not a skill."""


class TaskError(WerError):
    """A task, or a file of tasks, is malformed."""


class DomainError(WerError):
    """The class of a `wer.Domain`, or the state that it leaves, cannot be used."""


class AgentError(WerError):
    """An agent of the user's own is not what an executor must be, or answers with something else."""


class StoreError(WerError):
    """A run folder cannot be read or written."""


class VerifierError(WerError):
    """A verifier answered with something that is not a verdict."""


class OptimizerError(WerError):
    """An optimizer cannot go on, for example because its loss is not finite."""


class PromptTooLong(WerError):
    """A prompt does not fit, and WER refuses rather than truncates."""


class BudgetExhausted(WerError):
    """A cap over all roles was reached. What was paid for is stored."""


class SearchSpent(BudgetExhausted):
    """What a run may spend on making better skills is spent: the best so far is measured."""


class InfrastructureError(WerError):
    """The machine or an API failed. Nothing was learnt about the skill.

    Attributes:
        kind: What broke, in a word or two: the faults of a run are counted by it.
    """

    kind = "other failure"


class ModelError(InfrastructureError):
    """A model refused for good: a bad key, an unknown name, a bad request."""


class ModelUnavailable(ModelError):
    """A model failed for now: 429, 5xx, a time-out, a reset. Worth another try.

    Attributes:
        retry_after_s: Seconds that the server asked us to wait, or None.
    """

    def __init__(
        self, message: str, *, retry_after_s: float | None = None, kind: str = "model unavailable"
    ) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.kind = kind


class SandboxError(InfrastructureError):
    """A sandbox died, hung, or could not start.

    Attributes:
        cause: One of ``dead``, ``hung``, ``out_of_memory``, ``start``, ``protocol``, ``daemon``.
        stderr_tail: The last lines that the sandbox wrote, possibly empty.
    """

    def __init__(self, message: str, *, cause: str, stderr_tail: str = "") -> None:
        tail = f"\nlast words of the sandbox:\n{stderr_tail}" if stderr_tail else ""
        super().__init__(message + tail)
        self.cause = cause
        self.kind = f"sandbox {cause.replace('_', ' ')}"
        self.stderr_tail = stderr_tail

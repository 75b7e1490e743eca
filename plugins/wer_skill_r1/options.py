"""What a user may set about Skill-R1."""

from __future__ import annotations

from attrs import field, frozen
from attrs.validators import ge


@frozen(kw_only=True)
class Options:
    """The table ``[optimizer.skill_r1]``.

    Generations are ``training.k``, rollouts a generation ``training.n``. How the policy is
    updated, its KL penalty included, is the policy's own table ``[optimizer.grpo]``.

    Attributes:
        inter_weight: The lambda of ``A = A_intra + lambda A_inter``.
        policy: Whose weights are trained: a name that a plugin offers by ``wer_policies``.
    """

    inter_weight: float = field(default=1.0, validator=ge(0.0))
    policy: str = "grpo"


@frozen(kw_only=True)
class InferenceOptions:
    """The table ``[optimizer.skill_r1_inference]``: nothing to set; an unknown key is refused."""

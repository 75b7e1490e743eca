"""The domains of tau2-bench as one world per episode; this package runs inside the sandbox only.

It imports the standard library, `wer_sandbox` and, by name, the benchmark's own ``tau2``,
which is installed in the sandbox and nowhere else.
"""

from wer_tau2_domain.world import World


def domain() -> World:
    """Load every domain with its database once, so that forked episodes share them."""
    from wer_tau2_domain.package import load

    return World(load())


__all__ = ["World", "domain"]

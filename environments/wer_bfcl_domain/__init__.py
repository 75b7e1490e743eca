"""BFCL's tool classes as one world per episode; this package runs inside the sandbox only.

It imports the standard library and, by name, the benchmark's own ``bfcl_eval``,
which is installed in the sandbox and nowhere else.
"""

from wer_bfcl_domain.world import World


def domain() -> World:
    """Load every tool class once, so that forked episodes share them."""
    from wer_bfcl_domain.classes import load

    return World(load())


__all__ = ["World", "domain"]

"""Entry module of the tau2 environment: tau2-bench's airline, retail and telecom, with a simulated user."""

from collections.abc import Callable, Mapping

from wer import hookimpl
from wer.contracts import Environment
from wer.hookspecs import Options


@hookimpl
def wer_environments() -> Mapping[str, Callable[[Options], Environment]]:
    """Offer ``--env tau2``."""
    return {"tau2": _tau2}


def _tau2(options: Options) -> Environment:
    from wer.configuration import structure
    from wer_tau2.environment import Tau2
    from wer_tau2.options import Tau2Options

    return Tau2(structure(Tau2Options, options, where="environment.tau2"))

"""Entry module of the BFCL environment: the multi-turn base tasks of bfcl-eval."""

from collections.abc import Callable, Mapping

from wer import hookimpl
from wer.contracts import Environment
from wer.hookspecs import Options


@hookimpl
def wer_environments() -> Mapping[str, Callable[[Options], Environment]]:
    """Offer ``--env bfcl``."""
    return {"bfcl": _bfcl}


def _bfcl(options: Options) -> Environment:
    from wer.configuration import structure
    from wer_bfcl.environment import Bfcl, BfclOptions

    return Bfcl(structure(BfclOptions, options, where="environment.bfcl"))

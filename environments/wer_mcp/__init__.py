"""Entry module of MCP domains: any MCP server in Python, with a file of tasks and a check."""

from collections.abc import Callable, Mapping

from wer import hookimpl
from wer.contracts import Environment, Verifier
from wer.hookspecs import Options


@hookimpl
def wer_environments() -> Mapping[str, Callable[[Options], Environment]]:
    """Offer ``--env mcp``."""
    return {"mcp": _mcp}


@hookimpl
def wer_verifiers() -> Mapping[str, Callable[[], Verifier]]:
    """Offer ``mcp_check``, the check that ``[environment.mcp]`` names."""
    return {"mcp_check": _check}


def _mcp(options: Options) -> Environment:
    from wer.tables import structure
    from wer_mcp.environment import Mcp
    from wer_mcp.options import McpOptions

    return Mcp(structure(McpOptions, options, where="environment.mcp"))


def _check() -> Verifier:
    from wer_mcp.checking import McpCheck

    return McpCheck()

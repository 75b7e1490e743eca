"""An MCP server as the world of an episode; this package runs inside the sandbox only.

It imports the standard library and `wer_sandbox`; the server comes with what it needs as the
sandbox's requirements.
"""

from wer_mcp_domain.world import World


def domain() -> World:
    """Import the server's modules once, so that forked episodes share them."""
    from wer_mcp_domain.program import from_environ

    program = from_environ()
    program.load()
    return World(program)


__all__ = ["World", "domain"]

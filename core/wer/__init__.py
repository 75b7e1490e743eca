"""WER: Write, Execute, Refine. Better written skills for tool-using agents, from verified execution."""

from wer.hookspecs import hookimpl

__all__ = ["hookimpl"]

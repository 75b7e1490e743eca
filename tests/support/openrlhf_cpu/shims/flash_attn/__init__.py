"""Stands in for flash-attn, which needs CUDA: the names that OpenRLHF imports and packed samples alone would call."""

__version__ = "0.0.0"

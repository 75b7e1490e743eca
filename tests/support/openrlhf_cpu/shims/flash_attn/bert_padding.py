from einops import rearrange

__all__ = ["index_first_axis", "pad_input", "rearrange", "unpad_input"]


def _needs_cuda(*_args, **_kwargs):
    raise NotImplementedError(
        "packed samples need the real flash-attn: leave --ds.packing_samples off on a CPU"
    )


index_first_axis = pad_input = unpad_input = _needs_cuda

from flash_attn.bert_padding import _needs_cuda as all_gather

__all__ = ["all_gather"]

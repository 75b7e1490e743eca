"""Talking to model servers over HTTP; shared by the model plugins, because a plugin may import only ``wer``."""

"""Text that a model wrote is hostile: it is made harmless before it enters another model's prompt."""

from __future__ import annotations

import re
import unicodedata

_JOINERS = "\u200c\u200d"
_CONTROL_TAGS = re.compile(
    "<(?P<angle>[|\uff5c][^<>\n]{1,64}[|\uff5c]"  # ChatML, Llama 3, DeepSeek
    r"|/?(?:think|tool_call|tool_response|start_of_turn|end_of_turn|bos|eos|pad|unk|s)"  # Qwen, Gemma, Llama
    r"|<SYS>|</SYS>)>"
    r"|\[(?P<square>/?(?:INST|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|SYSTEM_PROMPT))\]"  # Mistral
)


def plain(text: str) -> str:
    """Drop what cannot be seen: control and format characters, lone surrogates, odd line ends.

    Line feeds, tabs, and the joiners that some scripts need stay.
    """
    text = re.sub("\r\n?|[\u2028\u2029]", "\n", text)
    return "".join(char for char in text if char in "\n\t" + _JOINERS or _visible(char))


def in_line(text: str) -> str:
    """The same on one line: words of others can't begin a line of a report."""
    return " ".join(plain(text).split("\n"))


def in_cell(text: str) -> str:
    """The same in one cell of a table in Markdown."""
    return in_line(text).replace("|", r"\|")


def harmless(text: str) -> str:
    """Take the brackets off tokens by which chat templates tell one role from another.

    ``<|im_start|>`` becomes ``(|im_start|)``: still readable, and no tokenizer's
    special token. Harmless text is left exactly as it is.
    """
    found = 1
    while found:  # taking one pair of brackets off can leave another token behind
        text, found = _CONTROL_TAGS.subn(lambda match: f"({match['angle'] or match['square']})", text)
    return text


def _visible(char: str) -> bool:
    return unicodedata.category(char) not in ("Cc", "Cf", "Cs")

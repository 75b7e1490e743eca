"""The request that every client is measured with: 6 KB of prompt and one tool."""

PROMPT = "You work in a folder. List it before you move anything, and say what you did. " * 77
USER = "Move the report."
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "move",
            "description": "Move a file.",
            "parameters": {
                "type": "object",
                "properties": {"source": {"type": "string"}, "target": {"type": "string"}},
            },
        },
    }
]
MESSAGES = [{"role": "system", "content": PROMPT}, {"role": "user", "content": USER}]
BODY = {
    "model": "mock",
    "messages": MESSAGES,
    "tools": TOOLS,
    "temperature": 0.7,
    "seed": 1,
    "max_tokens": 1024,
}

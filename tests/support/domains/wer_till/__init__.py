"""A till in a sandbox, and tills that break the rules of one."""

import os
from pathlib import Path


class Till:
    exposed = ("reset", "call", "export")

    def __init__(self):
        self.total = 0

    def reset(self, total):
        self.total = total

    def call(self, name, arguments):
        tool = {"add": self.add, "take": self.take}.get(name)
        if tool is None:
            return {"text": f"no tool {name}", "ok": False}
        try:
            return {"text": tool(**arguments), "ok": True}
        except Exception as error:
            return {"text": str(error), "ok": False}

    def add(self, amount):
        self.total += amount
        return f"there are {self.total}"

    def take(self, amount):
        return self.add(-amount)

    def export(self):
        return {"total": self.total}


class Writing(Till):
    """Keeps a book in a file."""

    def add(self, amount):
        with Path("/tmp/wer-till-book.txt").open("a") as book:
            book.write(f"{amount}\n")
        return super().add(amount)


class Noting(Till):
    """Has a tool more, which keeps a book in a file."""

    def call(self, name, arguments):
        return Writing().call("add", arguments) if name == "note" else super().call(name, arguments)


class Numbered(Till):
    """Shows which of the world's processes it is."""

    def export(self):
        return {"total": self.total, "pid": os.getpid()}


class Naive(Till):
    """Lets every mistake of an agent end the episode."""

    def call(self, name, arguments):
        return {"text": getattr(self, name)(**arguments), "ok": True}


class Objects(Till):
    """Has numbers that JSON has no words for."""

    def export(self):
        return {"total": float("nan")}

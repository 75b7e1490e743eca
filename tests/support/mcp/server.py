"""An MCP server of nothing but the standard library, with a good tool or two and every bad one."""

import ctypes
import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

NOTES = Path("notes.txt")


def say(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def add(text):
    """Add a line to the notes."""
    with NOTES.open("a") as notes:
        notes.write(text + "\n")
    return "added"


def read():
    """Read the notes."""
    return NOTES.read_text() if NOTES.exists() else ""


def structured():
    return {"content": [], "structuredContent": {"lines": read().splitlines()}}


def mixed():
    picture = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    page = {"type": "resource", "resource": {"uri": "a://b", "text": "page"}}
    link = {"type": "resource_link", "uri": "a://c", "name": "c"}
    return {"content": [{"type": "text", "text": "words"}, picture, page, link]}


def unreadable():
    return {"content": "words"}


def fails():
    return {"content": [{"type": "text", "text": "it did not work"}], "isError": True}


def refuses():
    raise PermissionError("not today")


def asks():
    """Ask the client in the middle of a call, and need its answers."""
    say(id="a", method="ping")
    pong = json.loads(sys.stdin.readline())
    say(id="b", method="sampling/createMessage", params={})
    refused = json.loads(sys.stdin.readline())
    return json.dumps([pong.get("result"), refused["error"]["code"]])


def chatters():
    sys.stdout.write('Hello!\n[1, 2]\n\n{"jsonrpc": "2.0", "method": "notifications/message"}\n{"id": 1}\n')
    return "heard"


def floods():
    while True:
        sys.stdout.write("noise" * 10_000)


def big(characters):
    return "x" * characters


def dies(status):
    sys.stderr.write("my last words\n")
    os._exit(status)


def crashes():
    ctypes.string_at(0)


def spins():
    while True:
        pass


def sleeps():
    time.sleep(3600)


def hangs_up():
    os.close(1)
    os.close(0)
    time.sleep(3600)


def fills_memory():
    held = []
    while True:
        held.append(bytearray(16 << 20))


def writes(files, size):
    for number in range(files):
        Path(f"f{number}").write_bytes(b"x" * size)
    return "written"


def pid():
    return str(os.getpid())


def whereabouts():
    return json.dumps([str(Path.cwd()), os.environ["HOME"], sys.argv[1:], sorted(map(str, Path().iterdir()))])


def threads():
    done = []
    worker = threading.Thread(target=done.append, args=(1,))
    worker.start()
    worker.join()
    return str(len(done))


def attempt(what):
    """Try what a server must not be able to do; the exception, or "done"."""
    attempts = {
        "fork": os.fork,
        "run": lambda: subprocess.run([sys.executable, "-c", ""], check=True),
        "replace itself": lambda: os.execv(sys.executable, [sys.executable, "-c", ""]),
        "open a socket": lambda: socket.create_connection(("127.0.0.1", 9)),
        "survive": survive,
        "read a secret": lambda: Path("/etc/passwd").read_text(),
        "write elsewhere": lambda: Path("/tmp/elsewhere").write_text("x"),
        "leave its folder": lambda: Path("../elsewhere").write_text("x"),
        "look at its siblings": lambda: list(Path("..").iterdir()),
        "open a file of the host": lambda: Path("/proc/1/environ").read_bytes(),
        "make a large file": lambda: Path("large").write_bytes(bytes(64 << 20)),
        "change a mode": lambda: Path("notes.txt").chmod(0o777),
        "kill": lambda: os.kill(os.getppid(), 9),
    }
    try:
        attempts[what]()
    except Exception as error:
        return type(error).__name__
    return "done"


def survive():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(1, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


TOOLS = [add, read, structured, mixed, unreadable, fails, refuses, asks, chatters, floods, big, dies, crashes]
TOOLS += [spins, sleeps, hangs_up, fills_memory, writes, pid, whereabouts, threads, attempt]


def described(tool):
    names = tool.__code__.co_varnames[: tool.__code__.co_argcount]
    return {
        "name": tool.__name__,
        "description": tool.__doc__ or "",
        "inputSchema": {"type": "object", "properties": {name: {} for name in names}},
    }


def answer(request):
    method, params = request["method"], request.get("params", {})
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {}, "instructions": "Be brief."}
    if method == "tools/list":
        half = [described(tool) for tool in (TOOLS[2:] if "cursor" in params else TOOLS[:2])]
        return {"tools": half} if "cursor" in params else {"tools": half, "nextCursor": "2"}
    tool = {tool.__name__: tool for tool in TOOLS}[params["name"]]
    result = tool(**params["arguments"])
    return result if isinstance(result, dict) else {"content": [{"type": "text", "text": result}]}


def main():
    print("a banner that has no business on the standard output", flush=True)
    if "--broken" in sys.argv:
        raise RuntimeError("no licence found")
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        try:
            result = {"result": answer(request)}
        except Exception as error:
            result = {"error": {"code": -32000, "message": f"{type(error).__name__}: {error}"}}
        say(id=request["id"], **result)


if __name__ == "__main__":
    main()

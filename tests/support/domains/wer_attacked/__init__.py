# ruff: noqa: PTH101, PTH102, PTH108, PTH123, PTH208 - attacks use the calls that they name
"""A domain whose tools attack the sandbox that they run in, and say what they could do."""

import contextlib
import ctypes
import errno
import os
import platform
import resource
import signal
import socket
import sys
import threading
import time
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
NUMBERS = {
    "x86_64": {"ptrace": 101, "process_vm_readv": 310, "unshare": 272, "mount": 165, "memfd_create": 319},
    "aarch64": {"ptrace": 117, "process_vm_readv": 270, "unshare": 97, "mount": 40, "memfd_create": 279},
}[platform.machine()] | {"io_uring_setup": 425, "pidfd_open": 434, "clone3": 435, "openat2": 437}
SECRET = b"what another episode must never read"


def outcome(attempt):
    """Run one attack: "done", or the name of the error that stopped it."""
    try:
        attempt()
    except OSError as error:
        return errno.errorcode.get(error.errno, type(error).__name__)
    except Exception as error:
        return type(error).__name__
    return "done"


def syscall(name, *arguments):
    ctypes.set_errno(0)
    if LIBC.syscall(ctypes.c_long(NUMBERS[name]), *arguments) < 0:
        raise OSError(ctypes.get_errno(), name)


class Attacked:
    exposed = (
        *("count", "echo", "chatter", "raise_error", "unsayable", "hang", "die", "leave", "babble", "flood"),
        *("pid", "parent", "environment", "modules", "limits", "clock_zone"),
        *(
            "hoard",
            "fork_many",
            "start_threads",
            "fill_memory",
            "fill_tmp",
            "write_files",
            "read_files",
            "open_files",
        ),
        *("sockets", "calls", "signals", "reniced", "late_import"),
    )

    def __init__(self):
        self.total = 0

    def hidden(self):
        return "never exposed"

    # -- the honest part

    def count(self, by=1):
        self.total += by
        return self.total

    def echo(self, value):
        return value

    def chatter(self, text, times=1):
        for _ in range(times):
            print(text)
            print(text, file=sys.stderr)
        return "said"

    def raise_error(self):
        raise KeyError("a mistake in the domain")

    def unsayable(self):
        return {1, 2, 3}

    def late_import(self):
        import decimal
        import sqlite3

        return [decimal.__name__, sqlite3.__name__]

    # -- ways to break

    def hang(self):
        time.sleep(3600)

    def die(self, number):
        print("my last words", file=sys.stderr, flush=True)
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)
        if number == "segv":
            ctypes.string_at(0)
        os._exit(number)

    def leave(self):
        sys.exit(3)

    def babble(self, text):
        os.write(3, text.encode())
        time.sleep(3600)

    def flood(self):
        block = b"x" * (1 << 20)
        while True:
            os.write(3, block)

    def hoard(self):
        blocks = []
        while True:
            blocks.append(bytearray(b"x" * (16 << 20)))

    # -- what it can see

    def pid(self):
        return os.getpid()

    def parent(self):
        return os.getppid()

    def environment(self):
        return dict(os.environ)

    def modules(self):
        return list(sys.path)

    def clock_zone(self):
        return time.tzname[0]

    def limits(self):
        return {"uid": os.getuid(), "core": resource.getrlimit(resource.RLIMIT_CORE)[0]}

    # -- attacks

    def fork_many(self, wanted=200):
        made, stopped = 0, "done"
        for _ in range(wanted):
            try:
                pid = os.fork()
            except OSError as error:
                stopped = errno.errorcode[error.errno]
                break
            if pid == 0:
                time.sleep(5)
                os._exit(0)
            made += 1
        return {"made": made, "stopped": stopped}

    def start_threads(self, wanted=200):
        made, stopped = 0, "done"
        for _ in range(wanted):
            try:
                threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
            except RuntimeError as error:
                stopped = str(error)
                break
            made += 1
        return {"made": made, "stopped": stopped}

    def fill_memory(self, wanted_mb):
        blocks = []
        try:
            for _ in range(wanted_mb // 16):
                blocks.append(bytearray(b"x" * (16 << 20)))
        except MemoryError:
            got = len(blocks) * 16
            blocks.clear()
            return {"got_mb": got, "stopped": "MemoryError"}
        return {"got_mb": len(blocks) * 16, "stopped": "done"}

    def fill_tmp(self, wanted_mb=64):
        def fill():
            with open("/tmp/fill", "wb") as file:
                for _ in range(wanted_mb):
                    file.write(b"x" * (1 << 20))

        return outcome(fill)

    def write_files(self, paths):
        return {path: outcome(lambda path=path: open(path, "ab").close()) for path in paths} | {
            "chmod": outcome(lambda: os.chmod(Path(__file__), 0o777)),
            "unlink": outcome(lambda: os.unlink(__file__)),
            "mkdir": outcome(lambda: os.mkdir("/tmp/made")),
        }

    def read_files(self, paths):
        return {path: outcome(lambda path=path: open(path, "rb").read(1)) for path in paths} | {
            "list /proc": outcome(lambda: os.listdir("/proc")),
            "list /": outcome(lambda: os.listdir("/")),
        }

    def open_files(self):
        found = []
        for number in range(1024):
            with contextlib.suppress(OSError):
                os.fstat(number)
                found.append(number)
        return found

    def sockets(self, host_socket):
        def dial(family, address):
            with socket.socket(family, socket.SOCK_STREAM) as connection:
                connection.settimeout(1)
                connection.connect(address)

        return {
            "loopback": outcome(lambda: dial(socket.AF_INET, ("127.0.0.1", 9))),
            "internet": outcome(lambda: dial(socket.AF_INET, ("192.0.2.1", 80))),
            "ipv6": outcome(lambda: dial(socket.AF_INET6, ("::1", 9))),
            "name": outcome(lambda: socket.getaddrinfo("localhost.example", 80)),
            "host socket": outcome(lambda: dial(socket.AF_UNIX, host_socket)),
            "docker socket": outcome(lambda: dial(socket.AF_UNIX, "/var/run/docker.sock")),
            "vsock": outcome(lambda: socket.socket(40, socket.SOCK_STREAM)),
            "netlink": outcome(lambda: socket.socket(16, socket.SOCK_RAW)),
            "raw": outcome(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)),
        }

    def calls(self, sibling):
        buffer = ctypes.create_string_buffer(256)
        return {
            "ptrace sibling": outcome(lambda: syscall("ptrace", 16, sibling, 0, 0)),
            "ptrace parent": outcome(lambda: syscall("ptrace", 16, os.getppid(), 0, 0)),
            "read sibling's memory": outcome(lambda: open(f"/proc/{sibling}/mem", "rb").read(1)),
            "vm_readv sibling": outcome(
                lambda: syscall("process_vm_readv", sibling, buffer, 1, buffer, 1, 0)
            ),
            "sibling's files": outcome(lambda: os.listdir(f"/proc/{sibling}/fd")),
            "pidfd_open": outcome(lambda: syscall("pidfd_open", sibling, 0)),
            "io_uring_setup": outcome(lambda: syscall("io_uring_setup", 1, buffer)),
            "clone3": outcome(lambda: syscall("clone3", buffer, 88)),
            "openat2": outcome(lambda: syscall("openat2", -100, b"/etc/passwd", buffer, 24)),
            "unshare": outcome(lambda: syscall("unshare", 0x10000000)),
            "mount": outcome(lambda: syscall("mount", b"none", b"/tmp", b"tmpfs", 0, 0)),
            "memfd_create": outcome(lambda: syscall("memfd_create", b"x", 0)),
            "execve": outcome(lambda: os.execv(sys.executable or "/bin/sh", ["x"])),
            "setuid": outcome(lambda: os.setuid(0)),
        }

    def signals(self, sibling):
        reader, _ = os.pipe()
        return {
            "kill sibling": outcome(lambda: os.kill(sibling, signal.SIGKILL)),
            "kill parent": outcome(lambda: os.kill(os.getppid(), signal.SIGKILL)),
            "kill all": outcome(lambda: os.kill(-1, signal.SIGKILL)),
            "own a file": outcome(lambda: __import__("fcntl").fcntl(reader, 8, sibling)),
        }

    def reniced(self, sibling):
        return {
            "nice": outcome(lambda: os.setpriority(os.PRIO_PROCESS, sibling, 19)),
            "limit": outcome(lambda: resource.prlimit(sibling, resource.RLIMIT_CPU, (1, 1))),
            "affinity": outcome(lambda: os.sched_setaffinity(sibling, {0})),
        }


class Unloadable:
    exposed = ("nothing",)

    def __init__(self):
        raise RuntimeError("this domain cannot be loaded")


class Ill:
    exposed = ("missing",)

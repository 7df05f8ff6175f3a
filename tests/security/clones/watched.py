"""The program as its console script runs it; what it starts is written down, and bounds keep this machine usable.

Each request is a line of JSON on stdin; a process is forked for it, in which all modules are loaded already: a clone is
looked at by a hundred commands, and most of the time of each would go into that. An answer says which process it is,
and a second one how it ended, and what it took.

Each start of another program is a line of JSON in the request's `record`: what was executed, with which arguments, and
where.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import resource
import signal
import sys
from typing import Any

#: Far above what any command needs: a test that fails by them fails for that, and not the machine.
MOST_MEMORY = 1 << 31
MOST_CPU_S = 8
_STARTS = frozenset({"os.posix_spawn", "os.exec", "subprocess.Popen"})


def serve() -> None:
    """Answer requests until nobody asks any more."""
    for package in pkgutil.walk_packages([os.path.join(os.environ["WATCHED"], "agentctl")], "agentctl."):
        if not package.name.endswith("__main__"):
            importlib.import_module(package.name)
    gc.collect()
    gc.freeze()  # What is loaded stays: no collection of a child looks through it, and copies its pages.
    usual = _resident_kib()
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become(request)
        _answer(pid)
        _, status, usage = os.wait4(pid, 0)
        _answer([os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, max(0, usage.ru_maxrss - usual)])


def _answer(value: Any) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def _resident_kib() -> int:
    with open("/proc/self/status", encoding="ascii") as file:
        return int(next(line for line in file if line.startswith("VmRSS")).split()[1])


def _become(request: dict[str, Any]) -> None:
    """Run one command of the program; does not return."""
    os.setsid()
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environ"])
    for number, (name, flags) in enumerate((("in", os.O_RDONLY), ("out", os.O_WRONLY), ("err", os.O_WRONLY))):
        fd = os.open(request[name], flags)
        os.dup2(fd, number)
        os.close(fd)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115 - for as long as it runs
    record = os.open(request["record"], os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def note(event: str, args: tuple[Any, ...]) -> None:
        if event in _STARTS:
            row = [_text(args[0]), [_text(word) for word in args[1]], _told_environment(args), os.getcwd()]
            os.write(record, json.dumps(row).encode() + b"\n")

    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_S, MOST_CPU_S))
    sys.argv = ["agentctl", *request["args"]]
    sys.addaudithook(note)
    from agentctl.interfaces.cli.app import run

    try:
        run()
    except SystemExit as leave:
        sys.stdout.flush()
        os._exit(leave.code if isinstance(leave.code, int) else 1)


def _told_environment(args: tuple[Any, ...]) -> dict[str, str]:
    """Return what of the environment tells git where to look."""
    environ = args[-1] if isinstance(args[-1], dict) else {}
    return {_text(name): _text(value) for name, value in environ.items() if _text(name).startswith("GIT_")}


def _text(value: Any) -> str:
    return os.fsdecode(value) if isinstance(value, (str, bytes, os.PathLike)) else repr(value)


if __name__ == "__main__":
    del sys.path[0]  # This folder; a console script has that of its own there, with nothing in it to import.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    serve()

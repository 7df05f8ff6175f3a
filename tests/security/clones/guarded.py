"""A command is run in a hostile clone, and whatever it did that it must not do is told."""

# ruff: noqa: E501 - the tables are easier to look over in rows.

from __future__ import annotations

import atexit
import fcntl
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil

from tests import leaks
from tests.security.clones.commands import Command
from tests.security.clones.worlds import World
from tests.support import REPOSITORY, TEST_ID

_WATCHED = Path(__file__).with_name("watched.py")


@dataclass(frozen=True)
class Bounds:
    """What a command may take; a wall clock alone would fail it for a slow machine."""

    wall_s: float = 10.0
    cpu_s: float = 2.0
    memory_kib: int = 200 * 1024
    #: How long what it started may still be on its way out.
    settle_s: float = 10.0


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it took."""

    code: int
    wall_s: float
    cpu_s: float
    memory_kib: int
    out: str
    err: str
    starts: list[list[Any]]


def breaches(world: World, command: Command, bounds: Bounds) -> list[str]:
    """Run a command; return what it did that nothing in a clone may make it do."""
    marks = leaks.Marks(test_id=uuid.uuid4().hex, folder=world.base, before=frozenset(psutil.pids()))
    ended = run(world, command, bounds, marks.test_id)
    found = told_by(world, command, ended, bounds)
    if ended.starts or command.starts:
        found += _left(marks, bounds.settle_s)
    found += _canary(world)
    found += _rules(world)
    return [*found, *world.changes()]


def told_by(world: World, command: Command, ended: Ended, bounds: Bounds) -> list[str]:
    """Return what the way in which a command ended tells against it."""
    found = [*_taken(ended, bounds), *_started(world, command, ended)]
    if "this is a bug in agentctl" in ended.err:
        found.append(f"is told as a bug: {ended.err.splitlines()[0][:200]}")
    found += _obeyed(ended.err)
    if command.args[:1] not in (("logs",), ("result",)):  # To a pipe these print what the worker has printed.
        found += _obeyed(ended.out)
    if "PWNED" in ended.out and command.environ:
        found.append(f"offers what a shell obeys: {ended.out[:200]!r}")
    return found


def _obeyed(text: str) -> list[str]:
    """Tell of characters that a terminal obeys; a JSON document for a program escapes what JSON says."""
    kinds = r"[\x00-\x08\x0b-\x1f]" if text.startswith(("{", "[")) else r"[\x00-\x08\x0b-\x1f\x7f-\x9f]"
    found = re.search(kinds, text)
    return [f"prints what a terminal obeys: {text[max(0, found.start() - 80) : found.end() + 40]!r}"] if found else []


def run(world: World, command: Command, bounds: Bounds, test_id: str = "") -> Ended:
    """Run a command in the clone and wait for its end, or end it."""
    for name in ("record", "out", "err"):
        (world.base / name).write_bytes(b"")
    given = world.base / "in"
    if not given.exists():
        os.mkfifo(given)
    holder = os.open(given, os.O_RDWR | os.O_CLOEXEC)  # Who opens it for reading does not wait for a writer.
    cwd = world.clone / command.cwd
    began = time.monotonic()
    ask, answers = _server()
    request = {name: str(world.base / name) for name in ("record", "in", "out", "err")} | {
        "args": command.args, "cwd": str(cwd if cwd.is_dir() else world.clone),
        "environ": {**world.environ, **command.environ, TEST_ID: test_id},
    }  # fmt: skip
    ask(request)
    pid = int(answers(None))
    try:
        fcntl.fcntl(holder, fcntl.F_SETPIPE_SZ, 1 << 20)
        os.write(holder, command.stdin.encode())
        if command.is_slow:
            _await_answers(pid, world.base / "out", _requests_in(command.stdin), bounds.wall_s)
        else:
            _await_input(pid, bounds.wall_s)
    finally:
        os.close(holder)
    told = answers(bounds.wall_s)
    if told is None:
        os.killpg(pid, signal.SIGKILL)
        told = answers(None)
    code, cpu_s, memory_kib = told
    world.codes[str(command)] = code
    return Ended(
        code=code, wall_s=time.monotonic() - began, cpu_s=cpu_s, memory_kib=memory_kib,
        out=_read(world.base / "out"), err=_read(world.base / "err"),
        starts=[json.loads(line) for line in (world.base / "record").read_text().splitlines()],
    )  # fmt: skip


def _await_input(pid: int, limit_s: float) -> None:
    """Keep the pipe until the process has opened its end: before that, what was written would be gone with ours."""
    give_up_at = time.monotonic() + limit_s
    while not _has_opened(pid) and time.monotonic() < give_up_at:
        time.sleep(0.001)


def _has_opened(pid: int) -> bool:
    try:
        return os.readlink(f"/proc/{pid}/fd/0").endswith("/in")
    except OSError:
        return True  # It is gone.


def _await_answers(pid: int, out: Path, wanted: int, limit_s: float) -> None:
    """Keep the input open until a server has answered: one whose client leaves answers no more."""
    give_up_at = time.monotonic() + limit_s
    while _runs(pid) and out.read_bytes().count(b'"jsonrpc"') < wanted and time.monotonic() < give_up_at:
        time.sleep(0.02)


def _requests_in(text: str) -> int:
    return text.count('"jsonrpc"') - text.count('"notifications/')


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@cache
def _server() -> tuple[Callable[[Any], None], Callable[[float | None], Any]]:
    """Return what asks the process that runs commands, and what waits for its answers."""
    process = subprocess.Popen(
        [sys.executable, str(_WATCHED)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, cwd="/", start_new_session=True,
        env={"WATCHED": str(REPOSITORY), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    given, answers = process.stdin, process.stdout

    def leave() -> None:
        given.close()
        process.wait()
        answers.close()

    atexit.register(leave)

    def ask(request: Any) -> None:
        given.write(json.dumps(request).encode() + b"\n")
        given.flush()

    def answer(limit_s: float | None) -> Any:
        if not select.select([answers], [], [], limit_s)[0]:
            return None
        return json.loads(answers.readline())

    return ask, answer


def _read(path: Path) -> str:
    with open(path, "rb") as file:
        return file.read(1 << 20).decode(errors="replace")


def _taken(ended: Ended, bounds: Bounds) -> list[str]:
    found = []
    if ended.code == -signal.SIGKILL:
        found.append(f"did not end within {bounds.wall_s:g} s (cpu {ended.cpu_s:.1f} s)")
    elif ended.code < 0:
        found.append(f"ended by {signal.Signals(-ended.code).name}")
    if ended.cpu_s > bounds.cpu_s:
        found.append(f"took {ended.cpu_s:.1f} s of a processor")
    if ended.memory_kib > bounds.memory_kib:
        found.append(f"took {ended.memory_kib // 1024} MiB of memory")
    return found


def _started(world: World, command: Command, ended: Ended) -> list[str]:
    found = []
    for program, argv, environ, cwd in ended.starts:
        name = os.path.basename(program)
        if os.path.isabs(program) and _is_below(program, world.clone):
            found.append(f"started {program}")
        elif not (name in {"git", "uname"} or command.starts or (name in {"claude", "codex"} and "--version" in argv)):
            found.append(f"started {argv[:6]} in {cwd}")
        if name == "git":
            found += _git_folders(world, argv, environ)
    return found


def _git_folders(world: World, argv: list[str], environ: dict[str, str]) -> list[str]:
    """Tell where git was told to take a folder for a repository that is none of the person's."""
    told = [value for name, value in environ.items() if name in {"GIT_DIR", "GIT_COMMON_DIR"}]
    told += [word.partition("=")[2] for word in argv if word.startswith("--git-dir=")]
    told += [after for word, after in pairwise(argv) if word == "--git-dir"]
    absolute = [os.path.realpath(os.path.join(world.clone, path)) for path in told]
    return [f"ran git with {path} as its repository" for path in absolute if not _is_below(path, world.clone / ".git")]


def _is_below(path: str, folder: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _left(marks: leaks.Marks, settle_s: float) -> list[str]:
    give_up_at = time.monotonic() + settle_s
    while (alive := leaks.survivors(marks)) and time.monotonic() < give_up_at:
        time.sleep(0.05)
    if not alive:
        return []
    told = leaks.describe(alive)
    leaks.kill_all(marks)
    return [f"left processes behind: {told}"]


def _canary(world: World) -> list[str]:
    try:
        status = psutil.Process(world.canary.pid).status()
    except psutil.NoSuchProcess:
        return ["ended a process of mine"]
    if status in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}:
        return ["ended a process of mine"]
    if status == psutil.STATUS_STOPPED:
        world.canary.send_signal(signal.SIGCONT)
        return ["stopped a process of mine"]
    return []


def _rules(world: World) -> list[str]:
    """Tell which tasks, or their workers, were given a rule that allows something."""
    new = world.allowing() - world.rules
    world.rules |= new
    return [f"took over a rule that allows: {name}" for name in sorted(new)]

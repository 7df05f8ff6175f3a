"""Runs or starts the program as a real process, and waits for conditions; every test of processes uses this.

A test sees what a person at a terminal would see. The package is imported for one thing alone: what is printed as JSON
has to be what its command declares.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
WORKERS = REPOSITORY / "tests" / "workers"
PROGRAM = (sys.executable, "-m", "agentctl")
#: Set while a test runs; the processes that a test starts inherit it and are recognized by it.
TEST_ID = "AGENTCTL_TEST_ID"
POLL_S = 0.02

T = TypeVar("T")

_background: list[subprocess.Popen[str]] = []


@dataclass(frozen=True, kw_only=True, slots=True)
class Completed:
    """How one run of the program ended, and its output."""

    argv: tuple[str, ...]
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Stdout, parsed as one JSON document."""
        try:
            document = json.loads(self.out)
        except ValueError as error:
            raise AssertionError(f"stdout is not JSON ({error})\n{self}") from error
        _check_answer(self.argv, document)
        return document

    @property
    def json_lines(self) -> list[Any]:
        """Stdout, each line parsed as a JSON document."""
        documents = [json.loads(line) for line in self.out.splitlines()]
        for document in documents:
            _check_answer(self.argv, document)
        return documents

    def __str__(self) -> str:
        command = " ".join(self.argv)
        return f"$ {command}\nexit code: {self.code}\nstdout:\n{self.out}\nstderr:\n{self.err}"


def _check_answer(argv: Sequence[str], document: Any) -> None:
    """Fail if a document is not of the type that its command declares."""
    from tests.answers import check_answer  # It loads the commands: few tests do without it, but none need it at first.

    check_answer(argv, document)


def run(
    *args: str | Path,
    check: bool = True,
    stdin: str | None = None,
    env: Mapping[str, str | None] | None = None,
    cwd: str | Path | None = None,
    timeout: float = 30,
) -> Completed:
    """Run `agentctl ARGS` as a process of its own and return how it ended.

    Args:
        check: fail the test if the exit code is not 0.
        stdin: what the program reads; None is an empty input.
        env: changes to this process's environment; None removes a variable.
        timeout: kill the program and fail the test after this many seconds.
    """
    process = start(*args, stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE, env=env, cwd=cwd)
    try:
        out, err = process.communicate(stdin, timeout=timeout)
    except subprocess.TimeoutExpired:
        what = "still running, killed"
        if process.poll() is not None:
            what = "it has ended, but something that it started holds its stdout or stderr open"
        process.kill()
        out, err = _read_what_is_there(process)
        ended = Completed(argv=("agentctl", *map(str, args)), code=process.wait(), out=out, err=err)
        pytest.fail(f"after {timeout} s: {what}\n{ended}")
    ended = Completed(argv=("agentctl", *map(str, args)), code=process.returncode, out=out, err=err)
    if check and ended.code != 0:
        pytest.fail(f"exit code 0 was expected\n{ended}")
    return ended


def start(
    *args: str | Path,
    stdin: int | None = subprocess.DEVNULL,
    stdout: int | None = subprocess.PIPE,
    stderr: int | None = subprocess.PIPE,
    env: Mapping[str, str | None] | None = None,
    cwd: str | Path | None = None,
    group: int | None = None,
) -> subprocess.Popen[str]:
    """Start `agentctl ARGS` in the background; the test must make sure that it ends."""
    return start_argv(
        [*PROGRAM, *map(str, args)], stdin=stdin, stdout=stdout, stderr=stderr, env=env, cwd=cwd, group=group
    )


def start_argv(
    argv: list[str],
    *,
    stdin: int | None = subprocess.DEVNULL,
    stdout: int | None = subprocess.PIPE,
    stderr: int | None = subprocess.PIPE,
    env: Mapping[str, str | None] | None = None,
    cwd: str | Path | None = None,
    group: int | None = None,
) -> subprocess.Popen[str]:
    """Start any program in the background, without agentctl: an unrelated process, or a worker tested by itself.

    `group=0` gives it a process group of its own. This process may be in an orphaned group, where Ctrl-Z has no effect.
    """
    process = subprocess.Popen(
        argv,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=environment(env),
        cwd=cwd,
        encoding="utf-8",
        errors="surrogateescape",
        process_group=group,
    )
    _background.append(process)
    return process


def environment(changes: Mapping[str, str | None] | None = None) -> dict[str, str]:
    """Return this process's environment with some variables set, and those that are None removed."""
    merged: dict[str, str | None] = {**os.environ, **(changes or {})}
    return {name: value for name, value in merged.items() if value is not None}


def worker(name: str, *args: str | Path | int | float) -> list[str]:
    """Return the argv of one of the programs in `tests/workers`."""
    program = WORKERS / f"{name}.py"
    assert program.is_file(), f"no such worker: {program}"
    return [sys.executable, str(program), *map(str, args)]


def alike(*cases: Any) -> list[Any]:
    """Mark parameters that are much like others of their test: only `make soak` tries these."""
    return [pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow) for case in cases]


def by_turns(cases: Iterable[Any], nth: int = 6) -> list[Any]:
    """Return a test's parameters, all but each nth marked: they are much like it, so only `make soak` tries them."""
    return [case if number % nth == 0 else alike(case)[0] for number, case in enumerate(cases)]


def wait_until(
    predicate: Callable[[], T],
    timeout_s: float = 20,
    what: str = "the condition",
    accept: Callable[[T], object] = bool,
) -> T:
    """Call `predicate` until its value is true (or accepted); return that value.

    If the time is up, the test fails and shows the last value. So let the predicate return what it looked at, and
    judge it in `accept`, where that says more than False:

        wait_until(lambda: status("a1"), accept=lambda status: status == "running", what="a1 to run")
    """
    give_up_at = time.monotonic() + timeout_s
    while True:
        begun = time.monotonic()
        value = predicate()
        if accept(value):
            return value
        if time.monotonic() > give_up_at:
            pytest.fail(f"waited {timeout_s} s for {what}, without success; last seen: {value!r}")
        # A look that runs a command would otherwise take the processor from what it waits for.
        time.sleep(max(POLL_S, 2 * (time.monotonic() - begun)))


def remove(folder: str | os.PathLike[str]) -> None:
    """Remove a folder as a person does, who says so again where `rm` complains.

    A shim may write into the folder of its task after `rm` has listed it, which then finds that it is not empty.
    """
    wait_until(
        lambda: subprocess.run(["rm", "-rf", folder], capture_output=True, text=True, check=False).stderr,
        accept=lambda told: told == "",
        what=f"{folder} to be removed",
    )


def text_in(path: str | Path) -> str:
    """Return what a file holds; nothing while it is not there."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return ""


def wait_for_text(path: str | Path, part: str = "", timeout_s: float = 20) -> str:
    """Wait until a file holds some text (that has `part` in it), and return all of it."""
    what = f"{part!r} in {path}" if part else f"{path} to be written"
    return wait_until(lambda: text_in(path), timeout_s, what=what, accept=lambda text: text and part in text)


def wait_for_json(path: str | Path, timeout_s: float = 20) -> Any:
    """Wait until a file holds a JSON document (whoever writes one may be seen between its first and its last byte)."""

    def document() -> tuple[Any] | None:
        try:
            return (json.loads(text_in(path)),)
        except ValueError:
            return None

    found = wait_until(document, timeout_s, what=f"a JSON document in {path}")
    assert found
    return found[0]


def is_alive(pid: int) -> bool:
    """Return whether a process with this pid is alive; a stopped one is, a zombie is not."""
    try:
        return psutil.Process(pid).status() not in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
    except psutil.NoSuchProcess:
        return False


def reap_background() -> None:
    """Reap the programs started by `start` that have ended."""
    for process in _background:
        process.poll()


def forget_background() -> None:
    """Close the pipes of these programs. Call it after the survivors were listed: a program may die of this."""
    for process in _background:
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None and not pipe.closed:
                _close(pipe)
        process.poll()
    _background[:] = [process for process in _background if process.returncode is None]


def _close(pipe: Any) -> None:
    try:
        pipe.close()
    except BrokenPipeError:
        pass  # the program that was still to get data is gone


def _read_what_is_there(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Return the output of a killed program; a child that inherited its pipes may keep them open for ever."""
    try:
        return process.communicate(timeout=1)
    except subprocess.TimeoutExpired as error:
        return _text(error.output), _text(error.stderr)


def _text(captured: str | bytes | None) -> str:
    return captured.decode(errors="replace") if isinstance(captured, bytes) else captured or ""

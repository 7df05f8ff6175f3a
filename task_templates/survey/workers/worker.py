"""What every worker of this template does: report progress, ask, save its findings, end promptly.

Outside agentctl (no AGENTCTL_TASK) it reports to nobody and the default answers the question;
without AGENTCTL_AGENT_DIR nothing is written and the text on stdout is all there is.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

Item = TypeVar("Item")

PROGRESS_INTERVAL_S = 1.0
EXIT_TIMED_OUT = 4
EXIT_INTERRUPTED = 130


class WorkerError(Exception):
    """The worker cannot do its work; the message says what and where."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    choice: str
    how: str
    "Who chose: a sentence for the findings."


class Worker:
    """One worker's link to agentctl and to its own folder."""

    def __init__(self, name: str) -> None:
        folder = os.environ.get("AGENTCTL_AGENT_DIR")
        self.name = name
        self.agent_dir = Path(folder) if folder else None
        self.in_task = bool(os.environ.get("AGENTCTL_TASK"))
        self._last_progress_at = float("-inf")
        self._reporting: subprocess.Popen[bytes] | None = None

    def progress(self, percent: float, text: str, *, in_any_case: bool = False) -> None:
        """Report progress; calls that come too fast, or while the last is under way, are dropped."""
        if not self.in_task:
            return
        if in_any_case:
            self._settle_progress()
        now = time.monotonic()
        if not in_any_case and now - self._last_progress_at < PROGRESS_INTERVAL_S:
            return
        if self._reporting is not None and self._reporting.poll() is None:
            return
        self._last_progress_at = now
        try:
            self._reporting = _start("report", "progress", str(round(percent)), text)
        except OSError as problem:  # progress is a courtesy: the work goes on without it
            print(f"progress not reported: {problem}", file=sys.stderr)

    def each(self, items: Sequence[Item], doing: str, start: float = 0, end: float = 100) -> Iterator[Item]:
        """Yield the items and report how far between `start` and `end` percent that is."""
        for done, item in enumerate(items):
            self.progress(start + (end - start) * done / len(items), f"{doing}: {done} of {len(items)}")
            yield item

    def ask(self, question: str, options: dict[str, str], default: str, deadline_s: float) -> Answer:
        """Ask a person to choose one of the options (id: label); the default stands in for silence."""
        if not self.in_task:
            return Answer(choice=default, how="nobody to ask outside a task: the default was taken")
        self._settle_progress()
        given = [f"--option={identifier}={label}" for identifier, label in options.items()]
        given += ["--default", default, "--timeout-seconds", f"{deadline_s:g}", question]
        asked_at = time.monotonic()
        try:
            code, answer = _call("interact", "ask", "--kind", "select", *given)
        except OSError as problem:
            return Answer(choice=default, how=f"the question could not be asked ({problem}): the default was taken")
        choice = answer.decode("utf-8", "replace").strip()
        is_late = time.monotonic() - asked_at >= deadline_s
        if code == EXIT_TIMED_OUT or (choice == default and is_late):  # then agentctl has answered
            return Answer(choice=default, how=f"no answer within {deadline_s:g} s: the default was taken")
        if code == 0 and choice in options:
            return Answer(choice=choice, how="chosen in answer to the question")
        return Answer(choice=default, how=f"the question failed (exit {code}): the default was taken")

    def save(self, findings: dict[str, Any], *, complete: bool) -> Path | None:
        """Write findings.json whole or not at all."""
        if self.agent_dir is None:
            return None
        target = self.agent_dir / "findings.json"
        record = {"worker": self.name, "complete": complete, **findings}
        write_atomically(target, json.dumps(record, indent=1, ensure_ascii=True) + "\n")
        return target

    def finish(self, findings: dict[str, Any], file: Path | None = None) -> None:
        """Save the complete findings, print their text, declare the result."""
        saved = self.save(findings, complete=True)
        print("\n".join([findings["summary"], "", *findings["markdown"]]), flush=True)
        self.declare(findings["summary"], file or saved)

    def declare(self, summary: str, file: Path | None) -> None:
        self._settle_progress()
        if not self.in_task:
            return
        code, _ = _call("report", "result", "--summary", summary, *(["--file", str(file)] if file else []))
        if code != 0:
            raise WorkerError(f"the result could not be declared (exit {code}); it is in {file}")

    def _settle_progress(self) -> None:
        """Wait for the last progress call: overtaken by what follows, it would be told too late."""
        if self._reporting is not None:
            self._reporting.wait()


def run(name: str, work: Callable[[Worker, argparse.Namespace], None], parser: argparse.ArgumentParser) -> None:
    """Run one worker to its end; never returns."""
    signal.signal(signal.SIGINT, _end_at_once)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    arguments = parser.parse_args()
    try:
        work(Worker(name), arguments)
    except (WorkerError, OSError) as problem:
        print(f"error: {name}: {problem}", file=sys.stderr)
        sys.exit(1)
    sys.exit(0)


def argument_parser(description: str | None) -> argparse.ArgumentParser:
    """The arguments that all workers share."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", nargs="?", default=".", help="the folder to examine (default: this one)")
    parser.add_argument("--top", type=positive, default=10, help="how many entries each list has (default: 10)")
    return parser


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number


def write_atomically(target: Path, text: str) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def agentctl_json(*arguments: str) -> Any:
    """What an agentctl command prints with --json; None when it cannot be had."""
    try:
        code, printed = _call(*arguments, "--json")
        return json.loads(printed) if code == 0 else None
    except (OSError, ValueError):
        return None


def _start(*arguments: str, output: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """Start an agentctl command.

    A cancel sends SIGINT to the worker and all below it: blocked here, it leaves the command alone (whoever
    started it decides what becomes of it), which else would end in the middle with a traceback.
    """
    # -P: the current folder is the tree under examination: its `agentctl/` or `json.py` must not be imported.
    command = [sys.executable, "-P", "-m", "agentctl", *arguments]
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _call(*arguments: str) -> tuple[int, bytes]:
    """Run an agentctl command to its end; returns its exit code and what it printed."""
    process = _start(*arguments, output=subprocess.PIPE)
    try:
        printed, _ = process.communicate()
    except BaseException:
        process.kill()
        process.wait()
        raise
    return process.returncode, printed


def _end_at_once(_number: int, _frame: FrameType | None) -> None:
    """Unwind as an exit, not as KeyboardInterrupt: `subprocess.run` kills its child, nothing is shown."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise SystemExit(EXIT_INTERRUPTED)

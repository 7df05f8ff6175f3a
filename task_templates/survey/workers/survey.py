"""What all workers of the survey share: the link to agentctl, the files of the tree, and Markdown.

Outside agentctl (no AGENTCTL_TASK) a worker reports to nobody, and the default answers its question; without
AGENTCTL_AGENT_DIR it writes no file, and what it prints is all there is.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import signal
import stat
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: -P: the current folder may be the surveyed tree, and nothing is imported from there.
AGENTCTL = (sys.executable, "-P", "-m", "agentctl")
TOP = 10  # How many entries each list has.
TEXT_LIMIT_BYTES = 1024 * 1024

#: Folders that do not hold a project's own source, and files that only such a folder has.
SKIPPED = {
    ".git", ".hg", ".svn", ".agentctl", "node_modules", "site-packages", "vendor", "third_party", "__pycache__",
    ".mypy_cache", ".hypothesis", ".cache", ".tox", ".nox", ".eggs",
}  # fmt: skip
SKIPPED_WITH = ("pyvenv.cfg", "CACHEDIR.TAG")


class WorkerError(Exception):
    """The worker cannot do its work; the message says what is wrong, and where."""


class Worker:
    """One worker's link to agentctl and to its own folder."""

    def __init__(self, name: str) -> None:
        folder = os.environ.get("AGENTCTL_AGENT_DIR")
        self.name = name
        self.folder = Path(folder) if folder else None
        self.in_task = bool(os.environ.get("AGENTCTL_TASK"))
        self._next_progress_at = float("-inf")
        self._reporting: subprocess.Popen[bytes] | None = None

    def progress(self, percent: float, text: str) -> None:
        """Report progress; a call that comes too soon, or while the last report is under way, does nothing."""
        is_reporting = self._reporting is not None and self._reporting.poll() is None
        if not self.in_task or is_reporting or time.monotonic() < self._next_progress_at:
            return
        self._next_progress_at = time.monotonic() + 1
        command = [*AGENTCTL, "report", "progress", str(round(percent)), text]
        self._reporting = subprocess.Popen(command, stdout=subprocess.DEVNULL, preexec_fn=_block_sigint)  # noqa: PLW1509

    def each(self, files: Sequence[SourceFile], doing: str) -> Iterator[SourceFile]:
        """Yield the files and report how many of them are done."""
        for done, file in enumerate(files):
            self.progress(100 * done / len(files), f"{doing}: {done} of {len(files)}")
            yield file

    def ask(self, question: str, options: dict[str, str], default: str, limit_s: float) -> tuple[str, str]:
        """Return the option (id: label) that a person chose, or else the default, and how it was chosen."""
        if not self.in_task:
            return default, "nobody to ask outside a task: the default was taken"
        given = [f"--option={name}={label}" for name, label in options.items()]
        limits = ["--default", default, "--timeout-seconds", f"{limit_s:g}"]
        answer = self.agentctl("interact", "ask", "--kind", "select", *given, *limits, question)
        if not isinstance(answer, dict) or answer.get("answer") not in options:
            return default, "the question failed: the default was taken"
        if answer.get("by") == "agentctl":
            return default, f"no answer within {limit_s:g} s: the default was taken"
        return answer["answer"], "chosen in answer to the question"

    def save(self, findings: dict[str, Any], *, complete: bool) -> Path | None:
        """Write findings.json and return its path."""
        record = {"worker": self.name, "complete": complete, **findings}
        return self.write("findings.json", json.dumps(record, indent=1) + "\n")

    def write(self, name: str, text: str) -> Path | None:
        """Write a file of the worker's own, whole or not at all, and return its path; None without a folder."""
        if self.folder is None:
            return None
        unfinished = self.folder / f".{name}.new"
        unfinished.write_text(text, encoding="utf-8", errors="backslashreplace")
        return unfinished.replace(self.folder / name)

    def finish(self, findings: dict[str, Any], file: Path | None = None) -> None:
        """Save the complete findings, print them, and declare the result with a file: by default the findings."""
        saved = self.save(findings, complete=True)
        print("\n".join([findings["summary"], "", *findings["markdown"]]), flush=True)
        given = [f"--file={file or saved}"] if file or saved else []
        if self.in_task and self.agentctl("report", "result", "--summary", findings["summary"], *given) is None:
            raise WorkerError(f"the result could not be declared; the findings are in {saved}")

    def agentctl(self, *arguments: str) -> Any:
        """Return what a command of agentctl prints with --json; None if it fails."""
        if self._reporting is not None:
            self._reporting.wait()  # Otherwise progress could be reported after what follows it.
        command = [*AGENTCTL, *arguments, "--json"]
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, check=True, preexec_fn=_block_sigint)
            return json.loads(done.stdout)
        except (OSError, ValueError, subprocess.CalledProcessError):
            return None


def _block_sigint() -> None:
    """Keep the SIGINT of a cancel, which reaches all processes, from a command that would end with a traceback."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def run(name: str, work: Callable[[Worker, argparse.Namespace], None], parser: argparse.ArgumentParser) -> None:
    """Run one worker to its end; never returns."""
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))  # `subprocess.run` kills its child on the way.
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
    """Return a parser of the argument that all workers take."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("path", nargs="?", default=".", help="the folder to examine (default: this one)")
    return parser


# --- the files of the tree ---


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceFile:
    """A regular file of the tree; bytes of its path that are not UTF-8 are surrogates."""

    path: str
    relative: str
    size_bytes: int

    @property
    def name(self) -> str:
        return self.relative.rpartition("/")[2]

    @property
    def is_python(self) -> bool:
        return self.name.endswith((".py", ".pyi", ".pyw"))

    @property
    def area(self) -> str:
        """The folder that the file is counted for, at most two levels deep; fit to be shown."""
        return shown("/".join(self.relative.split("/")[:-1][:2]) or ".")


@dataclass(kw_only=True, slots=True)
class Tree:
    """The files of a source tree, and what was left out."""

    root: str
    files: list[SourceFile] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    "How many links, special, binary and very large files were not read."

    def text(self, file: SourceFile) -> str | None:
        """Return the file's text; None, with the reason noted, if it has none that can be read."""
        try:
            # The tree may have changed since the walk: this neither follows a link nor waits for a FIFO.
            with open(os.open(file.path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as stream:
                content = stream.read(TEXT_LIMIT_BYTES + 1)
        except OSError as problem:
            self.unreadable[file.relative] = problem.strerror or str(problem)
            return None
        reason = "larger than 1 MiB" if len(content) > TEXT_LIMIT_BYTES else "binary" if b"\0" in content else None
        if reason is None:
            return content.decode("utf-8-sig", "replace")
        self.left_out[reason] += 1
        return None


def walk(path: str) -> Tree:
    """Return the regular files below `path`; links, which may form a loop, are not followed.

    Raises:
        WorkerError: `path` is not a folder that can be listed.
    """
    tree = Tree(root=os.path.abspath(path))
    pending = [""]
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(os.path.join(tree.root, folder)) as listing:
                entries = list(listing)
        except OSError as problem:
            if not folder:
                raise WorkerError(f"cannot list the folder {shown(tree.root)}: {problem.strerror}") from problem
            tree.unreadable[folder] = problem.strerror or str(problem)
            continue
        for entry in entries:
            _take(tree, f"{folder}/{entry.name}".lstrip("/"), entry, pending)
    tree.files.sort(key=lambda file: file.relative)
    return tree


def _take(tree: Tree, relative: str, entry: os.DirEntry[str], pending: list[str]) -> None:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError as problem:
        tree.unreadable[relative] = problem.strerror or str(problem)
        return
    if stat.S_ISDIR(status.st_mode):
        is_skipped = any(os.path.lexists(os.path.join(entry.path, name)) for name in SKIPPED_WITH)
        (tree.skipped if is_skipped or entry.name in SKIPPED else pending).append(relative)
    elif stat.S_ISREG(status.st_mode):
        tree.files.append(SourceFile(path=entry.path, relative=relative, size_bytes=status.st_size))
    else:
        tree.left_out["symbolic link" if stat.S_ISLNK(status.st_mode) else "special file"] += 1


def parse(text: str) -> ast.Module | None:
    """Return the syntax tree; None for text that is not Python as this interpreter knows it, or nests without end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


# --- Markdown ---


def shown(text: str, limit: int = 200) -> str:
    """Return one printable line: no bytes that are not UTF-8, no control characters."""
    cleaned = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    printable = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cleaned)
    return printable if len(printable) <= limit else printable[: limit - 1] + "…"


def code(text: str, limit: int = 200) -> str:
    """Return a code span: whatever the text holds is shown, not rendered."""
    printable = shown(text, limit).strip() or " "
    return f"`` {printable.replace('``', '` `')} ``" if "`" in printable else f"`{printable}`"


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return an aligned table with the numbers to the right; "None." if there are no rows."""
    values = list(rows)
    if not values:
        return ["None."]
    body = [[f"{one:,}" if isinstance(one, int) else str(one).replace("|", "\\|") for one in row] for row in values]
    widths = [max(3, *map(len, column)) for column in zip(headers, *body, strict=True)]
    formats = [(">" if isinstance(value, int) else "<", width) for value, width in zip(values[0], widths, strict=True)]
    rule = [f"{':' if side == '>' else '-':->{width}}" for side, width in formats]
    lines = [zip(cells, formats, strict=True) for cells in (headers, rule, *body)]
    return [f"| {' | '.join(f'{cell:{side}{width}}' for cell, (side, width) in line)} |" for line in lines]


def plural(number: int, one: str) -> str:
    """Return the number with its noun."""
    return f"{number:,} {one if number == 1 else one + 's'}"

"""Finds and searches files, up to so many lines: `python -I -S .../search_process.py`, its order as JSON on stdin.

It is a process of its own because a regular expression of a model may take for ever: then it is killed. It follows no
link, and prints lines as it finds them.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

#: Version control, other workers' files: nobody means these unless they name them.
_SKIPPED = frozenset({".git", ".hg", ".svn", ".agentctl", "node_modules", "__pycache__", ".venv"})
_MOST_LINES, _LONGEST_LINE, _MOST_BYTES = 300, 400, 40_000
_LEFT_OUT = "[what this agent's rules deny, or ask about, is left out]"
_LARGEST, _HEAD = 8 << 20, 4096
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_GLOB_PARTS = re.compile(r"\*\*/|\*\*|\*|\?|\[[^\]]+\]|\{[^{}]*\}|[^*?\[{]+|.", re.DOTALL)


class Enough(Exception):
    """There is more than anybody would read."""


class Printer:
    """Prints lines until there are enough."""

    def __init__(self, until: float) -> None:
        self._until, self._lines, self._bytes = until, 0, 0

    def line(self, text: str) -> None:
        """Print a line; raise `Enough` behind the last one that is wanted."""
        data = text.encode("utf-8", "backslashreplace") + b"\n"
        sys.stdout.buffer.write(data)
        self._lines += 1
        self._bytes += len(data)
        if self._lines >= _MOST_LINES or self._bytes >= _MOST_BYTES:
            raise Enough(f"[only the first {self._lines} are shown: narrow it down]")

    def look_at_time(self) -> None:
        """Show what there is so far; raise `Enough` where it has taken too long."""
        sys.stdout.buffer.flush()
        if time.monotonic() > self._until:
            raise Enough("[it took too long: only a part was looked at; narrow it down]")


def glob_pattern(glob: str) -> re.Pattern[str]:
    """Return a glob as a pattern for whole relative paths; one without a slash is for the name in any folder.

    >>> [bool(glob_pattern("**/*.py").fullmatch(path)) for path in ("a.py", "a/b/c.py", "a.pyc")]
    [True, True, False]
    """
    parts = [_part(part) for part in _GLOB_PARTS.findall(glob.removeprefix("./"))]
    anywhere = "" if "/" in glob else "(?:.*/)?"
    return re.compile(anywhere + "".join(parts), re.DOTALL)


def _part(part: str) -> str:
    match part:
        case "**/":
            return "(?:.*/)?"
        case "**":
            return ".*"
        case "*":
            return "[^/]*"
        case "?":
            return "[^/]"
    if part.startswith("[") and len(part) > 2:
        inner = part[1:-1].replace("\\", "\\\\").replace("[", "\\[")
        return f"[^{inner[1:]}]" if inner.startswith("!") and len(inner) > 1 else f"[{inner}]"
    if part.startswith("{") and part.endswith("}"):
        return f"(?:{'|'.join(re.escape(one) for one in part[1:-1].split(','))})"
    return re.escape(part)


class Rules:
    """What the agent's rules say of the paths that are met: a denied one is neither opened nor named.

    Args:
        order: With `rules`, `folder`, `base`, `prefix`, and `wasAsked`: somebody has allowed all of this search.
    """

    def __init__(self, order: dict[str, Any]) -> None:
        self._lists: list[tuple[str, list[dict[str, str]]]] = order["rules"]
        self._base, self._prefix = order["base"].rstrip("/"), order["prefix"]
        self._passing = {"allow", "ask"} if order["wasAsked"] else {"allow"}
        #: Some were left out.
        self.has_left_out = False
        if self._lists:
            # Only now is this package found, of which these parts need nothing else: nothing else is there (-S).
            sys.path.insert(0, os.path.abspath(__file__).rsplit("/", 4)[0])
            from agentctl.adapters.realpath import Resolver
            from agentctl.domain.agent.permissions import OWN_SEARCH, answer_by

            self._answer_by, self._resolver, self._also = answer_by, Resolver(order["folder"]), OWN_SEARCH

    def let_pass(self, path: str) -> bool:
        """Return whether a path, relative to the folder that is looked into, may be met; keep in mind if not."""
        for tool, rules in self._lists:
            shown = f"{self._prefix}{path}"
            real = _Unlinked(self._resolver, shown, f"{self._base}/{path}")
            if self._answer_by(rules, tool, {"path": shown}, real, self._also) not in self._passing:
                self.has_left_out = True
                return False
        return True


class _Unlinked:
    """Tells where paths lead, one of them without looking: no link was followed to it."""

    def __init__(self, resolver: Any, path: str, real: str) -> None:
        self._resolver, self._path, self._real = resolver, path, real

    def __call__(self, path: str) -> str | None:
        """See `Resolver`."""
        found: str | None = self._real if path == self._path else self._resolver(path)
        return found

    def readings(self, path: str) -> Sequence[str]:
        """See `Resolver`."""
        found: Sequence[str] = [self._real] if path == self._path else self._resolver.readings(path)
        return found

    def below(self, path: str) -> Sequence[str] | None:
        """See `Resolver`."""
        found: Sequence[str] | None = self._resolver.below(path)
        return found

    def leads_out(self, path: str) -> bool:
        """See `Resolver`."""
        return bool(self._resolver.leads_out(path))


def walk_files(top: int, order: dict[str, Any], rules: Rules, printer: Printer) -> Iterator[tuple[str, int]]:
    """Yield (relative path, descriptor of its folder) of the files below an open folder that may be met, in order.

    Args:
        order: With the real path of that folder as `base`, and as `hidden` those that are passed over.
    """
    base, hidden = order["base"].rstrip("/"), frozenset(order["hidden"])
    waiting = [""]
    while waiting:
        printer.look_at_time()
        relative = waiting.pop()
        try:
            folder = _open_below(top, relative)
        except OSError:
            continue
        try:
            with os.scandir(folder) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
            below = []
            for entry in found:
                path = f"{relative}/{entry.name}" if relative else entry.name
                is_folder = entry.is_dir(follow_symlinks=False)
                if f"{base}/{path}" in hidden or (is_folder and entry.name in _SKIPPED) or not rules.let_pass(path):
                    continue
                if is_folder:
                    below.append(path)
                else:
                    yield path, folder
            waiting += reversed(below)
        except OSError:
            continue
        finally:
            os.close(folder)


def _open_below(top: int, relative: str) -> int:
    place = os.dup(top)
    for part in filter(None, relative.split("/")):
        try:
            below = os.open(part, _FOLDER, dir_fd=place)
        finally:
            os.close(place)
        place = below
    return place


def search_files(top: int, order: dict[str, Any], rules: Rules, printer: Printer) -> None:
    """Print the lines of the files below that match a regular expression."""
    pattern = re.compile(order["pattern"], re.IGNORECASE if order.get("ignoreCase") else 0)
    prefix = order["prefix"]
    if only := order.get("only"):
        for number, line in _matches(only, top, pattern) if rules.let_pass(only) else ():
            printer.line(f"{prefix}{only}:{number}: {line}")
        return
    wanted = glob_pattern(order["glob"]) if order.get("glob") else None
    for path, folder in walk_files(top, order, rules, printer):
        if wanted is None or wanted.fullmatch(path):
            printer.look_at_time()
            for number, line in _matches(os.path.basename(path), folder, pattern):
                printer.line(f"{prefix}{path}:{number}: {line}")


def _matches(name: str, folder: int, pattern: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    try:
        fd = os.open(name, _FILE, dir_fd=folder)
    except OSError:
        return
    with os.fdopen(fd, "rb") as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST:
            return
        try:
            data = file.read(_LARGEST)
        except OSError:
            return
    if b"\0" in data[:_HEAD]:
        return
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        if pattern.search(line):
            yield number, line[:_LONGEST_LINE].rstrip("\r")


def find(top: int, order: dict[str, Any], rules: Rules, printer: Printer) -> None:
    """Print the paths below that match a glob."""
    wanted = glob_pattern(order["pattern"])
    for path, _ in walk_files(top, order, rules, printer):
        if wanted.fullmatch(path):
            printer.line(f"{order['prefix']}{path}")


def main() -> None:
    """Carry out the order: {what, fd, base, only, prefix, folder, hidden, rules, wasAsked, pattern, glob, ...}."""
    order = json.load(sys.stdin)
    printer, rules = Printer(time.monotonic() + order["seconds"]), Rules(order)
    works = {"find": find, "search": search_files}
    try:
        works[order["what"]](order["fd"], order, rules, printer)
    except Enough as enough:
        sys.stdout.buffer.write(f"{enough}\n".encode())
    except (re.error, OverflowError, RecursionError) as error:
        sys.stdout.buffer.write(f"[the pattern is not a regular expression: {error}]\n".encode())
    if rules.has_left_out:
        sys.stdout.buffer.write(f"{_LEFT_OUT}\n".encode())
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()

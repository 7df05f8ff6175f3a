"""How old single lines are: by `git blame`, and by the file's own date where git cannot tell."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from source_tree import SourceFile

MOST_RANGES = 200
"Above so many lines the whole file is blamed: git takes them one by one."
_SETTINGS = ("-c", "safe.bareRepository=explicit", "-c", "core.fsmonitor=", "-c", "core.hooksPath=/dev/null")
"The tree may be anybody's: nothing that it brings is run."
UNCOMMITTED = "0" * 40


@dataclass(frozen=True, kw_only=True, slots=True)
class Age:
    at: float
    "When the line was last changed, in seconds since the epoch."
    source: str
    "`git`, or `mtime`: the file was changed then, the line perhaps long before."
    author: str = ""
    at_least: bool = False
    "The history ends here (a shallow clone): the line is that old, or older."


@dataclass(kw_only=True, slots=True)
class LineAges:
    """Asks git, within a budget of time for the whole tree; counts why it could not tell."""

    budget_s: float
    failures: dict[str, int] = field(default_factory=dict)
    _spent_s: float = 0.0
    _tracked: dict[str, frozenset[bytes]] = field(default_factory=dict)
    _repositories: dict[str, str | None] = field(default_factory=dict)

    def of(self, file: SourceFile, lines: Sequence[int]) -> dict[int, Age]:
        """The age of each line (numbers from 1)."""
        by_date = dict.fromkeys(lines, Age(at=file.modified_at, source="mtime"))
        repository = self._repository(os.path.dirname(file.path))
        if repository is None:
            return self._without_git("outside a git repository", by_date)
        if self._spent_s >= self.budget_s:
            return self._without_git(f"git was asked for {self.budget_s:g} s, no longer", by_date)
        if os.path.relpath(file.path, repository).encode(errors="surrogateescape") not in self._files(repository):
            return self._without_git("not tracked by git", by_date)
        blamed = self._blame(repository, file.path, lines)
        if blamed is None:
            return self._without_git("git blame failed", by_date)
        missing = len(by_date.keys() - blamed.keys())
        if missing:
            self._count("not committed yet", missing)
        return by_date | blamed

    def _without_git(self, why: str, by_date: dict[int, Age]) -> dict[int, Age]:
        self._count(why, len(by_date))
        return by_date

    def _count(self, why: str, lines: int) -> None:
        self.failures[why] = self.failures.get(why, 0) + lines

    def _repository(self, folder: str) -> str | None:
        """The nearest folder upwards that holds a `.git` (a file in worktrees and submodules)."""
        passed = []
        while folder not in self._repositories:
            passed.append(folder)
            mark = os.path.join(folder, ".git")
            # An empty folder of that name is what some sandboxes leave behind, and no repository.
            if os.path.isfile(mark) or os.path.exists(os.path.join(mark, "HEAD")):
                self._repositories[folder] = folder
                break
            above = os.path.dirname(folder)
            if above == folder:
                self._repositories[folder] = None
                break
            folder = above
        answer = self._repositories[folder]
        self._repositories.update(dict.fromkeys(passed, answer))
        return answer

    def _files(self, repository: str) -> frozenset[bytes]:
        if repository not in self._tracked:
            listed = self._git(repository, "ls-files", "-z")
            self._tracked[repository] = frozenset((listed or b"").split(b"\0"))
        return self._tracked[repository]

    def _blame(self, repository: str, path: str, lines: Sequence[int]) -> dict[int, Age] | None:
        ranges = [f"-L{line},{line}" for line in lines] if len(lines) <= MOST_RANGES else []
        told = self._git(repository, "blame", "--line-porcelain", *ranges, "--", path)
        if told is None:
            return None
        wanted = set(lines)
        shallow = self._git(repository, "rev-parse", "--is-shallow-repository") == b"true\n"
        return {line: age for line, age in _read_porcelain(told, shallow=shallow) if line in wanted}

    def _git(self, repository: str, *arguments: str) -> bytes | None:
        began = time.monotonic()
        try:
            done = subprocess.run(
                ["git", *_SETTINGS, "-C", repository, *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=max(1.0, self.budget_s - self._spent_s),
                env={
                    **os.environ,
                    "PATH": _absolute(os.environ.get("PATH", os.defpath)),
                    "GIT_OPTIONAL_LOCKS": "0",
                    "LC_ALL": "C",
                },
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        finally:
            self._spent_s += time.monotonic() - began
        return done.stdout if done.returncode == 0 else None


def _absolute(path: str) -> str:
    """A PATH without the entries that mean the working folder: what is called git there may be anybody's."""
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if os.path.isabs(entry))


def _read_porcelain(told: bytes, *, shallow: bool) -> Iterator[tuple[int, Age]]:
    """The committed lines among those blamed: a header, `key value` lines, then a tab and the content."""
    header: list[bytes] = []
    facts: dict[bytes, bytes] = {}
    for row in told.split(b"\n"):
        if row.startswith(b"\t"):
            if header and header[0].decode() != UNCOMMITTED:
                yield (
                    int(header[2]),
                    Age(
                        at=float(facts[b"author-time"]),
                        source="git",
                        author=facts.get(b"author", b"").decode("utf-8", "replace"),
                        at_least=shallow and b"boundary" in facts,
                    ),
                )
            header, facts = [], {}
        elif not header:
            header = row.split(b" ")
        else:
            key, _, value = row.partition(b" ")
            facts[key] = value

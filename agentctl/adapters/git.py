"""Calls the `git` program so that it runs and changes nothing but what was asked for.

A caller's `GIT_DIR` and the like never reach it (a spawn may come from a hook). Hooks and file system monitors, which
a repository's settings may name, are switched off. A folder of git's own, which a clone can bring among its files, does
not count as a repository unless it is given by name. The folders of a known worktree are given by name: an agent can
change the `.git` in it, and make it name settings that run something.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Mapping

from agentctl.adapters.searchpath import settled
from agentctl.errors import AgentctlError, Next
from agentctl.lean import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import IO

#: A caller's variables about git as a whole; every other GIT_* is about a repository, or changes what is printed.
_KEPT = frozenset(
    ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH", "GIT_SSH", "GIT_SSH_COMMAND")
)
#: What git needs to find its own programs and a person's settings: for a process without an environment of its own.
NEEDED = frozenset({"PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR", "USER", *_KEPT})
_ALWAYS = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    # Reading must not take the lock of somebody's index.
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_EDITOR": ":",
}
_SETTINGS = (
    "core.hooksPath=/dev/null", "core.fsmonitor=", "core.splitIndex=false", "submodule.recurse=false", "gc.auto=0",
    "maintenance.auto=false", "core.pager=cat", "safe.bareRepository=explicit",
    # A person's wishes for what they write and read themselves: one file, or a missing one, would cost all of a patch.
    "core.safecrlf=false", "diff.orderFile=/dev/null",
)  # fmt: skip
#: Another git holds a lock. A branch whose name blocks another's gives a similar error, but waiting does not help then.
_LOCKED = re.compile(r"\.lock': File exists|could not lock|cannot lock ref(?!.*cannot create)", re.DOTALL)
#: What git says of a folder that is in no repository (setup.c).
_NOWHERE = "not a git repository (or any"
#: What it advises where a repository belongs to somebody else (ensure_valid_ownership).
_ADVICE = re.compile(r"^\s*(git config --global --add safe\.directory .+?)\s*$", re.MULTILINE)
_TRIES, _FIRST_PAUSE_S = 8, 0.05
#: Becomes a program whose files are limited, and which leaves no core when that ends it. A shell does it, since no code
#: of ours may run in a forked child beside threads, and a limit that is set from outside comes too late for a fast git.
_LIMITED = 'ulimit -c 0 && ulimit -f "$0" && exec "$@"'
#: The unit of `ulimit -f` (POSIX, sh).
_UNIT = 512
_SHOWN = 300


class GitError(AgentctlError):
    """git refused, or is not installed; the message quotes it, the hint is what git itself advises."""

    @property
    def is_nowhere(self) -> bool:
        """Return whether the folder is in no repository, which is not what every other failure means."""
        return _NOWHERE in self.message

    @property
    def is_locked(self) -> bool:
        """Return whether another git was in the way: a later try may work."""
        return _LOCKED.search(self.message) is not None


class GitTimeout(GitError):
    """git did not end within its time."""


def plain_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without what names a repository, or finds programs in the working folder."""
    kept = {name: value for name, value in environ.items() if not name.startswith("GIT_") or name in _KEPT}
    return settled(kept)


class Git(NamedTuple):
    """git in a folder, with the environment that describes its repository."""

    folder: str
    environ: Mapping[str, str]
    deadline: float

    def run(
        self, *args: str, stdin: bytes = b"", into: IO[bytes] | None = None, most_bytes: int | None = None
    ) -> bytes:
        """Return what git prints.

        It gets files, not pipes: a filter that outlives its git would hold a pipe open.

        Args:
            into: A file that gets the output instead.
            most_bytes: It is stopped (`GitError`) before it writes more into a file: a multiple of 512.
        """
        import tempfile

        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            given.write(stdin)
            given.seek(0)
            code = self._execute(args, (given, into or out, err), most_bytes)
            err.seek(0)
            if code != 0:
                raise _error(args, code, os.fsdecode(err.read()))
            out.seek(0)
            return out.read()

    def _execute(self, args: tuple[str, ...], files: tuple[IO[bytes], IO[bytes], IO[bytes]], most: int | None) -> int:
        import subprocess

        if "GIT_DIR" not in self.environ:
            _refuse_hidden(self.folder)
        settings = [part for setting in _SETTINGS for part in ("-c", setting)]
        limited = [] if most is None else ["/bin/sh", "-c", _LIMITED, str(most // _UNIT)]
        try:
            process = subprocess.Popen(
                [*limited, "git", *settings, *args], cwd=self.folder, env={**self.environ, **_ALWAYS},
                stdin=files[0], stdout=files[1], stderr=files[2], process_group=0,
            )  # fmt: skip
        except FileNotFoundError as error:
            if not os.path.isdir(self.folder):
                raise GitError(f"there is no folder {self.folder}") from error
            raise GitError("there is no program 'git' in PATH", hint="install git") from error
        except OSError as error:
            raise GitError(f"git cannot be started in {self.folder}: {error.strerror}") from error
        try:
            return process.wait(max(0.0, self.deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise GitTimeout(f"git {args[0]} did not end in time in {self.folder}") from None
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)  # With its filters, aliases and transport programs.
                process.wait()

    def text(self, *args: str) -> str:
        """Return the single line that git prints; a path in it may hold any byte."""
        return os.fsdecode(self.run(*args)).removesuffix("\n")

    def names(self, *args: str) -> list[str]:
        """Return the names that git prints, each followed by a NUL."""
        return [os.fsdecode(name) for name in self.run(*args).split(b"\0") if name]

    def patiently(self, *args: str) -> None:
        """Run a command that takes a lock of git's, which another git may hold for a moment."""
        for number in range(_TRIES):
            try:
                self.run(*args)
                return
            except GitError as error:
                if not error.is_locked or number == _TRIES - 1:
                    raise
                pause_before_try(number)

    def with_environment(self, more: Mapping[str, str]) -> Git:
        """Return this git with more variables in its environment."""
        return self._replace(environ={**self.environ, **more})

    def elsewhere(self, folder: str, places: Mapping[str, str]) -> Git:
        """Return git for another repository, with the time that this one has left."""
        return Git(folder, {**plain_environment(self.environ), **places}, self.deadline)


def pause_before_try(number: int) -> None:
    """Sleep before try `number + 1`: longer each time, and at random, so that competing gits do not stay in step."""
    time.sleep(_FIRST_PAUSE_S * 1.6**number * (0.5 + os.urandom(1)[0] / 255))


def git_in(folder: str, *, limit_s: float, environ: Mapping[str, str] = os.environ) -> Git:
    """Return git for the repository that a folder lies in; all its runs together may take `limit_s`."""
    return Git(folder, plain_environment(environ), time.monotonic() + limit_s)


def git_of(common: str, *, limit_s: float, environ: Mapping[str, str] = os.environ) -> Git:
    """Return git for a repository known by the folder that all its worktrees share."""
    return git_in(common, limit_s=limit_s, environ=environ).with_environment({"GIT_DIR": common})


def git_of_worktree(
    path: str, git_dir: str, common: str, *, limit_s: float, environ: Mapping[str, str] = os.environ
) -> Git:
    """Return git for a worktree, whatever its `.git` says now."""
    places = {"GIT_DIR": git_dir, "GIT_COMMON_DIR": common, "GIT_WORK_TREE": path}
    return git_in(path, limit_s=limit_s, environ=environ).with_environment(places)


def quoted_alternate(folder: str) -> str:
    """Return a folder quoted for GIT_ALTERNATE_OBJECT_DIRECTORIES: a bare colon would end it."""
    escaped = folder.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def entry_above(folder: str) -> str | None:
    """Return the `.git` that git would find first from a folder, without running it; None where there is none."""
    place = os.path.realpath(folder)
    while not os.path.lexists(entry := os.path.join(place, ".git")):
        if place == os.path.dirname(place):
            return None
        place = os.path.dirname(place)
    return entry


def _refuse_hidden(folder: str) -> None:
    """Refuse a folder that git before 2.38 would take for a repository although nothing in it is called `.git`."""
    place = os.path.realpath(folder)
    while not os.path.lexists(os.path.join(place, ".git")):
        if _is_gits(place):
            raise GitError(f"{place} is a folder of git's own, not a working tree", hint=Next("another folder"))
        if place == os.path.dirname(place):
            return
        place = os.path.dirname(place)


def _is_gits(folder: str) -> bool:
    """Return whether git would find its own files in a folder, or some of them and a pointer to the others."""
    has = [os.path.lexists(os.path.join(folder, name)) for name in ("HEAD", "objects", "commondir")]
    return has[0] and any(has[1:])


def _error(args: tuple[str, ...], code: int, said: str) -> GitError:
    advised, words = _ADVICE.search(said), _words(args, code, said)
    if advised is None:
        return GitError(words)
    settings = (value for name, value in os.environ.items() if name.startswith("GIT_CONFIG_"))
    if any("safe.directory" in value.lower() for value in settings):
        words += (
            "; safe.directory in GIT_CONFIG_COUNT or GIT_CONFIG_PARAMETERS is not enough: the repository is"
            " looked at again later, without these variables"
        )
    return GitError(words, hint=advised[1])


def _words(args: tuple[str, ...], code: int, said: str) -> str:
    """Return git's error output as one line: its errors, or its last lines where it names none."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    shown = [line for line in lines if line.startswith(("fatal:", "error:"))] or lines[-3:]
    ended = f"signal {-code}" if code < 0 else f"exit code {code}"
    return f"git {args[0]}: {' '.join(shown)[-_SHOWN:] or ended}"

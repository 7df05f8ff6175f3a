"""The files of a source tree, and what was left out and why.

Links are not followed (so a loop cannot catch the walk), special files are not opened (a FIFO would block),
and no name, content or missing permission ends the walk: what cannot be read is listed.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from worker import WorkerError

TEXT_LIMIT_BYTES = 8 * 1024 * 1024
HEAD_BYTES = 8192
MINIFIED_LINE_BYTES = 400
"Mean length of a line above which nobody wrote it by hand."

#: Folders that are not the project's own source, whatever holds them.
SKIPPED = {
    **dict.fromkeys([".git", ".hg", ".svn", ".bzr", "CVS", ".jj"], "version control"),
    **dict.fromkeys(
        ["node_modules", "bower_components", "site-packages", "jspm_packages", "Pods"],
        "installed dependencies",
    ),
    **dict.fromkeys(["vendor", "third_party", "third-party", "vendored", "_vendor"], "vendored"),
    **dict.fromkeys(["__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".cache"], "cache"),
    **dict.fromkeys([".tox", ".nox", ".eggs", ".gradle", ".next", ".nuxt", ".terraform", "htmlcov"], "generated"),
    ".agentctl": "tasks of agentctl",
}
#: Names that people also give to source: skipped only beside a file that tells who generates them.
SKIPPED_BESIDE = {
    "target": {"Cargo.toml", "pom.xml", "build.sbt"},
    "build": {
        "pyproject.toml",
        "setup.py",
        "build.gradle",
        "build.gradle.kts",
        "CMakeLists.txt",
        "package.json",
    },
    "dist": {"pyproject.toml", "setup.py", "package.json"},
    "out": {"package.json", "build.gradle"},
    "coverage": {"package.json"},
}
GENERATED_NAME = re.compile(
    r"\.min\.(?:js|css)$|\.(?:js|css)\.map$|_pb2(?:_grpc)?\.pyi?$|\.pb\.(?:go|cc|h)$|\.g\.dart$|\.designer\.cs$"
    r"|^package-lock\.json$|^npm-shrinkwrap\.json$|^yarn\.lock$|^pnpm-lock\.yaml$|^go\.sum$"
    r"|^(?:poetry|uv|Pipfile|Cargo|composer|Gemfile)\.lock$"
)
GENERATED_MARK = re.compile(
    r"@generated|code generated .{0,80}do not edit|this file (?:is|was) (?:auto-?)?generated", re.IGNORECASE
)


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceFile:
    path: str
    "As the system names it; may hold bytes that are not UTF-8 (as surrogates)."
    relative: str
    size_bytes: int
    modified_at: float

    @property
    def name(self) -> str:
        return self.relative.rpartition("/")[2]

    @property
    def folder(self) -> str:
        return self.relative.rpartition("/")[0]


@dataclass(kw_only=True, slots=True)
class Tree:
    root: str
    files: list[SourceFile] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    "Folder: the reason why it was not entered."
    unreadable: dict[str, str] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    "How many symbolic links and special files were not followed or opened."
    without_text: dict[str, str] = field(default_factory=dict)

    def text(self, file: SourceFile) -> str | None:
        """The file's text; None (and noted why) where it has none that can be read."""
        try:
            content = read_regular(file.path, TEXT_LIMIT_BYTES + 1)
        except OSError as problem:
            self.unreadable[file.relative] = problem.strerror or str(problem)
            return None
        if len(content) > TEXT_LIMIT_BYTES:
            self.without_text[file.relative] = "larger than 8 MiB"
            return None
        decoded = decode(content)
        if decoded is None:
            self.without_text[file.relative] = "binary"
        return decoded

    def remarks(self) -> dict[str, Any]:
        """What the findings say of all that was not examined."""
        return {
            "skippedFolders": [{"folder": shown(name), "reason": why} for name, why in sorted(self.skipped.items())],
            "unreadable": [{"path": shown(name), "problem": why} for name, why in sorted(self.unreadable.items())],
            "leftOut": dict(sorted((self.left_out + Counter(self.without_text.values())).items())),
        }


def walk(path: str, on_folder: Callable[[int], None] = lambda _count: None) -> Tree:
    """Find all regular files below `path`, in the order of their names.

    Raises:
        WorkerError: `path` is no folder that can be listed.
    """
    tree = Tree(root=os.path.abspath(path))
    pending = [""]
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(os.path.join(tree.root, folder)) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as problem:
            if not folder:
                raise WorkerError(f"cannot list the folder {shown(tree.root)}: {problem.strerror}") from problem
            tree.unreadable[folder] = problem.strerror or str(problem)
            continue
        names = {entry.name for entry in entries}
        found = [sub for entry in entries if (sub := _take(tree, folder, entry, names))]
        pending.extend(reversed(found))
        on_folder(len(tree.files))
    return tree


def _take(tree: Tree, folder: str, entry: os.DirEntry[str], siblings: set[str]) -> str | None:
    """Note one entry; returns it when it is a folder to enter."""
    relative = f"{folder}/{entry.name}" if folder else entry.name
    try:
        if entry.is_symlink():
            tree.left_out["symbolic links"] += 1
        elif entry.is_dir(follow_symlinks=False):
            reason = _reason_to_skip(entry, siblings)
            if reason is None:
                return relative
            tree.skipped[relative] = reason
        elif entry.is_file(follow_symlinks=False):
            status = entry.stat(follow_symlinks=False)
            tree.files.append(
                SourceFile(path=entry.path, relative=relative, size_bytes=status.st_size, modified_at=status.st_mtime)
            )
        else:
            tree.left_out["special files"] += 1
    except OSError as problem:
        tree.unreadable[relative] = problem.strerror or str(problem)
    return None


def _reason_to_skip(entry: os.DirEntry[str], siblings: set[str]) -> str | None:
    if entry.name in SKIPPED:
        return SKIPPED[entry.name]
    if SKIPPED_BESIDE.get(entry.name, set()) & siblings:
        return "generated"
    if entry.name.endswith((".egg-info", ".dist-info")):
        return "generated"
    if os.path.lexists(os.path.join(entry.path, "pyvenv.cfg")):
        return "virtual environment"
    if os.path.lexists(os.path.join(entry.path, "CACHEDIR.TAG")):
        return "cache"
    return None


def read_regular(path: str, limit_bytes: int) -> bytes:
    """Read a file that is still the regular file the walk saw: the tree may change under it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "no longer a regular file")
        return stream.read(limit_bytes)


def decode(content: bytes) -> str | None:
    """Text whatever its bytes; None for binary data."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", "replace")
    if b"\0" in content[:HEAD_BYTES]:
        return None
    return content.decode("utf-8-sig", "replace")


def is_generated(file: SourceFile, text: str) -> bool:
    if GENERATED_NAME.search(file.name):
        return True
    if GENERATED_MARK.search(text[:1000]):
        return True
    is_code = file.name.endswith((".js", ".css", ".mjs", ".cjs"))
    return is_code and len(text) > 2000 and len(text) / (text.count("\n") + 1) > MINIFIED_LINE_BYTES


def area(relative: str) -> str:
    """The part of the tree a file belongs to: at most two folders deep."""
    return "/".join(relative.split("/")[:-1][:2]) or "."


def shown(text: str, limit: int = 200) -> str:
    """One printable line: no bytes that are not UTF-8, no control or direction characters."""
    cleaned = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    printable = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cleaned)
    return printable if len(printable) <= limit else printable[: limit - 1] + "…"

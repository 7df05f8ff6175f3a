"""Which files a patch in git's form changes, and where in its text each of them begins.

Only what git itself writes is read; the content of the files in it may look like anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from agentctl.lean import NamedTuple

_FILE = b"diff --git "
_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_STATUSES = ((b"new file mode ", "added"), (b"deleted file mode ", "deleted"))
_BINARY = (b"GIT binary patch", b"Binary files ")
#: How git quotes a byte in a name (quote.c); any other is three octal digits.
_ESCAPED = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_ESCAPES = {
    b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r", b'"': b'"', b"\\": b"\\",
}  # fmt: skip


class PatchedFile(NamedTuple):
    """A file in a patch."""

    path: bytes
    #: added, modified or deleted.
    status: str
    #: Lines; None of a file that is not text.
    added: int | None
    removed: int | None
    #: The bytes of the patch that are about it.
    start: int
    end: int


def files_in(lines: Iterable[bytes]) -> Iterator[PatchedFile]:
    r"""Yield the files of a patch, given as lines with their newlines; a long line may come in several pieces.

    >>> patch = b"diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-a\n+b\n+diff --git\n"
    >>> [one[:4] for one in files_in(patch.splitlines(keepends=True))]
    [(b'x', 'modified', 2, 1)]
    """
    found: PatchedFile | None = None
    at, olds, news, is_begin = 0, 0, 0, True
    for line in lines:
        if not is_begin:
            pass
        elif olds > 0 or news > 0:
            kind = line[:1]
            olds -= kind in (b" ", b"-")
            news -= kind in (b" ", b"+")
            found = found and _counted(found, kind)
        elif line.startswith(_FILE):
            if found is not None:
                yield found._replace(end=at)
            found = PatchedFile(_path_in(line), "modified", 0, 0, at, at)
        elif (hunk := _HUNK.match(line)) is not None:
            olds, news = (1 if size is None else int(size) for size in hunk.groups())
        elif found is not None:
            found = _described(found, line)
        at += len(line)
        is_begin = line.endswith(b"\n")
    if found is not None:
        yield found._replace(end=at)


def _counted(file: PatchedFile, kind: bytes) -> PatchedFile:
    if kind == b"+":
        return file._replace(added=(file.added or 0) + 1)
    return file._replace(removed=(file.removed or 0) + 1) if kind == b"-" else file


def _described(file: PatchedFile, line: bytes) -> PatchedFile:
    """Return what a line of its head says of a file."""
    if line.startswith(_BINARY):
        return file._replace(added=None, removed=None)
    return next((file._replace(status=status) for mark, status in _STATUSES if line.startswith(mark)), file)


def _path_in(line: bytes) -> bytes:
    r"""Return the path in a file's first line, where it stands twice: the second half of that line says it too.

    >>> _path_in(rb'diff --git "a/\303\251\t b/x" "b/\303\251\t b/x"').decode()
    'é\t b/x'
    """
    names = line.removesuffix(b"\n")[len(_FILE) :]
    name = names[: len(names) // 2]
    if name.startswith(b'"'):
        name = _ESCAPED.sub(_unescaped, name[1:-1])
    return name[len(b"a/") :]


def _unescaped(found: re.Match[bytes]) -> bytes:
    code = found[1]
    return bytes([int(code, 8) & 0xFF]) if len(code) == 3 else _ESCAPES.get(code, code)

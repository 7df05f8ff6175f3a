"""Bytes as text: names, arguments and files are UTF-8 in every locale, and any other byte is kept as it is.

What is written down must mean the same bytes to whoever reads it, in another locale too. Python decodes arguments,
names and folders as the locale says, which in ISO-8859-1 or EUC-JP are other characters, and so the name of another
file. So each program of ours that others may start begins anew in Python's UTF-8 mode, if it is not in UTF-8 already.
That mode is an option on its own command line: nothing that it starts inherits it.
"""

from __future__ import annotations

import codecs
import os
import sys

from agentctl.errors import AgentctlError
from agentctl.lean import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO

#: Python's own options that have the same effect, for programs that nobody but us starts.
OPTIONS = ("-X", "utf8")
_HINT = "start it with python -X utf8, or with PYTHONUTF8=1 in its environment"
#: The encoding of the locale in which a command was typed, if that was on another host.
TYPED_IN = "AGENTCTL_TYPED_IN"
#: The handler of what a stream cannot print, in a locale that is not in UTF-8.
_HANDLER = "agentctl.as_typed"


def require_utf8() -> None:
    """Refuse to go on where names are anything but UTF-8.

    Raises:
        AgentctlError: This Python decodes them as the locale says.
    """
    if not _is_utf8():
        here = sys.getfilesystemencoding()
        raise AgentctlError(f"this Python reads names of files as {here}, and agentctl's are UTF-8", hint=_HINT)


def ensure_utf8() -> None:
    """Begin this program anew if names are anything but UTF-8; call it before anything is read or started.

    Raises:
        AgentctlError: It cannot be begun anew.
    """
    if _is_utf8():
        return
    if not sys.executable or sys.flags.utf8_mode:
        require_utf8()
    try:
        given = _arguments()
        program = os.fsencode(sys.executable)
    except UnicodeEncodeError:
        given, program = [], b""
        require_utf8()
    os.execv(program, [program, *map(os.fsencode, OPTIONS), *given])


def _is_utf8() -> bool:
    return sys.getfilesystemencoding() == "utf-8"


def _arguments() -> list[bytes]:
    """Return the arguments after the interpreter, as they were typed.

    Only the kernel's copy is exact: the C library decodes some bytes to characters that the codec of the same name does
    not encode.
    """
    count = len(sys.orig_argv)
    try:
        with open("/proc/self/cmdline", "rb") as file:
            typed = file.read().split(b"\0")[:-1]
    except OSError:
        typed = []
    return typed[1:] if len(typed) == count else [os.fsencode(argument) for argument in sys.orig_argv[1:]]


def as_utf8(typed: str) -> str:
    """Return a text that was typed as its reader wants it: if it is not UTF-8, as the locale says."""
    theirs = None if typed.isascii() or not any("\udc80" <= one <= "\udcff" for one in typed) else _of_locale()
    if theirs is None:
        return typed
    try:
        return typed.encode("utf-8", "surrogateescape").decode(theirs)
    except UnicodeError:
        return typed


def typed_in() -> str:
    """Return the encoding in which whoever calls types, and has names of files shown."""
    return _of_locale() or "utf-8"


def as_typed(text: str) -> str:
    """Return what was typed, letter by letter, as the bytes that this was: an argument or a name as others are."""
    theirs = _of_locale()
    try:
        return text if theirs is None else text.encode(theirs).decode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text


def how_typed(name: str) -> str | None:
    """Return the characters by which a person types a name of a file or folder; None if there are none."""
    try:
        return name.encode("utf-8", "surrogateescape").decode(typed_in())
    except UnicodeError:
        return None


def prepare_stream(stream: TextIO, *, is_terminal: bool) -> None:
    """Let no character stop a line from being printed.

    A terminal gets the characters of its locale, everything else UTF-8, unless it was opened in another encoding. In a
    locale that is not in UTF-8, a byte that is not UTF-8 is printed as it was typed, unless a terminal would not show
    it.
    """
    theirs = _of_locale()
    if theirs is None:
        stream.reconfigure(errors="backslashreplace")  # type: ignore[attr-defined]
        return
    codecs.register_error(_HANDLER, bytes_or_escape)
    encoding = theirs if is_terminal else stream.encoding
    stream.reconfigure(encoding=encoding, errors=_HANDLER)  # type: ignore[attr-defined]


def _of_locale() -> str | None:
    """Return the encoding of a locale that is not in UTF-8; None if it is, or if nothing but ASCII is known of it."""
    named = os.environ.get(TYPED_IN)
    if named is None:
        if not sys.flags.utf8_mode or os.environ.get("PYTHONUTF8") or os.environ.get("PYTHONIOENCODING"):
            return None
        from _locale import getencoding

        named = getencoding()
    try:
        b"".decode(named)
    except LookupError:
        return None
    name = codecs.lookup(named).name
    return None if name in {"ascii", "utf-8"} else name


def bytes_or_escape(error: UnicodeError) -> tuple[str | bytes, int]:
    r"""Return bytes as they were typed, and anything else as an escape.

    >>> codecs.register_error("as_typed", bytes_or_escape)
    >>> "caf\udce9 \udc9b \u20ac".encode("latin-1", "as_typed")
    b'caf\xe9 \\udc9b \\u20ac'
    >>> "\udcc6\udcfc, \udcc6".encode("euc_jp", "as_typed")
    b'\xc6\xfc, \\udcc6'
    """
    from agentctl.domain.text.plaintext import plain

    assert isinstance(error, UnicodeEncodeError)
    end = error.start
    while end < len(error.object) and "\udc80" <= error.object[end] <= "\udcff":
        end += 1
    typed = error.object[error.start : end].encode("ascii", "surrogateescape")
    encoding = (_of_locale() or error.encoding) if error.encoding == "utf-8" else error.encoding
    try:
        is_shown = bool(typed) and plain(shown := typed.decode(encoding)) == shown
    except UnicodeDecodeError:
        is_shown = False
    return (typed, end) if is_shown else codecs.backslashreplace_errors(error)

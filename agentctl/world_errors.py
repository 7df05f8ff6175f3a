"""Which errors are errors of the world and no bug of ours, and the next step after each.

A disk that is full or fails, a file system that is gone, a limit that is reached: such an error is told with what was
tried, where, and what helps. Any other `OSError` that nobody expected is a bug. While agentctl is upgraded, files
of its own are missing for a moment: the error of a command that looks for them then is one of the world, too.
"""

from __future__ import annotations

import errno
import os

from agentctl.errors import Argument, WithArguments
from agentctl.lean import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentctl.errors import Hint

#: The disk has no room; what is written waits for some.
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_ELSEWHERE = WithArguments("choose another ", Argument("root"))
_CLOSED = ("check its owner and its mode", WithArguments("or choose another ", Argument("root")))
_FAILS = "the disk does not answer as it should: look at what the system says of it (dmesg), then try again"
_AWAY = "its file system is gone or does not answer (NFS, FUSE): see that it is mounted, then try again"
_LOCKED = "it lies in an encrypted folder whose key is missing: unlock that, then try again"
_IN_USE = "another program uses it: try again when that has ended"

#: The next steps, by the name of the error, since not every system has each.
_NEXT_STEPS: dict[str, Hint] = {
    "ENOSPC": "make room on the disk; nothing that was reported before is lost",
    "EDQUOT": "make room within the disk quota; nothing that was reported before is lost",
    "EFBIG": "raise the limit of a file's size: ulimit -f",
    "EROFS": ("the folder cannot be written to", _ELSEWHERE),
    "EMFILE": "raise the limit of open files: ulimit -n",
    "ENFILE": "the system has no open file left; end some programs",
    "ENOMEM": "the system has no memory left; end some programs",
    "ENOBUFS": "the system has no memory left; end some programs",
    "EAGAIN": "the system starts no more processes; see ulimit -u",
    "EINTR": "it was interrupted: try again",
    "ENAMETOOLONG": "use a shorter name",
    "ELOOP": "too many links follow one another there: look at it",
    "EMLINK": ("the folder has as many entries as its file system can have", _ELSEWHERE),
    "EOVERFLOW": ("its file system has values that this system cannot hold", _ELSEWHERE),
    "EXDEV": "something is mounted in its place: look at it",
    "ENOLCK": ("its file system gives no more locks", _ELSEWHERE),
    "EOPNOTSUPP": ("its file system cannot do this", _ELSEWHERE),
    **dict.fromkeys(("EACCES", "EPERM"), _CLOSED),
    **dict.fromkeys(("EBUSY", "ETXTBSY"), _IN_USE),
    **dict.fromkeys(("EIO", "EUCLEAN", "EBADMSG", "EREMOTEIO", "ENODEV", "ENXIO", "ENOMEDIUM", "EMEDIUMTYPE"), _FAILS),
    **dict.fromkeys(
        (
            "ESTALE", "ETIMEDOUT", "ENOTCONN", "ECONNABORTED", "ESHUTDOWN", "EHOSTDOWN", "EHOSTUNREACH", "ENETDOWN",
            "ENETUNREACH", "ECOMM", "ENOLINK",
        ),
        _AWAY,
    ),
    **dict.fromkeys(("ENOKEY", "EKEYEXPIRED", "EKEYREVOKED", "EKEYREJECTED"), _LOCKED),
}  # fmt: skip
_BY_NUMBER = {getattr(errno, name): step for name, step in _NEXT_STEPS.items() if hasattr(errno, name)}
_PACKAGE = os.path.dirname(os.path.abspath(__file__))
#: After an error for which `missing_part` has words.
INSTALLED_AGAIN = "an upgrade may be under way: try again in a moment; if that does not help, install it again"


def missing_part(error: BaseException) -> str | None:
    """Return what of agentctl's own files is missing or not whole, if that is the reason of an error."""
    if isinstance(error, ImportError):
        return f"agentctl is incomplete: {error}"
    if isinstance(error, SyntaxError | FileNotFoundError | NotADirectoryError) and _is_ours(error.filename):
        return f"agentctl is incomplete: {os.fsdecode(error.filename or '')} is {_state_of(error)}"
    return None


def _is_ours(path: Any) -> bool:
    return isinstance(path, str | bytes | os.PathLike) and os.fsdecode(path).startswith(f"{_PACKAGE}/")


def _state_of(error: SyntaxError | OSError) -> str:
    return "written in part" if isinstance(error, SyntaxError) else "missing"


def next_step(error: OSError) -> Hint | None:
    """Return what helps against an error of the world; None for any other error."""
    return _BY_NUMBER.get(error.errno or 0)


def error_in_words(error: OSError) -> str:
    """Return what has happened, and where if the error says that."""
    return f"{error.strerror or error}" + (f": {os.fsdecode(error.filename)}" if error.filename else "")


def is_of_world(error: OSError) -> bool:
    """Return whether an error is one of the world."""
    return error.errno in _BY_NUMBER

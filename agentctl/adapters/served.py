"""Whether a server of a root runs, and where: what it says in memory, beside the environments of the queue.

A server holds a lock as long as it lives. What it says is a file of its own: the file stays when the server is killed,
and the next one that listens at the same place goes on with its token. Only with the lock does the file say where.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from agentctl.adapters.files import json_in, to_json, write_whole
from agentctl.adapters.locks import hold_alive, is_alive_held
from agentctl.adapters.opening import OddFile, open_plain
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import Root
from agentctl.domain.notice.answer_links import SHORTEST_TOKEN
from agentctl.errors import Damaged
from agentctl.lean import Any, NamedTuple

#: More than any of ours.
_MOST_BYTES, _LONGEST_URL = 1 << 13, 300
_NAME_CHARACTERS = 32
#: In no address to which a path is appended.
_ODD = frozenset(" \"'<>?#@\\")


class RootServer(NamedTuple):
    """A server of a root."""

    #: Where a person reaches it, without a slash at the end.
    url: str
    #: Whoever has it may do everything there; links are signed with it.
    token: str
    #: It answers no question.
    is_read_only: bool = False
    #: Names this run of it; links to the page are made for it alone. No secret.
    start: str = ""


class KeptPlace(NamedTuple):
    """Where a server listened; the next one of its root does so too."""

    host: str
    port: int
    #: Somebody else was there since.
    is_spoiled: bool = False


# -- by the server -----------------------------------------------------------------------------------------------------


def hold_server(folder: FilePath, root: Root) -> int | None:
    """Become the server of a root, as long as the returned descriptor is open; None where another one is.

    From then on the file has no address until `announce`: that of an earlier server is not taken for this one's.

    Args:
        folder: `store_folder()`.

    Raises:
        StorageError, OSError: The folder cannot be written.
    """
    lock = hold_alive(server_file(folder, root, "lock"))
    if lock is None:
        return None
    try:
        said = _said(folder, root)
        if _token_in(said) is not None:
            kept = {key: said[key] for key in ("token", "host", "port") if key in said}
            write_whole(server_file(folder, root, "json"), to_json(kept), durable=False)
    except BaseException:
        os.close(lock)
        raise
    return lock


def kept_token(folder: FilePath, root: Root) -> str | None:
    """Return the token of the root's server, or of the last one; None where there is none that can be used."""
    return _token_in(_said(folder, root))


def kept_place(folder: FilePath, root: Root) -> KeptPlace | None:
    """Return where the root's last server listened; None if there was none."""
    said = _said(folder, root)
    host, port = said.get("host"), said.get("port")
    is_one = isinstance(host, str) and isinstance(port, int) and 0 < port < 1 << 16
    return KeptPlace(str(host), int(port), said.get("spoiled") is True) if is_one and port is not None else None


def spoil_place(folder: FilePath, root: Root) -> None:
    """Have the next server of a root make a new token, and go elsewhere: somebody else is where the last one was.

    There are open pages of the last one, which have sent something; and what that program has put into a browser
    there (a service worker, a page that is kept for years) stays in it.

    Raises:
        StorageError, OSError: The folder cannot be written.
    """
    kept = {key: value for key, value in _said(folder, root).items() if key in {"host", "port"}}
    write_whole(server_file(folder, root, "json"), to_json({**kept, "spoiled": True}), durable=False)


def announce(folder: FilePath, root: Root, served: RootServer, at: KeptPlace | None = None) -> None:
    """Say where the server of a root is; only for the process that holds it, and once it listens.

    Args:
        at: Where it listens, for the next one.

    Raises:
        StorageError, OSError: The folder cannot be written.
        ValueError: That is not an address, or the token could be guessed.
    """
    value = {"url": served.url, "token": served.token, "start": served.start, "readOnly": served.is_read_only,
             "host": at.host if at is not None else None, "port": at.port if at is not None else None,
             "pid": os.getpid()}  # fmt: skip
    if _url_in(value) is None or _token_in(value) is None:
        raise ValueError("a server has an address, and a token that cannot be guessed")
    write_whole(server_file(folder, root, "json"), to_json(value), durable=False)


# -- by others ---------------------------------------------------------------------------------------------------------


def live_server(folder: FilePath, root: Root) -> RootServer | None:
    """Return the server of a root that lives now; None where there is none.

    Raises:
        OSError: That cannot be found out.
    """
    if not is_alive_held(server_file(folder, root, "lock")):
        return None
    said = _said(folder, root)
    url, token, start = _url_in(said), _token_in(said), said.get("start")
    if url is None or token is None:
        return None
    return RootServer(url, token, said.get("readOnly") is True, start if isinstance(start, str) else "")


def server_file(folder: FilePath, root: Root, ending: str) -> FilePath:
    """Return the path of a file of a root's server: `json`, `lock`, or for scripts `token`."""
    from hashlib import sha256

    name = sha256(os.fsencode(os.path.realpath(root.path))).hexdigest()[:_NAME_CHARACTERS]
    return folder / f"serve-{name}.{ending}"


def _said(folder: FilePath, root: Root) -> dict[str, Any]:
    """Return what is in the file; {} where there is none that only this user can read and write."""
    path = server_file(folder, root, "json")
    try:
        fd = open_plain(path)
    except (FileNotFoundError, OddFile):
        return {}
    try:
        found, data = os.fstat(fd), os.read(fd, _MOST_BYTES)
    finally:
        os.close(fd)
    is_private = found.st_uid == os.getuid() and not found.st_mode & 0o077
    if not is_private or found.st_size > len(data):
        return {}
    try:
        return json_in(data, path)
    except Damaged:
        return {}


def _token_in(said: Mapping[str, Any]) -> str | None:
    token = said.get("token")
    is_one = isinstance(token, str) and len(token) >= SHORTEST_TOKEN and token.isascii() and token.isprintable()
    return str(token) if is_one else None


def _url_in(said: Mapping[str, Any]) -> str | None:
    url = said.get("url")
    if not isinstance(url, str) or not url.startswith(("http://", "https://")) or len(url) > _LONGEST_URL:
        return None
    return url if url.isascii() and url.isprintable() and not set(url) & _ODD and not url.endswith("/") else None

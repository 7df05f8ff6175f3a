"""The records of keys: a file for each, which says for which request a key is, and where what it did can be found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentctl.adapters.files import read_json, to_json, write_whole
from agentctl.adapters.paths import FilePath
from agentctl.domain.same_request import KIND


def digest_of_key(key: str) -> str:
    """Return the name of a key's file."""
    import hashlib  # 6 ms, with OpenSSL: only for keys.

    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def record_of_key(folder: FilePath, key: str) -> Mapping[str, Any]:
    """Return what is known of a key; empty if it is new."""
    return read_json(folder / digest_of_key(key)) or {}


def keep_record(folder: FilePath, key: str, record: Mapping[str, Any]) -> None:
    """Write down what is known of a key, durably; the caller has the lock of the folder."""
    write_whole(folder / digest_of_key(key), to_json(record))


def differing_words(differing: Sequence[str]) -> str:
    """Return what two requests differ in.

    >>> differing_words(["argv", "cwd", "env"])
    'argv, cwd and env'
    """
    if list(differing) == [KIND]:
        return "what it asks for"
    *first, last = differing
    return f"{', '.join(first)} and {last}" if first else last

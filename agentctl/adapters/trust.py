"""The definitions that a person has looked at and trusts: path and content of each, in a private file of that person.

The path counts too: the same content means something else in another repository (`argv: [make]` runs another Makefile).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import make_folder, read_json, to_json, write_whole
from agentctl.adapters.locks import locked
from agentctl.adapters.personal import config_folder, is_ones_own
from agentctl.errors import Damaged, Refused

#: real path -> {sha256, at}
Trusted = dict[str, dict[str, str]]


def trust_file(environ: Mapping[str, str]) -> Path:
    """Return where a person's trust is kept."""
    return Path(config_folder(environ)) / "trust.json"


def read_trusted(file: Path) -> Trusted:
    """Return what is trusted.

    Raises:
        Refused: Somebody else can write the file.
        Damaged: It cannot be read.
    """
    try:
        info = os.stat(file)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    if not is_ones_own(info):
        raise Refused(f"{file} can be written by somebody else, so nothing in it counts", hint=f"rm {file}")
    try:
        files = (read_json(os.path.realpath(file)) or {}).get("files")
    except Damaged as error:
        raise Damaged(error.message, hint=f"rm {file}, then trust again what you want to use") from error
    rows = files.items() if isinstance(files, dict) else ()
    return {path: row for path, row in rows if isinstance(row, dict) and isinstance(row.get("sha256"), str)}


def is_trusted(trusted: Trusted, path: str, digest: str) -> bool:
    """Return whether the file of this path is trusted with this content."""
    return trusted.get(os.path.realpath(path), {}).get("sha256") == digest


def trust(file: Path, digests: Mapping[str, str]) -> None:
    """Trust files (path -> digest of the content that was looked at)."""

    def change(trusted: Trusted) -> None:
        for path, digest in digests.items():
            trusted[os.path.realpath(path)] = {"sha256": digest, "at": now_iso()}

    _change(file, change)


def revoke(file: Path, paths: list[str]) -> list[str]:
    """Stop trusting these files; return those that were trusted."""
    gone: list[str] = []

    def change(trusted: Trusted) -> None:
        gone.extend(path for path in paths if trusted.pop(os.path.realpath(path), None))

    _change(file, change)
    return gone


def _change(file: Path, change: Callable[[Trusted], Any]) -> None:
    """Replace the file as a whole, under its lock: two changes at once happen one after the other."""
    make_folder(os.path.realpath(file.parent))
    with locked(f"{file.parent}/"):
        before = read_trusted(file)
        trusted = dict(before)
        change(trusted)
        if trusted != before:
            write_whole(file, to_json({"files": trusted}))

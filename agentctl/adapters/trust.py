"""The definitions that a person has looked at and trusts: path and content of each, in a private file of that person.

The path counts too: the same content means something else in another repository (`argv: [make]` runs another Makefile).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agentctl.adapters.clock import now_iso
from agentctl.adapters.personal import config_folder
from agentctl.adapters.privaterows import Rows, change_rows, read_rows
from agentctl.errors import AtTerminal

#: real path -> {sha256, at}
Trusted = Rows
_KEY = "files"


def trust_file(environ: Mapping[str, str]) -> Path:
    """Return where a person's trust is kept."""
    return Path(config_folder(environ)) / "trust.json"


def read_trusted(file: Path) -> Trusted:
    """Return what is trusted.

    Raises:
        Refused: Somebody else can write the file.
        Damaged: It cannot be read.
    """
    return read_rows(file, _KEY, "sha256", AtTerminal("trust again what you want to use"))


def is_trusted(trusted: Trusted, path: str, digest: str) -> bool:
    """Return whether the file of this path is trusted with this content."""
    return trusted.get(os.path.realpath(path), {}).get("sha256") == digest


def trust_digests(file: Path, digests: Mapping[str, str]) -> None:
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
    change_rows(file, _KEY, lambda: read_trusted(file), change)

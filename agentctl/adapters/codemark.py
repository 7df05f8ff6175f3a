"""A mark of agentctl's own code: the same version number does not prove that two machines run the same program."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import agentctl


def code_mark() -> str:
    """Return a short hash of all modules of the package that is imported here."""
    package, digest = Path(os.path.realpath(agentctl.__file__)).parent, hashlib.blake2b(digest_size=8)
    for path in sorted(package.rglob("*.py")):
        data = path.read_bytes()
        digest.update(f"{path.relative_to(package)}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()

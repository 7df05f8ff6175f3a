"""Answers from the head, sealed: a worker that can write into the folder of its launch cannot make one.

The key is random, for one launch. The node gets it with the environment, in a file that it removes before the worker
runs; at the head it lies in memory, beside the environments of the queue, where no sandbox shows it.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping

from agentctl.adapters.files import file_text, write_whole
from agentctl.adapters.paths import FilePath
from agentctl.errors import AgentctlError, Refused
from agentctl.lean import Any
from agentctl.supervision.worker.environment import store_folder

try:
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

_SEAL, _KEY_BYTES = "seal", 32


def new_key(launch_id: str) -> bytes:
    """Make the key of a launch, keep it in memory, and return it."""
    key = os.urandom(_KEY_BYTES)
    write_whole(_path_of(launch_id), key.hex().encode(), durable=False)
    return key


def known_key(launch_id: str) -> bytes | None:
    """Return the key of a launch; None if it is gone, as after a restart of this machine.

    Raises:
        StorageError: It cannot be read: nothing counts without its seal as long as there may be a key.
    """
    with contextlib.suppress(Refused, ValueError):
        text = file_text(_path_of(launch_id), "ascii")
        return bytes.fromhex(text) if text else None
    return None


def forget_key(launch_id: str) -> None:
    """Drop the key of a launch that is over."""
    with contextlib.suppress(AgentctlError, OSError):
        os.unlink(_path_of(launch_id))


def sealed(key: bytes, what: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a value with its seal; `what` says what it is about, so that it cannot be used for anything else."""
    return {**value, _SEAL: _seal_of(key, what, value)}


def opened(key: bytes, what: str, value: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a sealed value without its seal; None if the seal is not right."""
    plain = {name: item for name, item in value.items() if name != _SEAL}
    return plain if value.get(_SEAL) == _seal_of(key, what, plain) else None


def _seal_of(key: bytes, what: str, value: Mapping[str, Any]) -> str:
    text = json.dumps([what, value], sort_keys=True)
    return str(blake2b(text.encode(), key=key, digest_size=32).hexdigest())


def _path_of(launch_id: str) -> FilePath:
    return store_folder() / f"launch-{launch_id}.key"

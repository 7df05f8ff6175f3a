"""The `config.yaml` of a root: where workers of all its tasks run, unless something nearer says otherwise.

It may have come with somebody else's repository, so it counts only as it was trusted: it sends work to an engine, with
options that can name files.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from agentctl.adapters.document import Document
from agentctl.adapters.known import known_files
from agentctl.adapters.opening import read_bytes
from agentctl.adapters.taskdir import Root
from agentctl.adapters.trust import is_trusted, read_trusted, trust_file
from agentctl.domain.placement import Resources
from agentctl.errors import AgentctlError, Next, Refused
from agentctl.lean import NamedTuple

NAME = "config.yaml"
#: Longer than any honest one, and short enough for the YAML of a stranger.
_LONGEST, _LONGEST_SHOWN = 16 << 10, 200


class RootSettings(NamedTuple):
    """The file as it is now."""

    path: str
    data: bytes

    @property
    def digest(self) -> str:
        """The hash of its content."""
        return hashlib.sha256(self.data).hexdigest()

    def is_trusted(self) -> bool:
        """Return whether a person trusts the file as it is."""
        return is_trusted(read_trusted(trust_file(os.environ)), self.path, self.digest)

    def says(self) -> Resources:
        """Return the runner and the resources that it names.

        Raises:
            UsageError: It is not well-formed; the message names file, line and key.
        """
        from agentctl.adapters.taskyaml.running import read_root_settings

        known, path = known_files(os.environ), Path(self.path)
        value = known.said("root", path, self.data)
        if value is not None:
            return read_root_settings(Document(path, value, {}))
        from agentctl.adapters.yamldoc import parse_yaml  # A file that is in the cache needs no YAML.

        document = parse_yaml(path, self.data)
        found = read_root_settings(document)
        known.keep("root", path, self.data, document.value)
        known.save()
        return found

    def powers(self) -> list[str]:
        """Return in words what it decides."""
        try:
            found = self.says()
        except AgentctlError as error:
            return [f"it cannot be read: {error.message}"]
        return [_power(name, value)[:_LONGEST_SHOWN] for name, value in found.items()] or ["it decides nothing"]


def _power(name: str, value: object) -> str:
    match name:
        case "runner":
            return f"workers run by {value}"
        case "args" if isinstance(value, list):
            return f"options of the engine: {shlex.join(map(str, value))}"
        case _:
            return f"{name.removesuffix('_s')}: {value}"


def settings_of(root: Root) -> RootSettings | None:
    """Return the file of a root; None where there is none.

    Raises:
        OddFile: We did not make it.
    """
    try:
        return RootSettings(os.path.realpath(root.settings), read_bytes(root.settings, _LONGEST))
    except (FileNotFoundError, NotADirectoryError):
        return None


def usable_settings(root: Root) -> Mapping[str, object]:
    """Return what the file of a root says; nothing where there is none.

    Raises:
        Refused: It is not trusted as it is.
        UsageError: It is not well-formed.
    """
    found = settings_of(root)
    if found is None:
        return {}
    if not found.is_trusted():
        raise Refused(
            f"{root.settings} says where workers run ({'; '.join(found.powers())}), and is not trusted",
            hint=Next("trust", shlex.quote(str(root.settings))),
        )
    return found.says()

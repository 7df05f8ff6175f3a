"""What `install` shows: the files that it has changed, or the entry for the boot."""

from __future__ import annotations

from typing_extensions import TypedDict


class ChangedFile(TypedDict):
    """A file that was written or removed."""

    path: str
    removed: bool


class ShownBootEntry(TypedDict):
    """What has a root go on at each boot."""

    #: `systemd crontab`.
    kind: str
    #: The file of the unit; `crontab` for a line there.
    path: str
    text: str

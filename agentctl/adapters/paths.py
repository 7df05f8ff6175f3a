"""Paths for the shim and the hot commands: text with the few methods of `pathlib.Path` that they use.

`pathlib` costs every shim 9 ms and 0.7 MB (it imports urllib and ipaddress), and each join takes ten times as long; see
docs/decisions. Where more methods are needed, use `pathlib.Path(path)`.
"""

from __future__ import annotations

import errno
import os
import stat

from agentctl.adapters.files import storage_errors
from agentctl.adapters.opening import MOST_BYTES, read_bytes

#: Nothing is there. ValueError: no file has such a name.
_ABSENT = (FileNotFoundError, NotADirectoryError, ValueError)


class FilePath(str):
    """An absolute path."""

    __slots__ = ()

    def __truediv__(self, name: str) -> FilePath:
        return FilePath(f"{self}/{name}")

    @property
    def name(self) -> str:
        """Its last part."""
        return os.path.basename(self)

    @property
    def parent(self) -> FilePath:
        """The folder that it lies in."""
        return FilePath(os.path.dirname(self))

    def exists(self) -> bool:
        """Return whether it names something that can be reached.

        Raises:
            StorageError: That cannot be known.
        """
        try:
            os.stat(self)
        except _ABSENT:
            return False
        except OSError as error:
            self._check_leads_nowhere(error)
            return False
        return True

    def is_dir(self) -> bool:
        """Return whether it names a folder.

        Raises:
            StorageError: That cannot be known.
        """
        try:
            return stat.S_ISDIR(os.stat(self).st_mode)
        except _ABSENT:
            return False
        except OSError as error:
            self._check_leads_nowhere(error)
            return False

    def _check_leads_nowhere(self, error: OSError) -> None:
        """Raise what a look has met, unless it is a link there: a worker can make one, and none of our files is one."""
        if error.errno not in (errno.ELOOP, errno.ENAMETOOLONG) and not os.path.islink(self):
            with storage_errors(self, "look at"):
                raise error

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Make a private folder of this name."""
        if parents:
            os.makedirs(self, 0o700, exist_ok=exist_ok)
            return
        try:
            os.mkdir(self, 0o700)
        except FileExistsError:
            if not exist_ok or not self.is_dir():
                raise

    def read_bytes(self, most: int = MOST_BYTES) -> bytes:
        """Return the content of the plain file, as `opening.read_bytes` does."""
        return read_bytes(self, most)

    def read_text(self, encoding: str = "utf-8") -> str:
        """Return the content of the plain file as text."""
        return self.read_bytes().decode(encoding)

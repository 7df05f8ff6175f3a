"""Keys of what is done on the screen, so that it is done once: one whose request met an error is kept for the next."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator

from agentctl.errors import Conflict


class KeptKeys:
    """The keys of requests that met an error: made again by the same person, such a request has its key again.

    Two that are under way at the same time are two, whatever they ask for.

    >>> keys = KeptKeys()
    >>> with contextlib.suppress(OSError), keys.once("send", "a", "hello") as first:
    ...     raise OSError
    >>> with keys.once("send", "a", "hello") as again, keys.once("send", "a", "hello") as meanwhile:
    ...     pass
    >>> with keys.once("send", "a", "hello") as later:
    ...     pass
    >>> first == again, len({again, meanwhile, later})
    (True, 3)
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[str, ...], str] = {}

    @contextlib.contextmanager
    def once(self, *what: str) -> Iterator[str]:
        """Give the key of a request, which is kept if the block meets an error; a conflict says what the key did."""
        key = self._kept.pop(what, None) or f"screen-{secrets.token_hex(16)}"
        try:
            yield key
        except Conflict:
            raise
        except BaseException:
            self.keep(key, *what)
            raise

    def keep(self, key: str, *what: str) -> None:
        """Keep the key of a request of which not all was carried out."""
        self._kept[what] = key

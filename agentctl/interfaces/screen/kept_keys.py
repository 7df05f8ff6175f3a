"""Keys of what is done on the screen, so that it is done once: one whose request met an error is kept for the next."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

from agentctl.errors import Conflict


class KeptKeys:
    """The keys of requests that met an error: made again by the same person, such a request has its key again.

    Two that are under way at the same time are two, whatever they ask for, unless they join.

    >>> keys = KeptKeys()
    >>> with contextlib.suppress(OSError), keys.once("send", "a", "hello") as first:
    ...     raise OSError
    >>> with keys.once("send", "a", "hello") as again, keys.once("send", "a", "hello") as meanwhile:
    ...     pass
    >>> with keys.once("send", "a", "hello") as later:
    ...     pass
    >>> first == again, len({again, meanwhile, later})
    (True, 3)
    >>> with keys.once("retry", "a", joins=True) as one, keys.once("retry", "a", joins=True) as other:
    ...     pass
    >>> with keys.once("retry", "a", joins=True) as later:
    ...     pass
    >>> one == other, one == later
    (True, False)
    >>> with keys.once("retry", "a", joins=True) as one:
    ...     with contextlib.suppress(OSError), keys.once("retry", "a", joins=True):
    ...         raise OSError
    >>> with contextlib.suppress(OSError), keys.once("retry", "a", joins=True) as one:
    ...     with keys.once("retry", "a", joins=True):
    ...         pass
    ...     raise OSError
    >>> with keys.once("retry", "a", joins=True) as later:  # What one of them met an error for, the other has done.
    ...     one == later
    False
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[str, ...], str] = {}
        #: The requests that others join: what is asked for -> its key, and how many have it.
        self._under_way: dict[tuple[str, ...], tuple[str, int]] = {}
        #: Those of these keys that one of them has carried out: whoever meets an error later keeps none of them.
        self._carried_out: set[str] = set()
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def once(self, *what: str, joins: bool = False) -> Iterator[str]:
        """Give the key of a request, which is kept if the block meets an error; a conflict says what the key did.

        Args:
            joins: Give the key of the same request, as long as that is under way: who asks twice means one.
        """
        key = self._begun(what, joins=joins)
        try:
            yield key
        except Conflict:
            raise
        except BaseException:
            self.keep(key, *what)
            raise
        else:
            self._done(key, what)
        finally:
            if joins:
                self._leave(what)

    def _begun(self, what: tuple[str, ...], *, joins: bool) -> str:
        with self._lock:
            key = self._kept.pop(what, None) or f"screen-{os.urandom(16).hex()}"
            if joins:
                key, many = self._under_way.get(what, (key, 0))
                self._under_way[what] = key, many + 1
            return key

    def _done(self, key: str, what: tuple[str, ...]) -> None:
        with self._lock:
            if self._kept.get(what) == key:
                del self._kept[what]
            if self._under_way.get(what, ("", 0))[0] == key:
                self._carried_out.add(key)

    def _leave(self, what: tuple[str, ...]) -> None:
        with self._lock:
            key, many = self._under_way.pop(what)
            if many > 1:
                self._under_way[what] = key, many - 1
            else:
                self._carried_out.discard(key)

    def keep(self, key: str, *what: str) -> None:
        """Keep the key of a request of which not all was carried out."""
        with self._lock:
            if key not in self._carried_out:
                self._kept[what] = key

"""The keys of a session's prompts: a prompt that a client sends again is given once, as far as it is known again.

The protocol names no prompt beyond its connection. Within one, a request that comes again has its id and its text; and
whoever is told an error makes the same prompt once more. A client that wants more names a key with its prompt, which
counts in any process.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator

from agentctl.lean import NamedTuple


class PromptKey(NamedTuple):
    """By what a prompt is known again."""

    key: str
    #: A client has named it: the prompt may have been given by another process.
    is_named: bool = False


class _Last(NamedTuple):
    request: object
    text: str
    key: str
    #: Whether its giving or its turn met an error: then its client does not know what was done.
    is_unclear: bool = True


class PromptKeys:
    """The keys of one session; only the last prompt is known again, since each is answered before the next one.

    >>> keys = PromptKeys("acp-1")
    >>> with contextlib.suppress(OSError), keys.once(1, "hello") as first:
    ...     raise OSError
    >>> with keys.once(2, "hello") as again:
    ...     pass
    >>> with keys.once(2, "hello") as sent_again:
    ...     pass
    >>> with keys.once(3, "hello") as later:
    ...     pass
    >>> first == again == sent_again != later
    True
    >>> keys.doubt()
    >>> with keys.once(4, "hello") as behind_an_error:
    ...     behind_an_error == later
    True
    >>> with keys.once(5, "hello", "k") as named:
    ...     named
    PromptKey(key='editor acp-1 k', is_named=True)
    """

    def __init__(self, session: str) -> None:
        self._session = session
        self._last: _Last | None = None

    @contextlib.contextmanager
    def once(self, request: object, text: str, named: str | None = None) -> Iterator[PromptKey]:
        """Give the key of a prompt, which the next one has too if it is the same one.

        Args:
            request: The id of the client's request.
            named: The key that the client has named; it counts within the session.
        """
        if named is not None:
            self.forget()
            yield PromptKey(f"editor {self._session} {named}", is_named=True)
            return
        given = _Last(request, text, self._key_of(request, text))
        self._last = given
        yield PromptKey(given.key)
        self._last = given._replace(is_unclear=False)

    def _key_of(self, request: object, text: str) -> str:
        last = self._last
        if last is not None and last.text == text and (last.is_unclear or last.request == request):
            return last.key
        return f"editor-{secrets.token_hex(16)}"

    def doubt(self) -> None:
        """Take the same text for the last prompt: it was given, but its client was told of an error."""
        if self._last is not None:
            self._last = self._last._replace(is_unclear=True)

    def forget(self) -> None:
        """Take the next prompt for another one: the client knows what became of the last one."""
        self._last = None

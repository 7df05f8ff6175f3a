"""The keys of a session's prompts: a prompt that a client sends again is given once, as far as it is known again.

The protocol names no prompt beyond its connection. Within one, a request that comes again has its id and its text; and
whoever is told an error makes the same prompt once more. A client that wants more names a key with its prompt, which
counts in any process.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator

from agentctl.domain.text.plaintext import plain
from agentctl.errors import Conflict, Refused
from agentctl.lean import NamedTuple


class PromptKey(NamedTuple):
    """By what a prompt is known again."""

    key: str
    #: It was made just now, so nothing was done under it. One that a client has named may be known to another process.
    is_new: bool = False


class _Last(NamedTuple):
    request: object
    text: str
    key: str
    #: It is not over, or it met an error: then its client does not know what was done.
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
    >>> first.key == again.key == sent_again.key != later.key
    True
    >>> first.is_new, again.is_new, sent_again.is_new, later.is_new
    (True, False, False, True)
    >>> with keys.once(4, "hello", "k") as named:
    ...     named
    PromptKey(key='editor acp-1 k', is_new=False)
    """

    def __init__(self, session: str) -> None:
        self._session = session
        self._last: _Last | None = None

    @contextlib.contextmanager
    def once(self, request: object, text: str, named: str | None = None) -> Iterator[PromptKey]:
        """Give the key of a prompt, for all of its turn; the next prompt has it too if it is the same one.

        Args:
            request: The id of the client's request.
            named: The key that the client has named; it counts within the session.

        Raises:
            Refused: The client has named it with another prompt before.
        """
        if named is not None:
            self.forget()  # The client tells its prompts apart by itself.
            try:
                yield PromptKey(f"editor {self._session} {named}")
            except Conflict as error:  # That tells of a key which the client does not know, and of options.
                raise Refused(
                    f"the key {plain(named)[:80]!r} has given another prompt already",
                    hint="choose another key for this one",
                ) from error
            return
        known = self._key_known(request, text)
        given = _Last(request, text, known or f"editor-{secrets.token_hex(16)}")
        self._last = given
        yield PromptKey(given.key, is_new=known is None)
        self._last = given._replace(is_unclear=False)

    def _key_known(self, request: object, text: str) -> str | None:
        last = self._last
        is_same = last is not None and last.text == text and (last.is_unclear or last.request == request)
        return last.key if last is not None and is_same else None

    def forget(self) -> None:
        """Take the next prompt for another one than the last, whatever its text is."""
        self._last = None

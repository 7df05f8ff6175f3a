"""A command that was given as a list of words, as the one line of a shell that says the same."""

from __future__ import annotations

from collections.abc import Sequence


def shell_line(words: Sequence[str]) -> str:
    """Return words quoted, each where a shell would take it for anything else; as `shell_line.js` does.

    >>> shell_line(["rm", "-rf", "a b"]), shell_line(["FOO=1", "make", "CC=cc"])
    ("rm -rf 'a b'", "'FOO=1' make CC=cc")
    """
    import shlex  # Few commands are lists.

    quoted = [shlex.quote(word) for word in words]
    if quoted and quoted[0] == words[0] and "=" in words[0]:  # Bare it would be an assignment.
        quoted[0] = f"'{words[0]}'"
    return " ".join(quoted)

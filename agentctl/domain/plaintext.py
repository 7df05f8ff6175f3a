"""Makes text safe to print: text from a worker or from a file may hold characters that control a terminal."""

from __future__ import annotations

import json

from agentctl.lean import Any


def _escapes() -> dict[int, str]:
    """Return the escapes of C0, DEL, C1, and of characters that turn the direction of text or end a line unseen."""
    small = [*range(0x20), *range(0x7F, 0xA0)]
    wide = [0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)]
    table = {code: f"\\x{code:02x}" for code in small} | {code: f"\\u{code:04x}" for code in wide}
    return table | {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r"}


ESCAPES = _escapes()


def whole(text: str) -> str:
    r"""Return text that can be encoded: each half of a surrogate pair, which a model has cut, becomes U+FFFD.

    >>> whole("cut \ud83d"), whole("none \N{GRINNING FACE}")
    ('cut \ufffd', 'none \U0001f600')
    """
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def beginning(text: str, longest: int) -> str:
    """Return the beginning of a text; where it was cut, followed by the length of the whole.

    >>> beginning("abc", 3), beginning("abcd", 3)
    ('abc', 'abc [cut: 4 characters]')
    """
    return text if len(text) <= longest else f"{text[:longest]} [cut: {len(text)} characters]"


def whole_json(value: Any) -> Any:
    """Return a JSON value with every text in it `whole`."""
    dumped = json.dumps(value, ensure_ascii=False)
    clean = whole(dumped)
    return value if clean == dumped else json.loads(clean)


def plain(text: object, keep: str = "") -> str:
    r"""Return text with its control characters escaped; `keep` lists those that may stay.

    >>> plain("a\x1b[31mb\n")
    'a\\x1b[31mb\\n'
    >>> plain("a\nb", keep="\n")
    'a\nb'
    """
    string = str(text)
    if not keep:
        return string if string.isascii() and string.isprintable() else string.translate(ESCAPES)
    kept = {ord(character) for character in keep}
    return string.translate({code: shown for code, shown in ESCAPES.items() if code not in kept})

"""Makes text safe to print: text from a worker or from a file may hold characters that control a terminal."""

from __future__ import annotations

import json

from agentctl.lean import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


def _escapes() -> dict[int, str]:
    """Return the escapes of C0, DEL, C1, and of characters that turn the direction of text or end a line unseen."""
    small = [*range(0x20), *range(0x7F, 0xA0)]
    wide = [0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)]
    table = {code: f"\\x{code:02x}" for code in small} | {code: f"\\u{code:04x}" for code in wide}
    return table | {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r"}


ESCAPES = _escapes()


#: What draws nothing, or a blank, without being of a category that says so: fillers, and what selects a form. The
#: modifiers of emoji are among them (1F3FB): they draw nothing of their own behind an emoji, and something elsewhere.
#: As ranges: each shim loads this, and 4,200 numbers would cost it a third of a megabyte.
_BLANK = (
    *(range(code, code + 1) for code in (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, 0xFFFC)),
    *(range(code, code + 1) for code in (0x13441, 0x13442, 0x1D159)),
    range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0x1F3FB, 0x1F400), range(0xE0000, 0xE1000),
)  # fmt: skip
#: Format characters, blanks other than the space, private and unassigned characters.
_UNSEEN = frozenset(("Cf", "Zs", "Zl", "Zp", "Co", "Cn"))


def whole(text: str) -> str:
    r"""Return text that can be encoded: each half of a surrogate pair, which a model has cut, becomes U+FFFD.

    >>> whole("cut \ud83d"), whole("none \N{GRINNING FACE}")
    ('cut \ufffd', 'none \U0001f600')
    """
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def beginning(text: str, longest: int, mark: str | None = None) -> str:
    """Return the first `longest` characters of a text; where it was cut, followed by a mark, or by its whole length.

    >>> beginning("abc", 3), beginning("abcd", 3), beginning("abcd", 3, "...")
    ('abc', 'abc [cut: 4 characters]', 'abc...')
    """
    if len(text) <= longest:
        return text
    return text[:longest] + (f" [cut: {len(text)} characters]" if mark is None else mark)


def shortened(text: str, longest: int, mark: str = "...") -> str:
    """Return a text in at most `longest` characters: where it was cut, it ends with the mark.

    >>> shortened("abcd", 4), shortened("abcde", 4), shortened("abcde", 4, "~")
    ('abcd', 'a...', 'abc~')
    """
    return text if len(text) <= longest else text[: max(0, longest - len(mark))] + mark


def shortened_inside(text: str, longest: int) -> str:
    """Return a text in at most `longest` characters: what is cut is in its middle, since names often differ at the end.

    >>> shortened_inside("build-the-package", 17), shortened_inside("build-the-package", 9)
    ('build-the-package', 'buil…kage')
    """
    if len(text) <= longest:
        return text
    kept = max(longest - 1, 0)
    return text[: kept - kept // 2] + "…" * (longest > 0) + text[len(text) - kept // 2 :]


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


#: How many marks a letter of any living script has at most; more of them draw over what is around them.
_MOST_MARKS = 3


def distinct(text: str) -> str:
    r"""Return a text in which also what nobody sees is escaped, so that no two texts look the same because of that.

    For what somebody allows by its looks: it spoils joined emoji, and scripts that need joiners. Of combining marks
    only a few are left, behind a letter.

    >>> distinct("./build\u200b.sh a\u00a0b"), distinct("u\u0308ber \u0308")
    ('./build\\u200b.sh a\\u00a0b', 'u\u0308ber \\u0308')
    """
    return text if text.isascii() else "".join(_distinct(text))


def _distinct(text: str) -> Iterator[str]:
    from unicodedata import category

    marks_left = 0
    for one in text:
        kind = category(one)
        is_mark = kind[0] == "M"
        is_seen = marks_left > 0 if is_mark else one == " " or kind not in _UNSEEN
        yield one if is_seen and not _is_blank(ord(one)) else _escaped(one)
        marks_left = marks_left - 1 if is_mark else _MOST_MARKS if one.isalpha() else 0


def _is_blank(code: int) -> bool:
    return any(code in blank for blank in _BLANK)


def _escaped(one: str) -> str:
    return f"\\u{ord(one):04x}" if ord(one) < 0x10000 else f"\\U{ord(one):08x}"

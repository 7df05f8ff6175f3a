"""The arguments of a call as lines of a transcript: short ones in one line, all others each below the one before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from agentctl.domain.agent.telling_argument import telling_of
from agentctl.domain.text.nesting import TOO_DEEP
from agentctl.domain.text.plaintext import beginning, plain, shortened
from agentctl.interfaces.words.value_words import shown_json
from agentctl.lean import Any

#: What stands in one line, in characters.
_LONGEST = 100
#: So much of a value is shown, and so many arguments. A long one does not hide the others.
_MOST_CHARACTERS, _MOST_LINES, _MOST_ARGUMENTS = 4000, 20, 100
_STEP, _APART = "  ", "  "

Arguments = Mapping[str, Any]


def short_line(text: object) -> str:
    """Return one line of a text, cut and safe to show."""
    return shortened(plain(" ".join(str(text or "").split())), _LONGEST)


def called_lines(name: str | None, arguments: Arguments, outcome: str = "") -> list[str]:
    r"""Return a call as it was written: its tool and the argument that says most, then all others.

    Args:
        outcome: What stands behind the first line.

    >>> called_lines("Grep", {"pattern": "foo", "path": "src"})
    ['Grep src  pattern: foo']
    >>> called_lines("Bash", {"command": "cat\nls", "timeout": 5}, " -> failed")
    ['Bash -> failed', '  command:', '    cat', '    ls', '  timeout: 5']
    """
    head, told = short_line(name or "tool"), telling_of(arguments)
    if told is not None and arguments[told[0]] == short_line(told[1]):
        head = f"{head} {told[1]}"
        arguments = {key: value for key, value in arguments.items() if key != told[0]}
    lines = argument_lines(arguments)
    is_clear = len(arguments) > 1 or _APART not in "".join(lines)
    if len(lines) == 1 and is_clear and len(head) + len(lines[0]) <= _LONGEST:
        return [f"{head}{_APART}{lines[0]}{outcome}"]
    return [f"{head}{outcome}", *(f"{_STEP}{line}" for line in lines)]


def argument_lines(arguments: Arguments) -> list[str]:
    r"""Return arguments as lines that are safe to show, but for tabs; those of long ones are counted.

    >>> argument_lines({"timeout": 5, "env": {"A": "b"}}), argument_lines({"content": "a\nb"})
    (['timeout: 5  env: {"A":"b"}'], ['content:', '  a', '  b'])
    """
    shown = islice(arguments.items(), _MOST_ARGUMENTS)
    lines = [line for key, value in shown for line in _argument(key, value)]
    in_one = _APART.join(lines)
    # What has a gap itself could look like two arguments.
    if len(lines) == len(arguments) and len(in_one) <= _LONGEST and in_one.count(_APART) < len(lines):
        return [in_one]
    more = len(arguments) - _MOST_ARGUMENTS
    return [*lines, f"… {more:,} more arguments"] if more > 0 else lines


def _argument(key: str, value: object) -> Iterator[str]:
    name, text = plain(key), plain(beginning(_text_of(value), _MOST_CHARACTERS), keep="\n\t")
    if "\n" not in text:
        yield f"{name}: {text}"
        return
    yield f"{name}:"
    lines = text.removesuffix("\n").split("\n")
    yield from (f"{_STEP}{line}" for line in lines[:_MOST_LINES])
    if len(lines) > _MOST_LINES:
        yield f"{_STEP}… {len(lines) - _MOST_LINES:,} more lines"


def _text_of(value: object) -> str:
    try:
        return value if isinstance(value, str) and value else shown_json(value)
    except RecursionError:
        return TOO_DEEP

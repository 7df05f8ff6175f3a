"""Functions by their indentation: for languages of `def ... end`, shell, and Python that does not parse.

An estimate: it believes the layout, as a reader does.
"""

from __future__ import annotations

import re

from measures import Measure

_PYTHON = r"(?:async\s+)?def\s+(\w+)"
HEADERS = {
    "Python": _PYTHON, "Cython": r"(?:async\s+)?(?:c?p?def)\s+(?:inline\s+)?(?:[\w.*\[\]]+\s+)*?(\w+)\s*\(",
    "Ruby": r"def\s+([\w.?!=]+)", "Elixir": r"(?:defp?|defmacrop?)\s+([\w?!]+)",
    "Lua": r"(?:local\s+)?function\s+([\w.:]+)", "Julia": r"(?:function|macro)\s+([\w.!]+)",
    "Shell": r"(?:function\s+)?([\w:.-]+)\s*\(\)|function\s+([\w:.-]+)", "Fish": r"function\s+([\w:.-]+)",
    "Perl": r"sub\s+(\w+)", "Nim": r"(?:proc|func|method|iterator|macro|template)\s+(\w+)",
    "R": r"([\w.]+)\s*(?:<-|=)\s*function\b", "PowerShell": r"(?i:function)\s+([\w-]+)",
    "Tcl": r"proc\s+(\S+)",
}  # fmt: skip
_CLOSES = re.compile(r"end\b|\}|fi\b|done\b|esac\b|\)")
_BRANCH = re.compile(
    r"\b(?:if|elsif|elif|elseif|unless|for|foreach|while|until|when|case|rescue|except|catch)\b|&&|\|\|"
)
_NO_CODE = re.compile(r"\s*(?:#|--|%|$)")


def measure(text: str, language: str) -> list[Measure]:
    header = re.compile(rf"([ \t]*)(?:{HEADERS[language]})")
    lines = text.expandtabs(8).split("\n")
    found = []
    for index, line in enumerate(lines):
        match = header.match(line)
        if match is not None:
            name = next((group for group in match.groups()[1:] if group), "?")
            found.append(_measure(lines, index, len(match[1]), name))
    return found


def _measure(lines: list[str], first: int, indent: int, name: str) -> Measure:
    levels: list[int] = []
    last, nesting = first, 0
    for index in range(first + 1, len(lines)):
        if _NO_CODE.match(lines[index]):
            continue
        width = len(lines[index]) - len(lines[index].lstrip())
        if width <= indent:
            if width == indent and _CLOSES.match(lines[index], width):
                last = index
            break
        while levels and levels[-1] >= width:
            levels.pop()
        levels.append(width)
        nesting = max(nesting, len(levels) - 1)
        last = index
    body = "\n".join(lines[first : last + 1])
    return Measure(
        name=name,
        line=first + 1,
        lines=last - first + 1,
        nesting=nesting,
        branches=len(_BRANCH.findall(body)),
        method="indentation",
    )

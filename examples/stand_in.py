"""Plays a sub-agent without a model: a little real work, and an answer on stdout.

find PATTERN FOLDER      where the pattern stands in the Python files of a folder
plan INSTANCE            a step for each line of what that worker found
implement INSTANCE FILE  writes that worker's plan to a file
verify CHECK FILE        yes or no: `parses`, `documented` or `short`
decide TEXT FILE         asks whoever started it for a style, then writes the text in it
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

_MOST_FOUND = 5
_MOST_LINES = 400


def find(pattern: str, folder: str) -> str:
    """Search as an explorer would."""
    found = []
    for path in sorted(Path(folder).rglob("*.py")):
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if re.search(pattern, line):
                found.append(f"{path}:{number}: {line.strip()}")
    more = len(found) - _MOST_FOUND
    return "\n".join(found[:_MOST_FOUND] + ([f"and {more} more"] if more > 0 else [])) or "nothing found"


def plan(explorer: str) -> str:
    """Read what another worker has found, as any worker of the task can."""
    return "\n".join(f"{number}. look at {line}" for number, line in enumerate(_result_of(explorer).splitlines(), 1))


def implement(planner: str, file: str) -> str:
    """Carry a plan out."""
    steps = _result_of(planner)
    Path(file).write_text(f"# What was planned\n\n{steps}\n", encoding="utf-8")
    return f"{file}: {len(steps.splitlines())} steps"


def verify(check: str, file: str) -> str:
    """Look at a file in one way."""
    text = Path(file).read_text(encoding="utf-8")
    checks = {
        "parses": lambda: ast.parse(text) is not None,
        "documented": lambda: bool(ast.get_docstring(ast.parse(text))),
        "short": lambda: len(text.splitlines()) <= _MOST_LINES,
    }
    return "yes" if checks[check]() else "no"


def decide(text: str, file: str) -> str:
    """Ask, and do as is answered. The time until the answer does not count."""
    asked = ["interact", "ask", "--kind", "select", "--option", "loud", "--option", "quiet", f"How is {file} to be?"]
    style = _agentctl(*asked)
    Path(file).write_text(text.upper() if style == "loud" else text, encoding="utf-8")
    return f"{file}: {style}"


def _result_of(instance: str) -> str:
    return str(json.loads(_agentctl("result", "--json", instance))["text"]).strip()


def _agentctl(*args: str) -> str:
    command = [sys.executable, "-P", "-m", "agentctl", *args]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


VERBS: dict[str, Callable[..., str]] = {
    "find": find,
    "plan": plan,
    "implement": implement,
    "verify": verify,
    "decide": decide,
}

if __name__ == "__main__":
    verb, *words = sys.argv[1:]
    print(VERBS[verb](*words))

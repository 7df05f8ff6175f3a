"""Plays a sub-agent without a model: it does a little real work, and prints its answer on stdout.

find PATTERN FOLDER      finds the lines of a folder's Python files that match the pattern
plan INSTANCE            turns each line that this worker found into a step
implement INSTANCE FILE  writes this worker's plan to a file
verify CHECK FILE        answers yes or no; the checks are `parses`, `documented` and `short`
decide TEXT FILE         asks for a style, then writes the text in that style to the file
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
    """Return the lines of a folder's Python files that match a pattern."""
    found = []
    for path in sorted(Path(folder).rglob("*.py")):
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if re.search(pattern, line):
                found.append(f"{path}:{number}: {line.strip()}")
    more = len(found) - _MOST_FOUND
    return "\n".join(found[:_MOST_FOUND] + ([f"and {more} more"] if more > 0 else [])) or "nothing found"


def plan(explorer: str) -> str:
    """Return a step for each finding of another worker, whose result any worker of the task can read."""
    return "\n".join(f"{number}. look at {line}" for number, line in enumerate(_result_of(explorer).splitlines(), 1))


def implement(planner: str, file: str) -> str:
    """Write another worker's plan to a file."""
    steps = _result_of(planner)
    Path(file).write_text(f"# What was planned\n\n{steps}\n", encoding="utf-8")
    return f"{file}: {len(steps.splitlines())} steps"


def verify(check: str, file: str) -> str:
    """Return whether a file passes a check, as yes or no."""
    text = Path(file).read_text(encoding="utf-8")
    checks = {
        "parses": lambda: ast.parse(text) is not None,
        "documented": lambda: bool(ast.get_docstring(ast.parse(text))),
        "short": lambda: len(text.splitlines()) <= _MOST_LINES,
    }
    return "yes" if checks[check]() else "no"


def decide(text: str, file: str) -> str:
    """Ask for a style, and write the text in it. The worker's time limit does not run until the answer is there."""
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

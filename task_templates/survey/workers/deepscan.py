"""Compare every text file with every other, token by token, for files that are largely the same.

Thorough and therefore slow: minutes for a repository of usual size. What was found so far is saved now and then.
"""

from __future__ import annotations

import argparse
import re
from difflib import SequenceMatcher
from itertools import combinations
from typing import Any

from survey import TOP, Tree, Worker, argument_parser, code, plural, run, table, walk

LEAST_PERCENT = 60
FEWEST_TOKENS, MOST_TOKENS = 50, 4000
MOST_FILES = 1000
_TOKEN = re.compile(r"\w+|[^\w\s]")


def work(worker: Worker, arguments: argparse.Namespace) -> None:
    texts = tokens_of(walk(arguments.path))
    total = len(texts) * (len(texts) - 1) // 2
    alike: list[tuple[float, str, str]] = []
    for done, ((one, left), (other, right)) in enumerate(combinations(texts.items(), 2)):
        worker.progress(100 * done / total, f"pair {done:,} of {total:,}, {len(alike)} alike")
        if done % 20 == 0:
            worker.save(findings_of(alike, done, total), complete=False)
        # autojunk off: it would ignore the frequent tokens, and in a program those are its structure.
        percent = 100 * SequenceMatcher(None, left, right, autojunk=False).ratio()
        if percent >= LEAST_PERCENT:
            alike.append((percent, one, other))
    worker.finish(findings_of(alike, total, total))


def tokens_of(tree: Tree) -> dict[str, list[str]]:
    """Return the beginnings of the files worth comparing; of too many files, the largest."""
    found: dict[str, list[str]] = {}
    for file in sorted(tree.files, key=lambda file: (-file.size_bytes, file.relative)):
        if len(found) == MOST_FILES:
            break
        tokens = _TOKEN.findall((tree.text(file) or "")[: 40 * MOST_TOKENS])[:MOST_TOKENS]
        if len(tokens) >= FEWEST_TOKENS:
            found[file.relative] = tokens
    return found


def findings_of(alike: list[tuple[float, str, str]], compared: int, total: int) -> dict[str, Any]:
    rows = [(code(one), code(other), f"{percent:.1f} %") for percent, one, other in sorted(alike, reverse=True)]
    return {
        "summary": f"{plural(len(rows), 'pair')} of files alike, {compared:,} of {plural(total, 'pair')} compared",
        "markdown": table(("file", "is like", "share of tokens"), rows[:TOP]),
    }


if __name__ == "__main__":
    run("deepscan", work, argument_parser(__doc__))

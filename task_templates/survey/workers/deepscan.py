"""Compare every text file with every other, token by token, for files that are largely the same.

Thorough and therefore slow: the number of pairs grows with the square of the number of files, and each pair
is compared in full, since a copy whose names were changed has few whole lines in common with its origin.
Minutes for a repository of usual size; what was found until then is saved every few seconds.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import combinations
from typing import Any

import markdown
from languages import language_of
from markdown import code, plural
from source_tree import SourceFile, Tree, is_generated, shown, walk
from worker import Worker, argument_parser, positive, run

FEWEST_TOKENS = 50
MOST_TOKENS = 4000
SAVE_INTERVAL_S = 2.0
_TOKEN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Tokens:
    file: SourceFile
    language: str
    tokens: list[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Likeness:
    one: SourceFile
    other: SourceFile
    percent: float
    longest_run: int
    "The most tokens in a row that both have."


def work(worker: Worker, arguments: argparse.Namespace) -> None:
    tree = walk(arguments.path, lambda found: worker.progress(0, f"listing: {plural(found, 'file')}"))
    texts = largest_of(tree, arguments.most_files)
    total = len(texts) * (len(texts) - 1) // 2
    alike: list[Likeness] = []
    saved_at = time.monotonic()
    for done, (one, other) in enumerate(combinations(texts, 2)):
        worker.progress(100 * done / total, f"pair {done:,} of {total:,}, {len(alike)} alike")
        alike += likeness_of(one, other, arguments.least_percent)
        if time.monotonic() - saved_at >= SAVE_INTERVAL_S:
            worker.save(findings_of(tree, texts, alike, done + 1, total, arguments.top), complete=False)
            saved_at = time.monotonic()
    worker.finish(findings_of(tree, texts, alike, total, total, arguments.top))


def largest_of(tree: Tree, most: int) -> list[Tokens]:
    """The files worth comparing; of too many the largest."""
    found: list[Tokens] = []
    for file in sorted(tree.files, key=lambda file: (-file.size_bytes, file.relative)):
        if len(found) == most:
            break
        text = tree.text(file)
        if text is None or is_generated(file, text):
            continue
        tokens = _TOKEN.findall(text[: 40 * MOST_TOKENS])[:MOST_TOKENS]
        if len(tokens) >= FEWEST_TOKENS:
            found.append(Tokens(file=file, language=language_of(file.name, text), tokens=tokens))
    return found


def likeness_of(one: Tokens, other: Tokens, least_percent: int) -> Iterator[Likeness]:
    # autojunk off: it would ignore the frequent tokens, and in a program those are its structure.
    matcher = SequenceMatcher(None, one.tokens, other.tokens, autojunk=False)
    percent = 100 * matcher.ratio()
    if percent >= least_percent:
        longest = max((block.size for block in matcher.get_matching_blocks()), default=0)
        yield Likeness(one=one.file, other=other.file, percent=percent, longest_run=longest)


def findings_of(
    tree: Tree, texts: list[Tokens], alike: list[Likeness], compared: int, total: int, top: int
) -> dict[str, Any]:
    ranked = sorted(alike, key=lambda pair: (-pair.percent, -pair.longest_run, pair.one.relative, pair.other.relative))
    rows = [
        {
            "one": shown(pair.one.relative),
            "other": shown(pair.other.relative),
            "percent": round(pair.percent, 1),
            "longestRun": pair.longest_run,
        }
        for pair in ranked
    ]
    summary = f"{plural(len(rows), 'pair')} of files alike, {compared:,} of {plural(total, 'pair')} compared"
    table = markdown.table(
        ("file", "is like", "percent", "longest run of tokens"),
        [(code(str(row["one"])), code(str(row["other"])), row["percent"], row["longestRun"]) for row in rows[:top]],
    )
    told = f"{plural(len(texts), 'file')} compared, of each the first {MOST_TOKENS:,} tokens."
    return {
        "path": shown(tree.root, 4096),
        "files": len(texts),
        "pairs": total,
        "pairsCompared": compared,
        "alike": rows,
        "summary": summary,
        "markdown": [*(table or ["No two files are alike."]), "", told, *markdown.remarks(tree.remarks())],
        **tree.remarks(),
    }


if __name__ == "__main__":
    arguments = argument_parser(__doc__)
    arguments.add_argument(
        "--least-percent", type=positive, default=60, help="from where on a pair is alike (default: 60)"
    )
    arguments.add_argument(
        "--most-files", type=positive, default=1000, help="compare the largest ones only (default: 1000)"
    )
    run("deepscan", work, arguments)

"""Keeps the house in order: its circles, names, flags, rooms and its English.

What does not hold yet stands in `debts.toml`, by its kind. These lists may only shrink: a test fails where something is
not in its list, and also where a debt is paid and still listed.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests import house
from tests.support import REPOSITORY

DEBTS = tomllib.loads((Path(__file__).parent / "debts.toml").read_text(encoding="utf-8"))
#: So many modules can be seen at a glance; a folder of more is divided into wings.
MOST_MODULES = 12
#: A class with more ways to say yes or no has states without names: see `domain/state_tables/attempt_state.py`.
MOST_FLAGS = 3
#: Functions of one interface, each called by its module's name: `app.run`, `typers.main`.
INTERFACE = {"main", "install", "load", "run"}
#: German in word order: "X is no Y", "is none", "shown to who".
GERMAN = re.compile(r"(?<![Tt]here )\b(?:is|are) no(?:ne)?\b(?! longer| more)|\b(?:by|for|to) who (?=\w)")
DOCUMENTS = [
    *(REPOSITORY / name for name in ("README.md", "SECURITY.md", "CHANGELOG.md")),
    *sorted((REPOSITORY / "docs").rglob("*.md")),
    *sorted(path for path in (REPOSITORY / "agentctl/interfaces/web/page").rglob("*.js") if "vendor" not in path.parts),
    *sorted((REPOSITORY / "tests/page/unit").glob("*.mjs")),
]


def check(kind: str, found: Iterable[str]) -> None:
    """Fail where something is found that is not listed as a debt of this kind, or listed and not found."""
    listed, new = DEBTS[kind], set(found)
    assert listed == sorted(set(listed)), f"debts.toml, {kind}: not in order"
    assert new - set(listed) == set(), f"new: {kind}"
    assert set(listed) - new == set(), f"paid: remove it from debts.toml, {kind}"


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert " -> ".join(house.circle_in(house.imports())) == ""


def test_no_folders_import_each_other_in_a_circle() -> None:
    """Of the modules and folders of one folder, each can be read once those that it imports were."""
    circles = {name: " -> ".join(house.circle_in(arrows)) for name, arrows in house.arrows_by_folder().items()}
    assert {name: circle for name, circle in circles.items() if circle} == {}


def test_nothing_is_left_over() -> None:
    """What only tests name is no part of the product; the types of what tools answer are named in texts."""
    assert [place for place in house.left_over() if not place.startswith("domain/documents/")] == []


def test_a_public_function_has_a_name_of_its_own() -> None:
    check("shared_function_names", set(house.shared_function_names()) - INTERFACE)


def test_a_module_has_a_name_of_its_own() -> None:
    check("shared_module_names", house.shared_module_names())


def test_a_class_with_many_flags_has_a_table_of_its_states() -> None:
    check(
        "classes_with_many_flags", (name for name, flags in house.flags_by_class().items() if len(flags) > MOST_FLAGS)
    )


def test_a_word_of_one_room_names_nothing_elsewhere() -> None:
    words = list(house.words_of_rooms())
    assert len(words) >= 20, "they are not found any more"
    check("room_words_elsewhere", (place for word, folder in words for place in house.named_elsewhere(word, folder)))


def test_a_folder_is_seen_at_a_glance() -> None:
    check(
        "folders_of_many_modules", (name for name, count in house.modules_by_folder().items() if count > MOST_MODULES)
    )


def test_the_first_line_of_a_module_says_what_it_decides() -> None:
    first = {module: (ast.get_docstring(tree) or "").partition("\n")[0] for module, tree in house.trees().items()}
    assert {module: line for module, line in first.items() if not line.endswith((".", ":")) or " " not in line} == {}


def texts() -> Iterator[tuple[str, str]]:
    """Yield each text and comment of the code, and each line of documents and of the page's scripts, with its place."""
    for module, tree in house.trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"{module}:{node.lineno}", node.value
        source = (house.PACKAGE / module).read_text(encoding="utf-8")
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                yield f"{module}:{token.start[0]}", token.string
    for document in DOCUMENTS:
        for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), 1):
            yield f"{document.relative_to(REPOSITORY)}:{number}", line


def test_the_english_has_the_word_order_of_english() -> None:
    found = [f"{place}: {text[max(0, hit.start() - 30) : hit.end() + 20]!r}" for place, text in texts()
             for hit in GERMAN.finditer(text)]  # fmt: skip
    assert found == []


@pytest.mark.parametrize("text", ["the port is none", "it is no name", "as it was shown to who asked", "for who asked"])
def test_the_rule_about_english_can_be_broken(text: str) -> None:
    assert GERMAN.search(text)
    assert not GERMAN.search("There is no port; None where there is none; it is no longer there, is not, is no more")

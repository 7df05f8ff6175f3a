"""At stake: a call is shown as what it would do, nothing of it is hidden, and an odd one is shown as its arguments."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.domain.question import Question, in_one_line, safe, wording
from agentctl.domain.text.plaintext import plain
from agentctl.interfaces.words.looks.call_kinds import tool_kind
from agentctl.interfaces.words.looks.call_look import CallLook, call_look, todo_look
from agentctl.interfaces.words.question_pieces import call_pieces

KEYS = ("file_path", "path", "filePath", "old_string", "new_string", "oldText", "newText", "content", "edits",
        "changes", "command", "cmd", "description", "replace_all", "kind", "diff of a", "odd")  # fmt: skip
TEXTS = st.sampled_from(
    ["", "a", "a\nb", "x = 1", "update", "add", "delete", "-gone\n+come\n same\n@@ 1 @@", "\t\u202e"]
)
LEAVES = TEXTS | st.booleans() | st.integers(0, 9) | st.none()
INNER = st.dictionaries(st.sampled_from(KEYS), LEAVES, max_size=3)
VALUES = LEAVES | st.lists(INNER | TEXTS, max_size=3) | INNER
ARGUMENTS = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6)
TOOLS = st.sampled_from(["Edit", "MultiEdit", "Write", "apply_patch", "Bash", "shell", "mcp__files__edit", "Odd"])

TABLE = json.loads((Path(__file__).parent / "call_looks.json").read_text("utf-8"))
#: What a list of things to do does not show: the text in other words, and the program's own number.
SAID_AGAIN = {"activeForm", "id"}


def lines_of(look: CallLook) -> list[list[tuple[str, str]]]:
    return [[(line.sign, line.text) for line in part.lines] for part in look.parts]


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from texts_in(inner)
            yield from ([key] if inner not in (None, False) else [])
    elif isinstance(value, list):
        for inner in value:
            yield from texts_in(inner)
    elif value is not None and value is not False:
        yield value if isinstance(value, str) else json.dumps(value)


def drawn(tool: str, arguments: Any, *, is_raw: bool = False) -> str:
    question = Question("q1", "select", "?", tool=tool, arguments=arguments)
    return "".join(text for text, _ in call_pieces(question, 10_000, is_raw=is_raw))


@given(TOOLS, ARGUMENTS)
def test_every_text_of_a_call_is_shown(tool: str, arguments: dict[str, Any]) -> None:
    look = call_look(tool, arguments)
    shown = drawn(tool, arguments)
    question = Question("q1", "select", "?", tool=tool)
    known = set(KEYS) - {"odd"}
    for text in texts_in(arguments):
        if text in known and look is not None:
            continue
        for line in text.split("\n"):
            words = line[1:] if look is not None and line[:1] in "+- " else line
            assert json.dumps(safe(question, words))[1:-1].replace("\\\\", "\\").replace("\\t", "").strip() in (
                shown.replace("\\t", "").replace("\\\\", "\\")
            ), (line, shown)


def any_look(tool: str, arguments: Any) -> CallLook | None:
    return todo_look(tool, arguments) or call_look(tool, arguments)


def leaves_of(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from () if key in SAID_AGAIN else leaves_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves_of(inner)
    elif value is not None and value is not False:
        yield value


def mappings_in(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from mappings_in(inner)


@pytest.mark.parametrize(("tool", "arguments", "rest"), TABLE["looks"], ids=str)
def test_every_leaf_of_a_known_call_is_in_its_look_or_in_its_rest(tool: str, arguments: Any, rest: Any) -> None:
    look = any_look(tool, arguments)
    assert look is not None
    assert look.rest == rest
    signs = {"completed": "[x]", "in_progress": "[>]", "pending": "[ ]", "cancelled": "[-]"}
    verbs = {"add", "update", "delete"}
    shown = [look.said, *(text for part in look.parts for line in part.lines for text in (line.sign, line.text))]
    shown += [text for part in look.parts for text in (part.verb, part.subject)]
    for leaf in leaves_of(arguments):
        if leaf in list(leaves_of(rest)):
            continue
        found = [signs.get(leaf, leaf)] if leaf in verbs or leaf in signs else str(leaf).removesuffix("\n").split("\n")
        for line in found:
            assert any(line.lstrip("-+") in text for text in shown), (leaf, shown)


@pytest.mark.parametrize(("tool", "arguments", "rest"), TABLE["looks"], ids=str)
def test_an_argument_that_nobody_knows_is_listed_at_any_depth(tool: str, arguments: Any, rest: Any) -> None:
    for place in range(len(list(mappings_in(arguments)))):
        planted = json.loads(json.dumps(arguments))
        list(mappings_in(planted))[place]["planted"] = {"in": ["there"]}
        look = any_look(tool, planted)
        assert look is not None, planted
        assert "there" in leaves_of(look.rest), planted


def test_who_is_asked_sees_below_the_edits_which_of_them_is_for_all_places() -> None:
    edits = [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "d", "replace_all": True}]
    shown = drawn("MultiEdit", {"file_path": "f", "edits": edits})
    assert shown.endswith("- c\n    │ + d\n    edits[1].replace_all: true\n"), shown


@pytest.mark.parametrize(("tool", "arguments"), TABLE["none"], ids=str)
def test_a_call_of_which_a_look_would_be_wrong_has_none(tool: str, arguments: Any) -> None:
    assert any_look(tool, arguments) is None


@pytest.mark.parametrize(
    ("tool", "arguments", "lines", "rest"),
    [
        ("Edit", {"file_path": "f", "old_string": "a\nb", "new_string": "a\nc", "replace_all": False},
         [[(" ", "a"), ("-", "b"), ("+", "c")]], {}),
        ("edit", {"filePath": "f", "oldString": "a", "newString": "b", "replaceAll": True},
         [[("-", "a"), ("+", "b")]], {"replaceAll": True}),
        ("replace", {"file_path": "f", "old_string": "", "new_string": "b\n", "instruction": "why"},
         [[("+", "b")]], {"instruction": "why"}),
        ("write_file", {"path": "f", "content": "a\n\nb\n"}, [[("+", "a"), ("+", ""), ("+", "b")]], {}),
        ("Write", {"file_path": "f", "content": "a"}, [[("+", "a"), ("\\", "no line break at its end")]], {}),
        ("Write", {"file_path": "f", "content": ""}, [[]], {}),
        ("MultiEdit", {"file_path": "f", "edits": [{"old_string": "a", "new_string": "b"}] * 2},
         [[("-", "a"), ("+", "b")]] * 2, {}),
        ("apply_patch", {"changes": [{"path": "f", "kind": "update"}, {"path": "g", "kind": "delete"}],
                         "diff of f": "@@ -1 +1 @@\n-a\n+b\n", "diff of g": "?"},
         [[("", "@@ -1 +1 @@"), ("-", "a"), ("+", "b")], []], {"diff of g": "?"}),
        ("Edit", {"changes": [{"path": "f", "oldText": None, "newText": "a\n"}], "paths": ["f"]},
         [[("+", "a")]], {"paths": ["f"]}),
        ("Bash", {"command": "ls\n  1  Allow", "description": "d", "timeout": 5},
         [[("$", "ls"), (" ", "  1  Allow")]], {"timeout": 5}),
        ("shell", {"command": ["rm", "a b"], "cwd": "/"}, [[("$", "rm 'a b'")]], {"cwd": "/"}),
    ],
    ids=str,
)  # fmt: skip
def test_a_call_as_what_it_would_do(tool: str, arguments: Any, lines: Any, rest: Any) -> None:
    look = call_look(tool, arguments)
    assert look is not None
    assert lines_of(look) == lines
    assert look.rest == rest


@pytest.mark.parametrize(("words", "line"), TABLE["commands"], ids=str)
def test_a_command_of_words_is_quoted_as_a_shell_needs_it(words: list[str], line: str) -> None:
    look = call_look("shell", {"command": words})
    assert look is not None
    assert "\n".join(one.text for one in look.parts[0].lines) == line
    assert shlex.split(line) == words
    assert wording("shell", {"command": words}) == f"Allow shell: {plain(line)}?"
    asked = Question("q1", "select", "?", tool="shell", arguments={"command": words})
    assert in_one_line(asked)[0] == f"Allow shell: {safe(asked, line)}?"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Edit", None), ("Edit", "cut text"), ("Edit", {}), ("Edit", {"file_path": ["f"], "new_string": "a"}),
        ("Edit", {"file_path": "f", "new_string": 5}), ("Write", {"file_path": "f", "content": ["a"]}),
        ("Edit", {"file_path": "f", "new_string": "a"}),
        ("Edit", {"file_path": "f", "old_string": ["a"], "new_string": "b"}),
        ("NotebookEdit", {"notebook_path": "f", "new_source": "a", "edit_mode": "delete"}),
        ("NotebookEdit", {"notebook_path": "f", "new_source": "a"}),
        ("Edit", {"file_path": "f", "old_string": "a", "new_string": "b", "edit_mode": "delete"}),
        ("Edit", {"file_path": "f", "old_string": "", "new_string": "b", "insert_line": 5}),
        ("Write", {"file_path": "f", "content": "a", "append": True}),
        ("write_file", {"path": "f", "content": "a", "mode": "append"}),
        ("MultiEdit", {"file_path": "f", "edits": [{"new_string": "a"}]}),
        ("MultiEdit", {"file_path": "f", "edits": [{"new_string": "a"}, "odd"]}),
        ("apply_patch", {"changes": [{"path": "f", "kind": "odd"}]}), ("apply_patch", {"changes": []}),
        ("apply_patch", {"changes": [{"path": "f", "kind": "update"}]}),
        ("apply_patch", {"changes": [{"path": "f", "kind": ["add"]}], "diff of f": "a"}),
        ("Bash", {"command": 5}), ("Bash", {"command": ["a", 5]}), ("Bash", {"command": []}),
        ("mcp__files__edit", {"path": "f", "old_string": "a", "new_string": "b"}), ("Odd", {"command": "ls"}),
    ],
    ids=str,
)  # fmt: skip
def test_an_odd_call_has_no_look(tool: str, arguments: Any) -> None:
    assert call_look(tool, arguments) is None
    assert drawn(tool, arguments) == drawn(tool, arguments, is_raw=True)


def test_things_to_do_are_a_list() -> None:
    todos = [{"content": "a", "status": "completed"}, {"content": "b", "status": "in_progress"}, {"content": "c"}]
    for tool, given_as in (
        ("TodoWrite", "todos"),
        ("todowrite", "todos"),
        ("todo_write", "todos"),
        ("update_plan", "plan"),
    ):
        look = todo_look(tool, {given_as: todos, "explanation": "why"})
        assert look is not None
        assert lines_of(look) == [[("[x]", "a"), ("[>]", "b"), ("[ ]", "c")]]
        assert look.rest == {"explanation": "why"}
    assert [
        todo_look(*odd) for odd in (("Odd", {"todos": todos}), ("TodoWrite", {"todos": [5]}), ("TodoWrite", 5))
    ] == [None] * 3


def test_each_program_has_its_names_in_one_table() -> None:
    names = {
        "execute": ("Bash", "shell", "run_shell_command"), "edit": ("Edit", "apply_patch", "write_file", "replace"),
        "read": ("Read", "read_file"), "other": ("mcp__x__Read", ""),
    }  # fmt: skip
    assert {kind: {tool_kind(name) for name in found} for kind, found in names.items()} == {one: {one} for one in names}

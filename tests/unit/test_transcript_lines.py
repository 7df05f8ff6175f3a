"""At stake: a transcript shows what calls returned as a terminal does, and passes nothing on that a terminal obeys."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.style import Style

from agentctl.domain.activity.row import RowType
from agentctl.domain.activity.transcript import TranscriptEntry
from agentctl.domain.text.plaintext import plain
from agentctl.interfaces.words.activity import paragraph
from agentctl.interfaces.words.looks.look import TextSpan, style_of
from agentctl.interfaces.words.looks.printed_rows import printed_lines
from agentctl.interfaces.words.looks.transcript_lines import entry_lines, paragraphs

PIECES = ["\x1b[31m", "\x1b[1;4;48;5;200m", "\x1b[38;2;1;2;3;7m", "\x1b[m", "\x1b[K", "\x1b[2A", "\r", "\n", "\t",
          "\x07", "\x1b]8;;http://e.org\x07", "\x9b5m", "\u202e", "old", " ", "中"]  # fmt: skip


def drawn(kind: str, *, begins: bool = False, ends: bool = True, width: int = 80, **fields: Any) -> list[str]:
    """Return the lines of an entry behind its time."""
    entry = TranscriptEntry("2026-01-01T10:00:00.000Z", 0, None, kind, begins, ends, fields)
    return [line.text[10:] for line in entry_lines(entry, width)]


def returned(text: str) -> list[str]:
    return drawn(RowType.TOOL, name="Bash", text=text, status="completed")


def test_what_a_call_returned_is_what_a_terminal_would_show_of_it() -> None:
    grep = "\x1b[35m\x1b[Ka.ts\x1b[m\x1b[K:\x1b[01;31m\x1b[Kold\x1b[m\x1b[K = 25;\n"

    assert returned(f"1 %\r100 %\n{grep}") == ["Bash -> completed", "  100 %", "  a.ts:old = 25;"]
    assert printed_lines(grep)[0].spans == (
        TextSpan("a.ts", "f5"), TextSpan(":"), TextSpan("old", "bold f1"), TextSpan(" = 25;"),
    )  # fmt: skip


def test_more_than_a_screenful_is_counted() -> None:
    many = "".join(f"{number}\n" for number in range(50))

    assert returned(many)[-2:] == ["  19", "  ... (140 characters)"]
    assert returned("x" * 5000)[1:] == ["  " + "x" * 4000, "  ... (5,000 characters)"]


def test_thoughts_and_answers_of_sub_agents_are_markdown_and_questions_are_spelled_out() -> None:
    assert drawn(RowType.THOUGHT, text="It is *so*.") == ["(thinks) It is so."]
    assert drawn(RowType.AGENT, name="look", agentType="explore", text="- **two**", status="completed") == [
        "[explore] look -> completed", "  • two",
    ]  # fmt: skip
    assert drawn(RowType.QUESTION, ends=False, begins=True, text="Is *this* \x1b[31mright\x1b[m?") == [
        "? Is *this* \\x1b[31mright\\x1b[m?"
    ]


def test_the_end_of_a_permission_says_whether_it_was_given() -> None:
    assert drawn(RowType.QUESTION, name="Bash", status="answered") == ["? Bash -> allowed"]
    assert drawn(RowType.QUESTION, name="Bash", status="denied", text="no: not today") == [
        "? Bash: no: not today -> denied"
    ]
    assert drawn(RowType.QUESTION, status="answered", text="blue") == ["? blue -> answered"]


def test_of_a_long_edit_the_changes_are_shown_and_what_stays_is_counted() -> None:
    before, behind = "".join(f"b{n}\n" for n in range(50)), "".join(f"e{n}\n" for n in range(50))
    edit = {"file_path": "z", "old_string": f"{before}old\n{behind}", "new_string": f"{before}new\n{behind}"}
    assert called("Edit", **edit) == [
        "Edit z", "… 47 lines that stay", "  b47", "  b48", "  b49", "- old", "+ new", "  e0", "  e1", "  e2",
        "… 48 lines that stay",
    ]  # fmt: skip


def test_of_a_long_command_the_beginning_is_shown_and_nothing_of_it_stays() -> None:
    prints = [f"print({number})" for number in range(40)]
    lines = called("Bash", command="\n".join(["python3 - <<'E'", *prints, "E"]))
    assert lines[:3] == ["$ python3 - <<'E'", "  print(0)", "  print(1)"]
    assert lines[-2:] == ["  print(28)", "… 12 more lines"]


def test_a_change_of_blanks_alone_spells_its_tabs() -> None:
    assert called("Edit", file_path="Makefile", old_string="\tx", new_string="    x") == [
        "Edit Makefile", "- \\tx", "+     x",
    ]  # fmt: skip
    assert called("Edit", file_path="a", old_string="\tx", new_string="\ty")[1:] == ["-     x", "+     y"]


def test_reads_that_end_behind_one_that_failed_are_no_further_read() -> None:
    def read(number: int, status: str = "completed", *, begins: bool) -> TranscriptEntry:
        fields = {
            "name": "Read",
            "detail": {"file_path": f"f{number}"} if begins else None,
            "text": "x",
            "status": status,
        }
        return TranscriptEntry("2026-01-01T10:00:00.000Z", 0, None, RowType.TOOL, begins, not begins, fields)

    entries = [
        *(read(number, "running", begins=True) for number in range(3)),
        read(1, "failed", begins=False), read(0, begins=False), read(2, begins=False),
    ]  # fmt: skip
    drawn_lines = [line.text[10:] for lines in paragraphs(entries, 80) for line in lines]
    assert drawn_lines == ["Read 3 files: f0, f1, f2", "Read -> failed", "  x", "Read -> completed"]


def called(tool: str, **arguments: Any) -> list[str]:
    return drawn(RowType.TOOL, begins=True, ends=False, name=tool, detail=arguments)


def written(tool: str, **arguments: Any) -> list[str]:
    """Return the lines of a call in the form that is not drawn."""
    fields = {"name": tool, "detail": arguments}
    entry = TranscriptEntry("2026-01-01T10:00:00.000Z", 0, None, RowType.TOOL, begins=True, ends=False, fields=fields)
    return [line[10:] for line in paragraph(entry).removesuffix("\n").split("\n")]


def test_below_what_a_call_does_stand_the_arguments_that_are_not_in_it() -> None:
    edit = {"file_path": "a", "old_string": "x", "new_string": "y"}

    assert called("Edit", **edit) == ["Edit a", "- x", "+ y"]
    assert called("Edit", **edit, replace_all=True) == ["Edit a", "- x", "+ y", "  replace_all: true"]
    assert called("MultiEdit", file_path="a", edits=[
        {"old_string": "x", "new_string": "y"}, {"old_string": "v", "new_string": "w", "replace_all": True},
    ]) == ["MultiEdit a", "- x", "+ y", "MultiEdit a", "- v", "+ w", "  edits[1].replace_all: true"]  # fmt: skip
    assert called("Bash", command="ls", cwd="/etc", timeout=5, description="Look") == [
        "$ ls", "  cwd: /etc  timeout: 5", "# Look",
    ]  # fmt: skip
    assert called("TodoWrite", todos=[{"content": "a"}], merge=True) == ["TodoWrite", "[ ] a", "  merge: true"]


@pytest.mark.parametrize("form", [called, written])
def test_what_has_no_look_is_shown_with_its_arguments(form: Callable[..., list[str]]) -> None:
    assert form("Grep", path="src", pattern="foo") == ["Grep src  pattern: foo"]
    assert form("WebFetch", url="https://e.example/", prompt="a\nb") == [
        "WebFetch https://e.example/", "  prompt:", "    a", "    b",
    ]  # fmt: skip
    assert form("MultiEdit", file_path="b.py", edits=[{"old_string": "x", "new_string": "y", "append": True}]) == [
        'MultiEdit b.py  edits: [{"old_string":"x","new_string":"y","append":true}]'
    ]
    assert form("mcp__x__do", a="b  c: d", c="\x1b[2J") == ["mcp__x__do", "  a: b  c: d", "  c: \\x1b[2J"]
    assert form("Odd", text="x\n" * 100, also=1)[-3:] == ["    x", "    … 80 more lines", "  also: 1"]
    assert form("Odd", **{f"a{number}": number for number in range(150)})[-1] == "  … 50 more arguments"
    assert form("Odd", a="b  c: d") == ["Odd", "  a: b  c: d"]
    assert form("Odd") == ["Odd"]


def test_a_call_as_it_was_written_has_all_its_arguments() -> None:
    assert written("Bash", command="make deploy", run_in_background=True) == [
        "Bash make deploy  run_in_background: true"
    ]
    assert written("Edit", file_path="a", old_string="x\n", new_string="y\nz\n", replace_all=False) == [
        "Edit a", "  old_string:", "    x", "  new_string:", "    y", "    z", "  replace_all: false",
    ]  # fmt: skip
    assert written("shell", command=["ls", "a b"]) == ['shell  command: ["ls","a b"]']


@given(st.lists(st.sampled_from(PIECES), max_size=60))
def test_it_is_nothing_but_safe_text_in_styles_that_a_terminal_has(pieces: list[str]) -> None:
    for line in printed_lines("".join(pieces)):
        for text, look in line.spans:
            assert plain(text) == text
            assert look == "text" or str(Style.parse(style_of(look))) not in ("", "none")


def test_files_that_were_read_in_a_row_are_one_paragraph() -> None:
    def entry(name: str, *, begins: bool, depth: int = 0, **fields: Any) -> TranscriptEntry:
        at, fields = "2026-01-01T10:00:00.000Z", {"name": name, **fields}
        return TranscriptEntry(at, depth, "explore" if depth else None, RowType.TOOL, begins, not begins, fields)

    def reads(file: str, *, depth: int = 0, status: str = "completed") -> list[TranscriptEntry]:
        end = entry("Read", begins=False, depth=depth, status=status, text="inside")
        return [entry("Read", begins=True, depth=depth, detail={"file_path": file}), end]

    entries = [
        *reads("a"), *reads("b"), *reads("c", depth=1), entry("Bash", begins=True, detail={"command": "ls"}),
        *reads("d"), *reads("e", status="failed"),
        entry("Read", begins=True, detail={"file_path": "f", "offset": 5}),
        entry("Bash", begins=True, detail={"command": "ls"}),
        entry("read_file", begins=True, detail={"absolute_path": "/g"}),
        entry("Read", begins=True, detail={"paths": ["h", "i"]}),
        entry("Read", begins=True, detail={"under_another_name": "j"}), entry("Read", begins=True),
    ]  # fmt: skip
    assert [[line.text[10:] for line in lines] for lines in paragraphs(entries, 80)] == [
        ["Read 2 files: a, b"], ["  [explore] Read c"], ["$ ls"], ["Read 2 files: d, e"],
        ["Read -> failed", "  inside"], ["Read f  offset: 5"], ["$ ls"], ["Read 3 files: /g, h, i"],
        ["Read  under_another_name: j"], ["Read"],
    ]  # fmt: skip


@pytest.mark.parametrize("piece", ["9 %\r", "\x1b[1A\n", "\x1b[31mx", "x"])
def test_no_output_takes_long(piece: str) -> None:
    began = time.process_time()
    assert len(returned(piece * 1_000_000)) <= 22
    assert time.process_time() - began < 2

"""At stake: the pager finds and shows what is drawn as well as what was written, and reads in a row are one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agentctl.domain.activity.row import Phase, Row, RowType, encode_row
from agentctl.interfaces.screen.texts.activity_source import ActivitySource
from agentctl.interfaces.screen.texts.needle import Needle
from agentctl.interfaces.screen.texts.shown import Spot
from agentctl.interfaces.screen.texts.sources import PagerSource, TextSource


def row(kind: RowType, id_: str, phase: Phase = Phase.END, **more: Any) -> bytes:
    return encode_row(Row(kind, id_, phase, **more), "2026-11-21T20:00:01.000Z")


def reads(number: int, *, status: str = "completed", name: str = "Read") -> list[bytes]:
    file = {"file_path": f"src/{number}.py"}
    return [
        row(RowType.TOOL, f"r{number}", Phase.START, name=name, detail=file),
        row(RowType.TOOL, f"r{number}", name=name, status=status, text=f"needle {number}"),
    ]


def texts(source: PagerSource) -> list[str]:
    while source.grow():
        pass
    return ["\n".join(line.text for line in source.paragraph(number)) for number in range(len(source))]


def test_files_that_were_read_in_a_row_are_one_paragraph_which_opens(tmp_path: Path) -> None:
    path = tmp_path / "activity.jsonl"
    path.write_bytes(b"".join(reads(1)))
    source = ActivitySource(path, is_source=False)
    assert texts(source) == ["20:00:01  Read src/1.py"]
    with path.open("ab") as file:
        file.writelines([*reads(2), *reads(3, name="read_file"), *reads(4), *reads(5, status="failed")])
        file.writelines([row(RowType.MESSAGE, "m", text="# Done\n*yes*"), *reads(6, name="mcp__x__Read")])
    drawn = texts(source)
    assert drawn[0] == "20:00:01  Read 5 files: src/1.py, src/2.py, src/3.py, 2 more"
    assert drawn[1].startswith("20:00:01  Read -> failed")
    assert drawn[2] == "20:00:01  Done\n\n          yes"
    assert drawn[3] == "20:00:01  mcp__x__Read src/6.py"
    assert [*source.hits(Needle("needle"), 0, len(source))] == [Spot(1, 1), Spot(4, 1)]
    source.change_source()
    written = texts(source)
    assert len(written) == len(drawn)
    assert written[0].count("\n") == 12
    assert written[2] == "20:00:01  # Done\n          *yes*"
    assert [*source.hits(Needle("needle"), 0, 1)] == [Spot(0, line) for line in (2, 5, 8, 11)]
    source.close()


def test_the_arguments_of_a_call_are_found_in_both_forms(tmp_path: Path) -> None:
    path = tmp_path / "activity.jsonl"
    edit = {"file_path": "a", "old_string": "x\n", "new_string": "y\n", "replace_all": True}
    many = {f"a{number}": number for number in range(150)}
    calls = (("Edit", edit), ("Grep", {"path": "src", "pattern": "foo"}), ("Odd", many))
    rows = (row(RowType.TOOL, name, Phase.START, name=name, detail=detail) for name, detail in calls)
    path.write_bytes(b"".join(rows))
    source = ActivitySource(path, is_source=False)
    for _ in range(2):
        texts(source)
        for number, text in enumerate(("replace_all: true", "pattern: foo", "50 more arguments")):
            assert [spot.paragraph for spot in source.hits(Needle(text), 0, len(source))] == [number]
        source.change_source()
    source.close()


def test_the_changed_words_of_a_diff_have_a_look() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n-a = 1\n-b\n+a = 2\n+other\n+c\n same\n-alone\n"
    source = TextSource(diff.__str__, is_diff=True)
    assert len(texts(source)) == 10
    looks = {number: source.paragraph(number)[0].looks for number in range(10)}
    assert {number: found for number, found in looks.items() if found} == {
        3: ((5, 6, "removed-word"),), 5: ((5, 6, "added-word"),)
    }  # fmt: skip
    long = TextSource(lambda: "@@ @@\n" + "-a = 1\n" * 500 + "+a = 2\n" * 500, is_diff=True)
    texts(long)
    assert not any(long.paragraph(number)[0].looks for number in range(len(long)))

"""At stake: the JSON that is printed for programs."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator

import pytest

from agentctl.interfaces.cli.json_output import print_json_rows


@pytest.mark.parametrize("count", [0, 1, 249, 250, 251, 1000])
def test_rows_are_one_json_list_whatever_their_number(count: int, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"n": number, "text": 'a "b"\n[é]'} for number in range(count)]
    print_json_rows(iter(rows))
    printed = capsys.readouterr().out
    assert json.loads(printed) == rows
    assert printed.count("\n") == 1


def test_the_rows_of_many_never_stand_in_memory_together(monkeypatch: pytest.MonkeyPatch) -> None:
    def rows() -> Iterator[dict[str, str]]:
        for number in range(5000):
            yield {"text": f"{number}" + "x" * 10_000}

    with open("/dev/null", "w", encoding="utf-8") as nowhere:
        monkeypatch.setattr("sys.stdout", nowhere)
        tracemalloc.start()
        print_json_rows(rows())
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert most < 20 << 20  # 50 MB in all.

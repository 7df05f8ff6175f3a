"""At stake: whoever continues an agent believes of its program what its row said, no more and no less."""

from __future__ import annotations

import pytest

from agentctl.drivers.acp.known import known_programs
from agentctl.drivers.acp.program import AcpProgram, Manner, driver_of, program_from

MANNER = Manner(mode="m", args=("a",), environ={"A": "b"}, session_meta={"c": 1})
#: Every field differs from its default.
FULL = AcpProgram(
    program="agent", args=("acp",), environ={"A": "b"}, session_meta={"c": 1}, unset=("B",), version_args=("version",),
    tested="1", install="get it", obeys=(".x",), withheld=("allow_always",), cannot=("resume", "permissions"),
    read_only=MANNER, asking=MANNER, allowing=MANNER, instructions="systemPrompt", usage="turn", reports_cost=True,
    asks=True, servers_in="a.b", tools="claude", home="codex", marks=("C",), runs_as=("@a/b",),
)  # fmt: skip
#: Of no use once the program was found.
ONLY_BEFORE = {"version_args", "tested", "install", "marks", "runs_as"}


@pytest.mark.parametrize("row", [FULL, AcpProgram(), *known_programs(()).values()])
def test_a_row_survives_in_an_order(row: AcpProgram) -> None:
    kept = program_from(row.to_json())
    assert kept == row._replace(**{name: getattr(kept, name) for name in ONLY_BEFORE})
    assert driver_of("x", kept).honours == driver_of("x", row).honours


def test_the_full_row_is_full() -> None:
    default = AcpProgram()
    assert [name for name in FULL._fields if getattr(FULL, name) == getattr(default, name)] == []

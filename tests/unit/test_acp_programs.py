"""At stake: whoever continues an agent believes of its program what its row said, no more and no less."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentctl.domain.agent.permissions import BadValue, parse_policy
from agentctl.drivers.acp.known import known_programs
from agentctl.drivers.acp.program import AcpProgram, Manner, driver_of, program_from
from agentctl.drivers.order import Order

MANNER = Manner(mode="m", modes=("n",), args=("a",), environ={"A": "b"}, permission={"*": "ask"}, session_meta={"c": 1})
#: Every field differs from its default.
FULL = AcpProgram(
    program="agent", args=("acp",), environ={"A": "b"}, session_meta={"c": 1}, unset=("B",), version_args=("version",),
    tested="1", modes=("m", "n"), install="get it", obeys=(".x",), withheld=("allow_always",),
    cannot=("resume", "permissions"), read_only=MANNER, asking=MANNER, allowing=MANNER, own=MANNER,
    own_denials=("show",), busy=("locked",), secrets=("S",), tells_late=True, instructions="systemPrompt", usage="turn",
    reports_cost=True, asks=True, servers_in="a.b", tools="claude", reads="claude", home="codex", marks=("C",),
    runs_as=("@a/b",), by_hand=("agent", "open"),
)  # fmt: skip
#: Of no use once the program was found.
ONLY_BEFORE = {"version_args", "tested", "modes", "install", "marks", "runs_as"}


@pytest.mark.parametrize("row", [FULL, AcpProgram(), *known_programs(()).values()])
def test_a_row_survives_in_an_order(row: AcpProgram) -> None:
    kept = program_from(row.to_json())
    assert kept == row._replace(**{name: getattr(kept, name) for name in ONLY_BEFORE})
    assert driver_of("x", kept).honours == driver_of("x", row).honours


def test_the_full_row_is_full() -> None:
    default = AcpProgram()
    assert [name for name in FULL._fields if getattr(FULL, name) == getattr(default, name)] == []


@pytest.mark.parametrize("name", known_programs(()))
def test_of_a_program_that_was_not_tried_nothing_is_promised(name: str) -> None:
    """What brings it to ask, whatever its user has allowed it, is known only of those that were tried."""
    row = known_programs(())[name]
    driver = driver_of(name, row)
    manners = {"asking": row.asking, "allowing": row.allowing, "readOnly": row.read_only, "own": row.own}
    if row.tested:
        assert row.asking is not None
        assert row.read_only is not None
    else:
        assert {key for key, manner in manners.items() if manner is not None} == set()
    assert driver.is_known_to_ask == bool(row.tested)
    assert ("readOnly" in driver.honours) == bool(row.tested)


OPENCODE = known_programs(())["opencode"]
DENIALS = {"bash": {"*": "allow", "touch *": "deny"}, "edit": "deny", "webfetch": "allow"}


def order(policy: str, *, read_only: bool = False, **more: Any) -> Order:
    return Order(
        driver="x", program="/bin/x", agent="general", prompt="do it", cwd='/a "folder"', read_only=read_only,
        permissions=parse_policy(policy), **more,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "read_only", "others"), [("ask", False, "ask"), ("deny", False, "ask"), ("allow", False, "allow"),
                                        ("allow", True, "deny")],
)  # fmt: skip
def test_an_agent_of_ours_has_a_name_of_its_own_and_keeps_what_the_person_denies(
    policy: str, read_only: bool, others: str
) -> None:
    given = order(policy, read_only=read_only, nonce="n1", own_settings={"permission": DENIALS})
    driver = driver_of("opencode", OPENCODE)
    assert driver.settings_argv is not None
    assert driver.settings_argv(given) == ["/bin/x", "debug", "config"]
    config = json.loads(driver.environ(given, {})["OPENCODE_CONFIG_CONTENT"])
    assert config["instructions"] == ['/a "folder"/AGENTS.md']
    (name,) = config["agent"]
    assert OPENCODE.manner(given).mode == name == config["default_agent"]
    assert OPENCODE.manner(given._replace(nonce="n2")).mode != name
    permission = config["agent"][name]["permission"]
    assert permission["*"] == others
    assert permission["bash"] == {"*": others, "touch *": "deny"}
    assert permission["edit"] == "deny"


def test_with_ones_own_settings_nothing_but_what_protects_from_a_project_is_set() -> None:
    driver = driver_of("opencode", OPENCODE)
    environ = driver.environ(order("own", own_settings={"permission": DENIALS}), {})
    assert json.loads(environ["OPENCODE_CONFIG_CONTENT"]) == {"instructions": ['/a "folder"/AGENTS.md']}
    assert environ["OPENCODE_DISABLE_PROJECT_CONFIG"] == "1"
    assert driver.settings_argv is not None
    assert driver.settings_argv(order("own")) == []
    qwen = driver_of("qwen", known_programs(())["qwen"])
    assert qwen.argv(order("own")) == ["/bin/x", "--acp"]
    assert settings_of(qwen, "own") == {"security": {"folderTrust": {"enabled": True}}, "$version": 4}


@pytest.mark.parametrize(("policy", "read_only"), [("ask", False), ("deny", False), ("allow", True)])
def test_qwen_asks_before_all_that_a_person_may_have_allowed(policy: str, read_only: bool) -> None:
    qwen = driver_of("qwen", known_programs(())["qwen"])
    settings = settings_of(qwen, policy, read_only=read_only)
    assert settings["security"] == {"folderTrust": {"enabled": True}}
    assert settings["disableAllHooks"] is True
    must_ask = {"Bash", "Edit", "Write", "mcp__*", "Skill", "Agent", "artifact", "send_message", "task_create"}
    assert must_ask <= {*settings["permissions"]["ask"]}
    assert ("mcp" in settings) is read_only


def settings_of(driver: Any, policy: str, *, read_only: bool = False) -> Any:
    path = driver.environ(order(policy, read_only=read_only), {})["QWEN_CODE_SYSTEM_SETTINGS_PATH"]
    return json.loads(Path(path).read_bytes())


def test_what_is_filled_in_is_not_filled_once_more() -> None:
    row = AcpProgram(program="agent", environ={"A": "{cwd} {name}"})
    given = order("ask", nonce="n")._replace(cwd="/{name}/{here}")
    assert driver_of("x", row).environ(given, {}) == {"A": "/{name}/{here} agentctl-n"}


def test_a_row_says_what_is_so_of_all_other_tools() -> None:
    with pytest.raises(BadValue, match="every other tool"):
        program_from({"program": "x", "asking": {"permission": {"read": "allow"}}})

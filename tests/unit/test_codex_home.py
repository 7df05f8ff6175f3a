"""At stake: in the settings that Codex is given, nothing decides in a person's place, and the rest is as it was."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentctl.domain.agent.permissions import parse_policy
from agentctl.drivers.codex import adapter_home
from agentctl.drivers.codex.home import replaced_home
from agentctl.drivers.codex.toml import toml
from agentctl.drivers.order import OWN_PERMISSIONS, Order
from agentctl.errors import Refused

PLACES = {"variable": "CODEX_HOME", "own": "/w/home", "persons": "/home/me/.codex", "resolved": "/data/codex"}
LOOSE = """
model = "m"
approval_policy = "never"
notify = ["mine"]
bypass_hook_trust = true
sqlite_home = "db"
when = 2026-01-02T03:04:05Z
[projects."/p"]
trust_level = "trusted"
[features]
apps = true
other = true
[mcp_servers.w]
command = "w"
default_tools_approval_mode = "approve"
[mcp_servers.w.tools."a.b"]
approval_mode = "approve"
[shell_environment_policy.set]
MINE = "1"
[hooks]
PreToolUse = [{hooks = [{type = "command", command = "guard"}]}]
[hooks.state."/home/me/.codex/hooks.json:pre_tool_use:0:0"]
trusted_hash = "1"
[hooks.state."/data/codex/config.toml:post_tool_use:0:0"]
trusted_hash = "2"
[hooks.state."/home/me/.codex/hooks.json:permission_request:0:0"]
trusted_hash = "3"
[hooks.state."a-plugin:hooks.json:permission_request:0:0"]
trusted_hash = "4"
"""
RULES = b'prefix_rule(["touch"], "allow")\nprefix_rule(["rm"], "forbidden")\nrule = prefix_rule\n'
ALLOW, DENY = parse_policy("allow"), parse_policy("deny")


def order(**more: Any) -> Order:
    return Order("codex", "/bin/codex", "general", "x", home=PLACES, **more)


def config(given: Order, text: str = LOOSE) -> dict[str, Any]:
    folder = replaced_home(given)
    assert folder is not None
    return tomllib.loads(folder.replaced(given, {"config.toml": text.encode()}).files["config.toml"].decode())


def test_what_decides_is_not_the_persons_and_the_rest_is() -> None:
    found = config(order())
    assert {"projects", "bypass_hook_trust"}.isdisjoint(found)
    assert found["mcp_servers"]["w"] == {
        "command": "w", "default_tools_approval_mode": "prompt", "tools": {"a.b": {"approval_mode": "prompt"}},
    }  # fmt: skip
    assert found["features"] == {"apps": False, "plugins": False, "other": True}
    kept = {name: found[name] for name in ("model", "notify", "when")}
    assert kept == {name: tomllib.loads(LOOSE)[name] for name in kept}
    assert found["shell_environment_policy"] == {"set": {"MINE": "1", "CODEX_HOME": "/home/me/.codex"}}
    assert found["sqlite_home"] == "/w/home"


def test_hooks_that_answer_for_a_person_are_not_trusted_and_others_are_in_their_new_place() -> None:
    hooks = config(order())["hooks"]
    assert hooks["PreToolUse"] == tomllib.loads(LOOSE)["hooks"]["PreToolUse"]
    assert hooks["state"] == {
        "/w/home/hooks.json:pre_tool_use:0:0": {"trusted_hash": "1"},
        "/w/home/config.toml:post_tool_use:0:0": {"trusted_hash": "2"},
    }


def test_whoever_may_only_read_runs_no_command_of_the_persons() -> None:
    found = config(order(read_only=True))
    assert "notify" not in found
    assert found["features"]["hooks"] is False


@pytest.mark.parametrize(
    ("more", "is_replaced"),
    [
        ({}, True),
        ({"permissions": DENY}, True),
        ({"permissions": ALLOW}, False),
        ({"permissions": ALLOW, "denied_above": [DENY]}, True),
        ({"permissions": ALLOW, "read_only": True}, True),
        ({"permissions": parse_policy("own")}, False),
        ({"permissions": parse_policy("own"), "read_only": True}, True),
    ],
)
@pytest.mark.parametrize("way", [replaced_home, adapter_home.home_of])
def test_the_persons_own_settings_count_where_they_say_so_or_nothing_is_restricted(
    way: Any, more: Mapping[str, Any], is_replaced: bool
) -> None:
    assert (way(order(**more)) is not None) == is_replaced


@pytest.mark.parametrize(
    ("rules", "is_off"),
    [
        ([], False),
        (parse_policy("ask"), False),
        (DENY, True),
        ([{"tool": "WebSearch", "pattern": "*", "answer": "deny"}, *ALLOW], True),
        ([{"tool": "shell", "pattern": "*", "answer": "deny"}, *ALLOW], False),
    ],
)
def test_a_search_that_is_denied_is_off_as_codex_never_asks_about_it(rules: Any, is_off: bool) -> None:
    assert (config(order(permissions=rules)).get("web_search") == "disabled") == is_off
    assert (config(order(denied_above=[rules])).get("web_search") == "disabled") == is_off


@pytest.mark.parametrize(
    ("rules", "is_off"),
    [
        ([], True),
        (parse_policy("ask"), True),
        (parse_policy("own"), True),
        (DENY, True),
        (ALLOW, False),
        ([{"tool": "web_search", "pattern": "*", "answer": "allow"}], False),
        ([{"tool": "WebSearch", "pattern": "*", "answer": "allow"}], False),
        ([{"tool": "web_search", "pattern": "rust *", "answer": "allow"}], True),
        ([{"tool": "shell", "pattern": "*", "answer": "allow"}], True),
        ([{"tool": "web_search", "pattern": "*", "answer": "deny"}, *ALLOW], True),
    ],
)
@pytest.mark.parametrize("text", [LOOSE, 'web_search = "live"\n'])
def test_whoever_may_only_read_searches_the_web_only_where_a_rule_allows_it(
    rules: Any, is_off: bool, text: str
) -> None:
    reader = order(read_only=True, permissions=rules)
    assert (config(reader, text).get("web_search") == "disabled") == is_off
    assert config(reader._replace(denied_above=[DENY]), text)["web_search"] == "disabled"


def test_rules_that_cannot_be_read_are_said() -> None:
    folder = replaced_home(order())
    assert folder is not None
    made = folder.replaced(order(), {"rules/default.rules": RULES})
    assert made.files["rules/default.rules"] == b'prefix_rule(pattern=["rm"], decision="forbidden")\n'
    (note,) = made.notes
    assert "rules/default.rules:3" in note


@pytest.mark.parametrize(("login", "is_said"), [({"auth.json": b"{}"}, False), ({}, True)])
def test_a_login_that_is_not_found_there_is_said(login: dict[str, bytes], is_said: bool) -> None:
    folder = replaced_home(order())
    assert folder is not None
    made = folder.replaced(order(), {"config.toml": b'cli_auth_credentials_store = "keyring"', **login})
    assert any("keyring" in note for note in made.notes) == is_said


def test_a_config_that_cannot_be_read_is_refused_with_the_way_out() -> None:
    with pytest.raises(Refused, match=r"config\.toml of Codex cannot be read: .*line 1") as refusal:
        config(order(), "model = \n")
    assert OWN_PERMISSIONS in str(refusal.value.hint)


def test_whoever_may_only_read_is_not_told_of_a_word_that_loosens_nothing() -> None:
    reader = order(read_only=True)
    with pytest.raises(Refused) as refusal:
        config(reader, "model = \n")
    assert refusal.value.hint == "correct it"
    for way in (replaced_home, adapter_home.home_of):
        folder = way(reader)
        assert folder is not None
        files = {"rules/default.rules": RULES, "config.toml": b'cli_auth_credentials_store = "keyring"'}
        notes = folder.replaced(reader, files).notes
        assert len(notes) == 2
        assert OWN_PERMISSIONS not in " ".join(notes)
        assert OWN_PERMISSIONS in " ".join(folder.replaced(order(), files).notes)


def test_databases_are_sought_where_the_config_says() -> None:
    folder = replaced_home(order())
    assert folder is not None
    assert folder.replaced(order(), {"config.toml": LOOSE.encode()}).databases == "/home/me/.codex/db"
    assert folder.replaced(order(), {}).databases == "/home/me/.codex"


# -- a Codex that another program starts -----------------------------------------------------------------------------


def of_adapter(given: Order, configured: str = LOOSE) -> dict[str, Any]:
    folder = adapter_home.home_of(given)
    assert folder is not None
    return tomllib.loads(folder.replaced(given, {"config.toml": configured.encode()}).files["config.toml"].decode())


def test_an_adapter_finds_in_the_config_what_it_is_not_told() -> None:
    found = of_adapter(order())
    asked = {name: found[name] for name in ("approval_policy", "approvals_reviewer", "default_permissions")}
    assert asked == {"approval_policy": "on-request", "approvals_reviewer": "user", "default_permissions": "agentctl"}
    assert found["permissions"]["agentctl"]["extends"] == ":workspace"


def test_of_the_servers_of_an_order_each_tool_is_asked_about_too() -> None:
    mine = {"command": "x", "args": ["y"], "env": {"A": "b"}, "alwaysLoad": True}
    servers = {"own": mine, "My web": {"type": "http", "url": "https://x", "headers": {"K": "v"}}, "w": mine}
    found = of_adapter(order(mcp_servers=servers, permissions=DENY))["mcp_servers"]
    assert {name: one["default_tools_approval_mode"] for name, one in found.items()} == dict.fromkeys(
        ("own", "My_web", "w"), "prompt"
    )
    started = {"command": "x", "args": ["y"], "env": {"A": "b"}}
    assert {**found["own"], "default_tools_approval_mode": None} == {**started, "default_tools_approval_mode": None}
    assert found["w"]["command"] == "x", "the person's own one of that name does not count"
    assert (found["My_web"]["url"], found["My_web"]["http_headers"]) == ("https://x", {"K": "v"})


def test_under_rules_its_commands_may_only_read_unasked() -> None:
    found = of_adapter(order(permissions=DENY))
    assert found["permissions"]["agentctl"] == {"filesystem": {":root": "read"}}


def test_of_who_may_only_read_everything_else_is_switched_off() -> None:
    found = of_adapter(order(read_only=True))
    assert (found["approval_policy"], found["default_permissions"]) == ("never", "agentctl-read-only")
    assert "deny" in found["permissions"]["agentctl-read-only"]["filesystem"].values()
    assert found["mcp_servers"]["w"]["enabled"] is False


@pytest.mark.parametrize("is_reading", [True, False])
@pytest.mark.parametrize(
    ("git", "configured", "markers"),
    [
        ("/project/.git", "", []),
        (None, "", []),
        ("/project/.git", 'project_root_markers = [".git"]', []),
        ("/.git", "", None),
        ("/project/.git", 'project_root_markers = [".hg", ".git"]', [".hg", ".git"]),
    ],
)
def test_it_is_spared_the_search_for_a_project_that_begins_where_it_works(
    git: str | None, configured: str, markers: list[str] | None, is_reading: bool
) -> None:
    found = of_adapter(order(read_only=is_reading, walls={"workspace": "/project", "git": git}), configured)
    assert found.get("project_root_markers") == markers


TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
VALUES = st.recursive(
    st.booleans() | st.integers(-(2**60), 2**60) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=40, deadline=None)
@given(value=VALUES)
def test_what_is_set_arrives_as_it_was(value: Any) -> None:
    line = toml(value)
    assert "\n" not in line
    assert tomllib.loads(f"x={line}")["x"] == value

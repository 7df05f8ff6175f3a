"""At stake: a model's arguments are understood or clearly refused; other programs' files are changed where meant."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agentctl
from agentctl.domain import jsontext
from agentctl.errors import COMMANDS, Limited, Next, Refused, UsageError
from agentctl.operations.gathering import Key
from agentctl.tools.agents import SPAWN_AGENT
from agentctl.tools.arguments import read_arguments
from agentctl.tools.definition import Pending, Target, Tool, pending_from
from agentctl.tools.delegation import TASK
from agentctl.tools.hints import _WORDS, told
from agentctl.tools.registry import _CLAUDE, _CODEX, _OF_WORKERS
from agentctl.tools.waiting import WAIT, has_news

TOOLS = (*_CODEX, *_CLAUDE, *_OF_WORKERS)


def read(tool: Tool, **arguments: Any) -> dict[str, Any]:
    return read_arguments(tool.name, tool.schema, tool.synonyms, arguments)


def test_every_name_of_an_argument_is_understood_and_the_first_is_kept() -> None:
    assert read(SPAWN_AGENT, message="go", subagent_type="plan") == {"instruction": "go", "agent_type": "plan"}
    assert read(SPAWN_AGENT, prompt="go", task="go") == {"instruction": "go"}
    assert read(WAIT, targets=["a"], timeout=5) == {"ids": ["a"], "timeout_ms": 5}
    assert read(WAIT, ids=None) == {}


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        (SPAWN_AGENT, {}, "spawn_agent lacks 'instruction'"),
        (SPAWN_AGENT, {"instruction": " "}, "spawn_agent.instruction is empty"),
        (SPAWN_AGENT, {"instruction": "a", "prompt": "b"}, "instruction mean the same, and differ"),
        (SPAWN_AGENT, {"instruction": 3}, "spawn_agent.instruction must be a string, not 3"),
        (SPAWN_AGENT, {"instruction": "a", "max_turns": True}, "max_turns must be an integer, not True"),
        (SPAWN_AGENT, {"instruction": "a", "max_turns": 0}, "max_turns must be from 1 to 100000, not 0"),
        (SPAWN_AGENT, {"instruction": "a", "colour": 1}, "spawn_agent takes no 'colour'"),
        (WAIT, {"timeout_ms": float("nan")}, "timeout_ms must be from 0"),
        (WAIT, {"ids": [1]}, "wait.ids[0] must be a string"),
        (TASK, {"objective": "a", "context": []}, "task.context must be an object"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_reason(tool: Tool, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        read(tool, **arguments)
    assert message in str(raised.value)


def test_arguments_that_are_no_object_are_refused() -> None:
    with pytest.raises(UsageError, match="must be an object"):
        read_arguments("wait", WAIT.schema, {}, ["a"])


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=3)))
def test_no_argument_whatever_raises_anything_else(value: Any) -> None:
    for tool in TOOLS:
        for name in (*tool.properties, *tool.synonyms, "other"):
            with contextlib.suppress(UsageError):
                assert set(read(tool, **{name: value})) <= set(tool.properties)


def test_names_and_synonyms_do_not_collide() -> None:
    names = [name for tool in TOOLS for name in (tool.name, *tool.other_names)]
    assert len(names) == len(set(names))
    for tool in TOOLS:
        assert set(tool.required) <= set(tool.properties), tool.name
        assert not set(tool.synonyms) & set(tool.properties), tool.name
        assert set(tool.synonyms.values()) <= set(tool.properties), tool.name


def test_pending_work_survives_as_a_file() -> None:
    pending = Pending(tool="task", targets=(Target(id="a", key=Key("t", "a-1")),), given={"rows": ["a-1", {"x": None}]})
    assert pending_from(json.loads(json.dumps(pending.to_json()))) == pending


def test_nothing_seen_is_no_news_but_the_end_of_waiting() -> None:
    assert has_news({}, frozenset())


def test_every_next_step_has_words_for_a_terminal_and_for_a_model() -> None:
    source = "".join(file.read_text(encoding="utf-8") for file in Path(agentctl.__file__).parent.rglob("*.py"))
    used = set(re.findall(r'\bNext\(\s*"([^"]+)"', source))
    assert used == set(COMMANDS) == set(_WORDS)


@pytest.mark.parametrize("tools", [{tool.name for tool in _CODEX}, {tool.name for tool in _CLAUDE}, set()])
def test_a_model_is_told_no_command_line_and_no_tool_that_it_lacks(tools: set[str]) -> None:
    every = {tool.name for tool in TOOLS}
    for step in COMMANDS:
        hint = told(Refused("no", hint=Next(step, "a1")), tools).get("hint", "")
        assert "agentctl " not in hint
        assert not set(re.findall(r"[a-z]+_[a-z_]+", hint)) & (every - tools)
    for hint in ("agentctl doctor --fix", "--cwd names another", "give --cwd", "take it out, or agentctl use T"):
        assert "hint" not in told(Refused("no", hint=hint), tools)
    assert told(Refused("no", hint="agentctl list; or deny it"), tools)["hint"] == "deny it"
    assert told(Refused("no", hint="did you mean explore?"), tools)["hint"] == "did you mean explore?"


def test_a_limit_of_the_user_is_for_the_user() -> None:
    answer = told(Limited("too much", hint="agentctl doctor --close-breaker a; raise maxDepth in task.yaml"))
    assert answer == {"error": "too much", "hint": "it is a limit that the user has set: tell them, and do without"}


# -- files of others ---------------------------------------------------------------------------------------------------

KEYS = st.sampled_from(["mcpServers", "agentctl", "a", "x y"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=10,
)
INDENTS = st.sampled_from([None, 1, 2, 4, "\t"])


@given(st.dictionaries(KEYS, VALUES, max_size=4), INDENTS, st.lists(KEYS, min_size=1, max_size=3), VALUES)
def test_a_member_is_set_and_taken_out_again(
    value: dict[str, Any], indent: int | str | None, path: list[str], new: Any
) -> None:
    text = json.dumps(value, indent=indent)
    wanted = json.loads(text)
    inner = wanted
    for key in path[:-1]:
        inner = inner.setdefault(key, {}) if isinstance(inner, dict) else None
    if not isinstance(inner, dict):
        with pytest.raises(jsontext.NotJson):
            jsontext.set_member(text, path, new)
        return
    inner[path[-1]] = new
    changed = jsontext.set_member(text, path, new)
    assert json.loads(changed) == wanted
    del inner[path[-1]]
    assert json.loads(jsontext.remove_member(changed, path)) == wanted


@given(st.lists(VALUES, max_size=4), INDENTS, VALUES)
def test_an_item_is_added_once_and_taken_out_again(items: list[Any], indent: int | str | None, new: Any) -> None:
    text = json.dumps({"z": 1, "p": {"allow": items}}, indent=indent)
    changed = jsontext.add_item(text, ["p", "allow"], new)
    assert jsontext.add_item(changed, ["p", "allow"], new) == changed
    if new not in items:
        assert json.loads(changed)["p"]["allow"] == [*items, new]
        assert json.loads(jsontext.remove_item(changed, ["p", "allow"], new)) == json.loads(text)


def test_the_rest_of_a_file_stays_as_a_person_laid_it_out() -> None:
    text = '{ "b" : [1,2 ,3],\n\n      "mcpServers": {\n         "x": {}\n      }\n}\n'
    changed = jsontext.set_member(text, ["mcpServers", "agentctl"], {"command": "c"})
    for line in text.splitlines():
        assert line in changed.splitlines() or f"{line}," in changed.splitlines()


@pytest.mark.parametrize("text", ['{"a": 1, // why\n}', "[1]", "{", '{"a": 1,}'])
def test_what_is_no_plain_json_is_left_alone(text: str) -> None:
    with pytest.raises(jsontext.NotJson):
        jsontext.set_member(text, ["a"], 2)

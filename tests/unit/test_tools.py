"""At stake: a model's arguments are understood or clearly refused; in other programs' files nothing else changes."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agentctl
from agentctl.adapters.definitions import Origin
from agentctl.domain.agent.agentspec import AgentSpec
from agentctl.domain.names import WorkerId
from agentctl.domain.text import jsontext
from agentctl.errors import COMMANDS, Argument, AtTerminal, Limited, Next, Refused, UsageError, WithArguments
from agentctl.operations.install.agent_files import CLIENTS, edits_for, guidance
from agentctl.operations.trust.definitions import Agent
from agentctl.tools.agents import SEND_INPUT, SPAWN_AGENT
from agentctl.tools.arguments import call_arguments, read_arguments
from agentctl.tools.awaited_worker import Target
from agentctl.tools.definition import Pending, Tool, pending_from
from agentctl.tools.delegation import _ITEM_TOOL, TASK, TASK_PARALLEL
from agentctl.tools.descriptions import instructions
from agentctl.tools.foreign_arguments import not_honoured
from agentctl.tools.hints import _WORDS, error_result
from agentctl.tools.registry import _CLAUDE, _CODEX, _OF_WORKERS, DIALECTS, Toolbox
from agentctl.tools.scope import ScopeSource, Situation
from agentctl.tools.subtasks import subtask_tool, subtask_tools
from agentctl.tools.waiting import WAIT, has_something_new
from agentctl.tools.worker import ASK_USER

TOOLS = (*_CODEX, *_CLAUDE, *_OF_WORKERS)


def read(tool: Tool, **arguments: Any) -> dict[str, Any]:
    return read_arguments(tool.name, tool.checked, tool.synonyms, arguments)


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
        (SPAWN_AGENT, {"instruction": "a", "prompt": "b"}, "instruction mean the same, but differ"),
        (SPAWN_AGENT, {"instruction": 3}, "spawn_agent.instruction must be a string, not 3"),
        (SPAWN_AGENT, {"instruction": "a", "max_turns": True}, "max_turns must be an integer, not true"),
        (SPAWN_AGENT, {"instruction": "a", "max_turns": 0}, "max_turns must be from 1 to 100000, not 0"),
        (SPAWN_AGENT, {"instruction": "a", "colour": 1}, "spawn_agent takes no 'colour'"),
        (WAIT, {"timeout_ms": float("nan")}, "timeout_ms must be from 0"),
        (WAIT, {"ids": [1]}, "wait.ids[0] must be a string"),
        (TASK, {"objective": "a", "context": [1]}, "task.context must be a string or an object"),
        (ASK_USER, {"question": "a", "options": [{"id": 1}]}, "ask_user.options[0].id must be a string, not 1"),
        (ASK_USER, {"question": "a", "options": [{"id": "b", "text": "c"}]}, "ask_user.options[0] takes no 'text'"),
        (TASK_PARALLEL, {"tasks": ["a"] * 1001}, "tasks must have from 1 to 1000 items, not 1001"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_reason(tool: Tool, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        read(tool, **arguments)
    assert message in str(raised.value)


def test_arguments_that_are_no_object_are_refused() -> None:
    with pytest.raises(UsageError, match="must be an object"):
        read_arguments("wait", WAIT.checked, {}, ["a"])


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=3)))
def test_no_argument_whatever_raises_anything_else(value: Any) -> None:
    for tool in TOOLS:
        for name in (*tool.properties, *tool.synonyms, "other"):
            with contextlib.suppress(UsageError):
                assert set(read(tool, **{name: value})) <= set(tool.properties)


#: The tools that take no key, and why none of their calls does harm when it is sent again.
KEYLESS = {
    "wait": "it waits, and an end is told again to whoever asks",
    "list_agents": "it reads",
    "close_agent": "it names the state that is wanted",
    "ask_user": "with question_id it goes on with the question that was asked; without, it is another question",
    "report": "the last progress and the last result count; a note twice is a note twice",
}


def test_each_tool_takes_a_key_or_says_why_it_needs_none() -> None:
    taking = {tool.name for tool in TOOLS if "key" in tool.checked["properties"]}
    if "key" in _ITEM_TOOL.checked["properties"]:
        taking.add(TASK_PARALLEL.name)  # Each of its items takes one.
    assert {tool.name for tool in TOOLS} - taking == KEYLESS.keys()
    assert all("key" in tool.checked["properties"] for tool in subtask_tools(situation()))


def test_names_and_synonyms_do_not_collide() -> None:
    names = [name for tool in TOOLS for name in (tool.name, *tool.other_names)]
    assert len(names) == len(set(names))
    for tool in TOOLS:
        assert set(tool.required) <= set(tool.properties), tool.name
        assert not set(tool.synonyms) & set(tool.properties), tool.name
        assert set(tool.synonyms.values()) <= set(tool.properties), tool.name


# -- the list of tools -------------------------------------------------------------------------------------------------


def situation(*, depth_left: int = 2, is_worker: bool = True) -> Situation:
    names = ("explore", "general", "x" * 64, "x" * 60 + "other")
    agents = [Agent(AgentSpec(name, "Does it."), Origin.SHIPPED, "", [], usable=True) for name in names]
    return Situation("t", 5, depth_left, agents, is_worker)


def in_dialect(dialect: str, **how: Any) -> dict[str, Tool]:
    box = Toolbox(ScopeSource(), dialect)
    return {tool.name: tool for tool in box._tools(situation(**how))}


def schemas_in(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    for inner in (*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])):
        yield from schemas_in(inner)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_schemas_are_such_as_every_provider_takes(dialect: str) -> None:
    """Strict providers too: OpenAI's, Gemini's and Anthropic's rules; there is room for what their clients add."""
    for name, tool in in_dialect(dialect).items():
        assert re.fullmatch(r"[a-zA-Z][a-zA-Z0-9_-]*", name)
        assert len(f"mcp__agentctl__{name}") <= 64
        for number, schema in enumerate(schemas_in(tool.schema)):
            assert set(schema) <= {"type", "description", "enum", "items", "properties", "required"}, name
            assert schema["type"] in {"string", "number", "integer", "boolean", "array", "object"}, "one type"
            assert schema.get("description") or number == 0 or schema["type"] == "object", f"{name}: {schema}"
            assert ("items" in schema) == (schema["type"] == "array")
            assert bool(schema.get("properties")) == (schema["type"] == "object"), "no object without a key"
            assert set(schema.get("required", ())) <= set(schema.get("properties", ()))


@pytest.mark.parametrize("nothing", [None, "", " ", [], {}])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_a_strict_model_leaves_empty_is_left_out(dialect: str, nothing: Any) -> None:
    for tool in in_dialect(dialect).values():
        needed = {name: _given(tool.properties[name]) for name in tool.required}
        rest = {name: nothing for name in tool.properties if name not in needed}
        assert call_arguments(tool, {**needed, **rest}) == needed, tool.name
    item = {"objective": "x", "subagent_type": nothing, "context": nothing}
    assert call_arguments(_ITEM_TOOL, item, "tasks[0]") == {"objective": "x"}


def _given(schema: Any) -> Any:
    return [{"objective": "x"}] if schema["type"] == "array" else "x"


@pytest.mark.parametrize("is_worker", [True, False])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_descriptions_name_only_tools_that_the_dialect_has(dialect: str, is_worker: bool) -> None:
    every = {name for other in DIALECTS for name in in_dialect(other) if "_" in name} | {"create_subtask_*"}
    offered = in_dialect(dialect, is_worker=is_worker)
    texts = [instructions(dialect)]
    for tool in offered.values():
        texts += [tool.describe(situation()), *(str(one.get("description")) for one in schemas_in(tool.schema))]
    named = set(re.findall(r"[a-z]+(?:_[a-z]+)+[_*]*", " ".join(texts))) & every
    assert named <= set(offered) | ({"create_subtask_*"} if dialect in ("subtask", "all") else set())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_who_may_start_nobody_is_told_of_no_tool_that_does(dialect: str) -> None:
    starting = {name for name, tool in in_dialect("all").items() if tool.spawns} | {"create_subtask_*"}
    assert set(re.findall(r"[a-z]+(?:_[a-z]+)+[_*]*", instructions(dialect))) & starting
    assert not set(re.findall(r"[a-z]+(?:_[a-z]+)+[_*]*", instructions(dialect, may_start=False))) & starting


def test_what_holds_for_all_tools_is_said_once() -> None:
    texts = " ".join(tool.describe(situation()) for name, tool in in_dialect("all").items() if name != "wait")
    assert "truncated" not in texts
    assert texts.count("others wait in a queue") == 3, "of each tool that starts several"
    assert "truncated" in instructions("all")


def test_the_agents_of_long_names_have_a_tool_each_that_is_known_by_the_whole_name_too() -> None:
    names = [tool.name for tool in subtask_tools(situation())]
    assert len(set(names)) == 4
    for tool, agent in zip(subtask_tools(situation()), situation().agents, strict=True):
        assert subtask_tool(situation(), tool.name).name == tool.name
        assert subtask_tool(situation(), f"create_subtask_{agent.spec.name}").name == tool.name


@pytest.mark.parametrize("client", CLIENTS)
def test_what_is_installed_teaches_the_tools_that_the_installed_server_offers(client: str, tmp_path: Path) -> None:
    edits = edits_for(client, project=None, hooks=False, environ={"HOME": str(tmp_path)})
    texts = " ".join(repr(edit) for edit in edits)
    (dialect,) = set(re.findall(r"--tools=([a-z]+)", texts))
    every = {name for other in DIALECTS for name in in_dialect(other)}
    words = set(re.findall(r"`([a-z_]+)`", guidance()))
    assert words & every, "it names some"
    assert words & every <= set(in_dialect(dialect, is_worker=False))
    assert guidance().splitlines()[0] in texts


# -- calls as other programs make them ---------------------------------------------------------------------------------


def test_the_call_of_claude_code_is_understood() -> None:
    sent = {"description": "Find cookie", "prompt": "Where?", "subagent_type": "Explore", "model": "haiku",
            "effort": "xhigh", "run_in_background": False, "isolation": "worktree"}  # fmt: skip
    more = {"name": "finder", "team_name": "a", "mode": "plan"}
    assert call_arguments(TASK, {**sent, **more}) == {**call_arguments(TASK, sent), "name": "finder"}
    assert call_arguments(_ITEM_TOOL, {"prompt": "Where?", **more}) == {"objective": "Where?", "name": "finder"}
    assert call_arguments(TASK, sent) == {
        "description": "Find cookie", "objective": "Where?", "subagent_type": "Explore", "model": "haiku",
        "effort": "high", "run_in_background": False, "worktree": True,
    }  # fmt: skip
    assert call_arguments(TASK, {"description": "Find the cookie"}) == {"objective": "Find the cookie"}
    assert not_honoured(call_arguments(TASK, {"prompt": "x", "isolation": "remote"})) == [
        "isolation: remote is not honoured: the agent works here"
    ]


def test_the_calls_of_codex_are_understood() -> None:
    items = [{"type": "text", "text": "look"}, {"type": "local_image", "path": "/a.png"},
             {"type": "mention", "name": "docs", "path": "app://docs"}, {"type": "image", "image_url": "data:" + "x" * 9999}]  # fmt: skip  # noqa: E501
    given = call_arguments(SPAWN_AGENT, {"items": items, "fork_context": True, "reasoning_effort": "minimal"})
    assert given == {
        "instruction": "look\nlocal_image: /a.png\ndocs: app://docs\nimage: (it cannot be passed on here)",
        "fork_context": True, "effort": "low",
    }  # fmt: skip
    assert "fork_context is not honoured" in not_honoured(given)[0]
    assert not_honoured(call_arguments(SPAWN_AGENT, {"message": "x", "fork_context": False})) == []
    assert call_arguments(SEND_INPUT, {"target": "a", "message": "more", "items": items[:1]}) == {
        "id": "a", "message": "more\nlook",
    }  # fmt: skip


def test_pending_work_survives_as_a_file() -> None:
    pending = Pending(
        tool="task", targets=(Target(id="a", key=WorkerId("t", "a-1")),), given={"rows": ["a-1", {"x": None}]}
    )
    assert pending_from(json.loads(json.dumps(pending.to_json()))) == pending


def test_nothing_seen_is_no_news_but_the_end_of_waiting() -> None:
    assert has_something_new({}, frozenset())


def test_every_next_step_has_words_for_a_terminal_and_for_a_model() -> None:
    source = "".join(file.read_text(encoding="utf-8") for file in Path(agentctl.__file__).parent.rglob("*.py"))
    used = set(re.findall(r'\bNext\(\s*"([^"]+)"', source))
    assert used == set(COMMANDS) == set(_WORDS)


@pytest.mark.parametrize("tools", [{tool.name for tool in _CODEX}, {tool.name for tool in _CLAUDE}, set()])
def test_a_model_is_told_no_command_line_and_no_tool_that_it_lacks(tools: set[str]) -> None:
    every = {tool.name for tool in TOOLS}
    for step in COMMANDS:
        hint = error_result(Refused("no", hint=Next(step, "a1")), tools).get("hint", "")
        assert "agentctl " not in hint
        assert not set(re.findall(r"[a-z]+_[a-z_]+", hint)) & (every - tools)
    for hint in (AtTerminal("agentctl doctor --fix"), WithArguments("give ", Argument("cwd"))):
        assert "hint" not in error_result(Refused("no", hint=hint), tools)
    assert error_result(Refused("no", hint=(AtTerminal("agentctl list"), "or deny it")), tools)["hint"] == "deny it"
    assert error_result(Refused("no", hint="did you mean explore?"), tools)["hint"] == "did you mean explore?"


def test_a_limit_of_the_user_is_for_the_user() -> None:
    answer = error_result(Limited("too much", hint="agentctl doctor --close-breaker a; raise maxDepth in task.yaml"))
    assert answer == {"error": "too much", "hint": "the user has set this limit: tell them, and do without"}


# -- files of other programs -------------------------------------------------------------------------------------------

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

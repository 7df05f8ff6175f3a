"""At stake: a sub-agent gets the prompt that was meant, and an error about a wrong item says which one and why."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.errors import UsageError
from agentctl.interfaces.python.spawn_options import SpawnOptions, plain_options
from agentctl.operations.delegate.delegating import Terms, _request, delegated_prompt

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)


@given(st.text(min_size=1), st.dictionaries(st.text(), JSON, min_size=1, max_size=4))
def test_a_prompt_is_the_objective_and_below_it_the_context(objective: str, context: dict[str, Any]) -> None:
    prompt = delegated_prompt(objective, context)
    assert prompt.startswith(f"{objective}\n\nContext:\n")
    assert json.loads(prompt[len(f"{objective}\n\nContext:\n") :]) == context


@given(st.text())
def test_without_a_context_the_prompt_is_the_objective(objective: str) -> None:
    assert delegated_prompt(objective) == delegated_prompt(objective, {}) == objective


def test_an_item_takes_what_it_does_not_say_from_the_terms() -> None:
    terms = Terms(session_id="s", timeout_seconds=7, model="large", cwd="/somewhere")
    request = _request({"objective": "look", "subagent_type": "explore"}, terms, "tasks[0]")
    assert request.work is not None
    assert (request.work.agent, request.work.prompt, request.work.model) == ("explore", "look", "large")
    assert (request.timeout_seconds, request.callers_cwd, request.delegation) == (7, "/somewhere", ("s", "look"))
    own = _request({"objective": "look", "model": "small", "timeout_seconds": 1, "cwd": "/else"}, terms, "tasks[0]")
    assert own.work is not None
    assert (own.work.agent, own.work.model, own.timeout_seconds, own.cwd) == ("general", "small", 1, "/else")


def test_an_item_may_use_the_words_of_a_batch() -> None:
    request = _request({"prompt": "look", "agent": "explore"}, Terms(), "")
    assert request.work is not None
    assert (request.work.agent, request.work.prompt, request.delegation) == ("explore", "look", ("default", "look"))


def test_a_command_is_its_own_objective() -> None:
    request = _request({"argv": ["echo", "a b"]}, Terms(), "")
    assert (request.argv, request.delegation) == (["echo", "a b"], ("default", "echo 'a b'"))


def test_an_unknown_key_is_answered_with_the_keys_of_a_task() -> None:
    with pytest.raises(UsageError) as refused:
        _request({"objective": "x", "subagent_typ": "plan"}, Terms(), "")
    assert refused.value.hint == "did you mean 'subagent_type'?"
    with pytest.raises(UsageError) as refused:
        _request({"objective": "x", "xyz": "plan"}, Terms(), "")
    assert refused.value.message == "unknown key 'xyz'"
    known = str(refused.value.hint).removeprefix("known: ").split(", ")
    assert known[:5] == ["objective", "subagent_type", "context", "label", "argv"]
    assert {"name", "cwd", "timeout_seconds", *SpawnOptions.__annotations__} <= set(known)
    assert {"keep", "queue", "shell"}.isdisjoint(known)


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({}, "objective is missing"),
        ({"objective": "  "}, "objective is missing"),
        ({"objective": 3}, "objective is missing"),
        ({"objective": "x", "context": [1]}, "context must be an object"),
        ({"objective": "x", "context": {"a": {1, 2}}}, "cannot be written as JSON"),
        ({"objective": "x", "prompt": "y"}, "objective and prompt are the same: give one of them"),
        ({"objective": "x", "subagent_type": "a", "agent": "b"}, "subagent_type and agent are the same"),
        ({"objective": "x", "keep": True}, "keep is not for a task"),
        ({"argv": ["true"], "queue": False}, "queue is not for a task"),
        ({"objective": "x", "shell": "true"}, "shell is not for a task"),
        ({"objective": "x", "argv": ["true"], "subagent_type": "plan"}, "give one of them"),
        ({"objective": "x", "argv": []}, "argv is missing"),
        ({"objective": "x", "timeout_seconds": "soon"}, "timeout_seconds must be a number"),
        ({"objective": "x", "colour": "red"}, "unknown key 'colour'"),
    ],
)
def test_an_item_that_cannot_be_meant_says_which_and_why(item: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        _request(item, Terms(), "tasks[3]")
    assert refused.value.message.startswith("tasks[3]: ")
    assert message in refused.value.message


def test_sequences_and_mappings_become_what_json_has() -> None:
    assert plain_options({"after": ("a",), "env": {"A": "1"}, "name": None}) == {"after": ["a"], "env": {"A": "1"}}

"""At stake: Claude Code's end is reported truthfully, it gets no more permissions than ordered, and nothing breaks."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.domain.activity.row import RowType, encode_row
from agentctl.domain.states import Reason
from agentctl.drivers.claude import DRIVER
from agentctl.drivers.dialogue import Note, Progress, Retrying, Say, SessionIs, StopProgram
from tests.claude_lines import ORDER, assistant, feed, outcomes, recorded, result, rows, started, system

TEXT = {"type": "text", "text": "half an ans"}


def api_failure(text: str, **more: Any) -> list[dict[str, Any]]:
    """Return the lines with which the program reports an API error: a message of its own, then the result."""
    message = {"id": "e", "model": "<synthetic>", "content": [{"type": "text", "text": text}]}
    told = {"type": "assistant", "message": message, "parent_tool_use_id": None, "is_api_error_message": True, **more}
    return [told, result(is_error=True, result=text, terminal_reason="api_error")]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([result()], None),
        ([result(stop_reason="refusal")], Reason.REFUSED),
        ([result(stop_reason="refusal", is_error=True)], Reason.REFUSED),
        ([result(stop_reason="max_tokens")], Reason.TRUNCATED),
        ([result(subtype="error_max_turns", is_error=True)], Reason.MAX_TURNS),
        ([result(subtype="error_max_turns")], Reason.MAX_TURNS),
        ([result(subtype="error_max_budget_usd", is_error=True)], Reason.BUDGET),
        ([result(subtype="error_max_structured_output_retries", is_error=True)], Reason.SCHEMA),
        ([{"type": "result"}], Reason.MODEL_ERROR),
        (api_failure("API Error: 400", error="unknown", api_error_status=400), Reason.MODEL_ERROR),
        (api_failure("API Error: 500", error="server_error", api_error_status=500), Reason.MODEL_ERROR),
        (api_failure("API Error: 529", error="server_error", api_error_status=529), Reason.OVERLOADED),
        (api_failure("API Error: 403", api_error_status=403), Reason.AUTH),
        (api_failure("Not logged in · Please run /login", error="authentication_failed"), Reason.AUTH),
        (api_failure("Not logged in · Please run /login"), Reason.AUTH),
        (api_failure("Credit balance is too low", error="billing_error"), Reason.BILLING),
        *(
            (api_failure(f"API Error: {status} · {words}", error="rate_limit", api_error_status=status), Reason.BILLING)
            for status, words in (
                (429, "Your credit balance is too low"),
                (429, "spend limit reached · resets Aug 8"),
                (400, "You have reached your specified API usage limits."),
            )
        ),
        (api_failure("Prompt is too long", error="invalid_request"), Reason.CONTEXT),
        (api_failure("exceeded the output token maximum", error="max_output_tokens"), Reason.TRUNCATED),
        (
            api_failure(
                "API Error: Connection lost mid-response.", error="server_error", api_error="connection_failed"
            ),
            Reason.TRUNCATED,
        ),
        (
            api_failure("API Error: Connection to the API was lost (ECONNRESET).", error="server_error"),
            Reason.MODEL_ERROR,
        ),
        (
            [
                result(
                    subtype="error_during_execution",
                    is_error=True,
                    terminal_reason="aborted_tools",
                    permission_denials=[{"tool_name": "Bash"}],
                )
            ],
            Reason.PERMISSION_DENIED,
        ),
        (
            [result(subtype="error_during_execution", is_error=True, errors=["No conversation found with session ID"])],
            Reason.EXIT_CODE,
        ),
    ],
)
def test_a_result_tells_its_reason(values: list[dict[str, Any]], reason: Reason | None) -> None:
    (outcome,) = outcomes(feed(started(), values))
    assert outcome.reason is reason


def test_an_error_that_the_program_got_over_is_not_its_ending() -> None:
    values = [
        api_failure("API Error: 500", api_error_status=500)[0],
        assistant({"type": "text", "text": "done"}),
        result(),
    ]
    (outcome,) = outcomes(feed(started(), values))
    assert (outcome.reason, outcome.final_message) == (None, "done")


@pytest.mark.parametrize(
    ("code", "lines", "said", "reason"),
    [
        (0, [system("init"), assistant(TEXT)], "", Reason.TRUNCATED),
        (1, [], "Error: Session ID 48765c34 is already in use.", Reason.NOT_STARTED),
        (0, [], "", Reason.NOT_STARTED),
        (143, [system("init")], "", Reason.SIGNAL),
        (1, [], "Invalid API key · Please run /login", Reason.AUTH),
        (-9, [system("init")], "", Reason.SIGNAL),
        (0, [result(), assistant(TEXT)], "", Reason.TRUNCATED),
        (
            0,
            [system("init"), system("background_tasks_changed", tasks=[{"task_id": "t"}]), result()],
            "",
            Reason.TRUNCATED,
        ),
    ],
)
def test_an_end_without_its_result_is_no_success(
    code: int, lines: list[dict[str, Any]], said: str, reason: Reason
) -> None:
    dialogue = started()
    feed(dialogue, lines)
    dialogue.complained(said.encode())
    outcome = dialogue.ended(code)
    assert outcome.reason is reason
    assert said in str(outcome.message)


def test_a_refused_key_stops_it_at_the_first_sign() -> None:
    retry = system("api_retry", attempt=1, max_retries=10, error_status=401, error="authentication_failed")
    actions = feed(started(), [retry])
    assert [action.outcome.reason for action in actions if isinstance(action, StopProgram)] == [Reason.AUTH]


@pytest.mark.parametrize(
    ("status", "word", "reason"),
    [
        (429, "rate_limit", Reason.RATE_LIMITED),
        (529, "overloaded", Reason.OVERLOADED),
        (500, "server_error", Reason.MODEL_ERROR),
        (None, "unknown", Reason.MODEL_ERROR),
    ],
)
def test_a_retry_is_told_and_an_answer_is_progress(status: int | None, word: str, reason: Reason) -> None:
    dialogue = started()
    actions = feed(dialogue, [system("api_retry", attempt=1, max_retries=10, error_status=status, error=word)])
    assert [action.reason for action in actions if isinstance(action, Retrying)] == [reason]
    assert Progress() in feed(dialogue, [assistant(TEXT)])
    assert Progress() not in feed(dialogue, api_failure("API Error: 500"))


def test_an_answer_in_a_form_that_was_asked_for() -> None:
    order = ORDER._replace(output_schema={"type": "object"})
    (good,) = outcomes(feed(started(order), [result(structured_output={"name": "é"})]))
    assert (good.reason, good.final_message) == (None, '{"name": "é"}')
    (bad,) = outcomes(feed(started(order), [result()]))
    assert bad.reason is Reason.SCHEMA


def test_only_files_whose_change_succeeded_are_touched() -> None:
    def write(call: str, path: str, *, is_error: bool) -> list[dict[str, Any]]:
        use = {"type": "tool_use", "id": call, "name": "Write", "input": {"file_path": path, "content": "x"}}
        done = {"type": "tool_result", "tool_use_id": call, "content": "", "is_error": is_error}
        return [assistant(use, message_id=call), {"type": "user", "message": {"content": [done]}}]

    values = [
        *write("1", "a.py", is_error=False),
        *write("2", "b.py", is_error=True),
        *write("3", "a.py", is_error=False),
    ]
    (outcome,) = outcomes(feed(started(), [*values, result()]))
    assert outcome.touched_files == ["a.py"]
    assert outcome.turns_used == 3


# -- how it is started ---------------------------------------------------------------------------------------------


def test_the_command_line_carries_what_was_ordered_and_no_words_of_it() -> None:
    order = ORDER._replace(
        prompt="the prompt",
        instructions="the role",
        session="s",
        model="opus",
        effort="low",
        max_turns=3,
        max_budget_usd=0.5,
    )
    argv = DRIVER.argv(order)
    assert {"--session-id=s", "--model=opus", "--effort=low", "--max-turns=3", "--max-budget-usd=0.5"} <= set(argv)
    assert not [word for word in argv if "the " in word]
    assert "--setting-sources=user" in argv, "a cloned repository brings no hooks, servers and rules"
    first = DRIVER.dialogue(order).begin()
    assert first[0] == SessionIs("s", "opus")
    assert "the role" in str(first[1])
    assert "--resume=r" in DRIVER.argv(order._replace(resume="r"))
    assert "--session-id=s" not in DRIVER.argv(order._replace(resume="r"))


@pytest.mark.parametrize("tools", [None, ["Read", "Bash", "Write", "mcp__x__write", "Task"]])
def test_a_read_only_agent_is_offered_nothing_that_writes(tools: list[str] | None) -> None:
    argv = DRIVER.argv(ORDER._replace(read_only=True, tools=tools, mcp_servers={"x": {"command": "y"}}))
    (offered,) = [word.partition("=")[2].split(",") for word in argv if word.startswith("--tools=")]
    assert not {"Bash", "Write", "Edit", "NotebookEdit", "Task", "Agent", "Skill"} & set(offered)
    assert "--strict-mcp-config" in argv
    assert "--disable-slash-commands" in argv
    assert not [word for word in argv if word.startswith("--mcp-config")]


def test_the_only_tools_are_offered_and_their_servers() -> None:
    order = ORDER._replace(tools=["Read", "Bash(git *)"], mcp_servers={"x": {"command": "y"}})
    argv = DRIVER.argv(order)
    assert "--tools=Read,Bash" in argv
    assert "--strict-mcp-config" in argv
    (config,) = [word.partition("=")[2] for word in argv if word.startswith("--mcp-config=")]
    assert json.loads(config) == {"mcpServers": {"x": {"command": "y"}}}


def test_it_does_not_take_itself_for_a_part_of_another_one() -> None:
    given_ = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "s", "CLAUDE_CODE_OAUTH_TOKEN": "t", "HTTPS_PROXY": "p"}
    environ = DRIVER.environ(ORDER, given_)
    assert environ.keys() & given_.keys() == {"CLAUDE_CODE_OAUTH_TOKEN", "HTTPS_PROXY"}


# -- whatever it prints --------------------------------------------------------------------------------------------

SEEDS = [value for path in ("subagent", "duplex-question", "duplex-ask-allow", "error-429") for value in recorded(path)]


def words_in(value: Any) -> set[str]:
    """Return the keys and short texts of the recordings: random lines of these words get far into the reader."""
    if isinstance(value, dict):
        return set(value).union(*map(words_in, value.values()))
    if isinstance(value, list):
        return set().union(*map(words_in, value))
    return {value} if isinstance(value, str) and len(value) < 30 else set()


WORDS = st.sampled_from(sorted(words_in(SEEDS)))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | WORDS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=6),
    max_leaves=20,
)


def check(lines: list[bytes]) -> None:
    """Check that nothing raises, every row can be written, and everything sent is one line of JSON."""
    dialogue = started()
    actions = [action for line in lines for action in dialogue.received(line)]
    actions += [*dialogue.answered("r1", "allow"), *dialogue.answered("r1#0", "1"), *dialogue.interrupted()]
    for action in actions:
        if isinstance(action, Note):
            assert encode_row(action.row, "now").endswith(b"\n")
        if isinstance(action, Say):
            json.loads(action.data)
            assert action.data.count(b"\n") == 1
    json.dumps(dialogue.ended(0).usage)


@given(st.lists(VALUES, max_size=6))
def test_any_json_is_survived(values: list[Any]) -> None:
    check([json.dumps(value).encode() for value in values])


@given(st.lists(st.binary(max_size=40), max_size=4))
def test_any_bytes_are_survived(lines: list[bytes]) -> None:
    check(lines)


@given(st.randoms(use_true_random=False), VALUES)
def test_recordings_with_anything_in_any_place_are_survived(chance: random.Random, value: Any) -> None:
    lines = [json.dumps(_mutated(chance.choice(SEEDS), value, chance)).encode() for _ in range(8)]
    check(lines)


def _mutated(seed: Any, value: Any, chance: random.Random) -> Any:
    """Return a copy in which one value, at a random place, is replaced."""
    if not isinstance(seed, (dict, list)) or not seed or chance.random() < 0.1:
        return value
    keys = list(seed) if isinstance(seed, dict) else range(len(seed))
    key, copy = chance.choice(list(keys)), seed.copy()
    copy[key] = _mutated(seed[key], value, chance)
    return copy


def test_lines_that_nobody_nests_so_deeply() -> None:
    check(
        [
            b"[" * 100_000,
            b'{"type":' * 5000,
            b'{"type":"assistant","message":' + b'{"content":[' * 500 + b"]}" * 500 + b"}",
        ]
    )


def test_what_is_not_known_is_counted_and_told() -> None:
    values = [{"type": "new"}, {"type": "new"}, system("newer"), assistant({"type": "newest"}), result(field=1)]
    told = [row for row in rows(feed(started(), values), RowType.NOTE) if row.id == "unknown"]
    assert [row.text for row in told] == ["block newest (1), field field (1), line new (2), system newer (1)"]


def test_long_texts_are_cut_and_say_so() -> None:
    use = {"type": "tool_use", "id": "c", "name": "Write", "input": {"content": "x" * 5_000_000, "file_path": "a"}}
    done = {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "y" * 5_000_000}]}
    start, end = rows(feed(started(), [assistant(use), {"type": "user", "message": {"content": [done]}}]), RowType.TOOL)
    assert len(encode_row(start, "now")) < 5000
    assert len(encode_row(end, "now")) < 5000
    assert str(end.text).endswith("[cut: 5000000 characters]")

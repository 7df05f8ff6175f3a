"""At stake: the `codex` driver understands what the real program sends, and answers it correctly."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentctl.domain.activity.row import Phase, Row, RowType, encode_row
from agentctl.domain.agent.permissions import answer_by
from agentctl.domain.question import ALLOW, ALLOW_ALWAYS, DENY, EVERYTHING, in_one_line, offered, question_within
from agentctl.domain.states import Reason
from agentctl.drivers.codex import DRIVER
from agentctl.drivers.codex.dialogue import CodexDialogue
from agentctl.drivers.codex.errors import turn_error_reason
from agentctl.drivers.dialogue import (
    Action,
    AgentOutcome,
    Ask,
    Finished,
    HangUp,
    Progress,
    Retrying,
    Say,
    SessionIs,
    StopProgram,
    Withdraw,
)
from agentctl.drivers.order import OWN_PERMISSIONS, Order
from agentctl.worker_programs.agent_host.host_questions import question_for
from tests.actions import Recorded

RECORDINGS = Path(__file__).parent.parent / "recordings" / "codex"
ROOT, CHILD = "root-thread", "child-thread"
Message = dict[str, Any]
#: What Codex answers of when it asks, and whom, to an order without rules.
ASKS = {"approvalPolicy": "on-request", "approvalsReviewer": "user"}
#: What an end says that a newer Codex may not have.
NEEDED = "agentctl needs Codex 0.146.0 or newer: npm install -g @openai/codex"
ASK_ALL = [{"tool": "*", "pattern": "*", "answer": "ask"}]


def order(prompt: str = "do it", **more: Any) -> Order:
    return Order(driver="codex", program="codex", agent="general", prompt=prompt, cwd="/project", **more)


def rows_of(name: str) -> list[Message]:
    return [json.loads(line) for line in (RECORDINGS / f"{name}.jsonl").read_text().splitlines()]


class Conversation(Recorded):
    """A dialogue whose actions are recorded; questions are answered at once, if there is an answer."""

    def __init__(self, given_order: Order, answer: str | None = None) -> None:
        super().__init__()
        self.dialogue = CodexDialogue(given_order)
        self.answer = answer
        self.said: deque[Message] = deque()
        self.do(self.dialogue.begin())

    def do(self, actions: Iterable[Action]) -> list[Action]:
        actions = list(actions)
        for action in actions:
            self.actions.append(action)
            if isinstance(action, Say):
                message = json.loads(action.data)
                assert message.pop("jsonrpc") == "2.0"  # Codex itself leaves it out, as do the recordings.
                self.said.append(message)
            if isinstance(action, Ask) and self.answer is not None:
                self.do(self.dialogue.answered(action.key, self.answer))
        return actions

    def hear(self, message: Any) -> list[Action]:
        return self.do(self.dialogue.received(json.dumps(message).encode()))

    def told(self, method: str, **params: Any) -> list[Action]:
        return self.hear({"method": method, "params": params})

    def begun(self) -> Conversation:
        """Receive the messages that thread and turn have begun."""
        self.hear({"id": 1, "result": {}})
        self.hear({"id": 2, "result": {"thread": {"id": ROOT}, "model": "m", **ASKS}})
        self.told("turn/started", threadId=ROOT, turn={"id": "t1"})
        self.said.clear()
        return self

    def completed(self, thread: str = ROOT, status: str = "completed", **turn: Any) -> list[Action]:
        return self.told("turn/completed", threadId=thread, turn={"id": "t1", "status": status, **turn})


def held(name: str, given_order: Order, answer: str | None = None) -> Conversation:
    """Replay a recorded conversation: the driver must send the recorded messages, at the same places."""
    talk = Conversation(given_order, answer)
    for row in rows_of(name):
        message = row["msg"]
        if row["dir"] == "out":
            talk.hear(message)
            continue
        if not talk.said:
            talk.do(_from_outside(talk.dialogue, message))
        assert talk.said.popleft() == message
    return talk


def _from_outside(dialogue: CodexDialogue, message: Message) -> Sequence[Action]:
    """Repeat what made the driver send this message: a person interrupted, or sent a message."""
    if message["method"] == "turn/interrupt":
        return dialogue.interrupted()
    return dialogue.told(message["params"]["input"][0]["text"], interrupt=message["method"] == "turn/steer")


PATCH = (
    'CALL exec_command {"cmd": "apply_patch <<\'EOF\'\\n*** Begin Patch\\n*** Add File: new.txt\\n+hi\\n'
    '*** Update File: old.txt\\n*** Move to: moved.txt\\n@@\\n-a\\n+b\\n*** End Patch\\nEOF\\n"}'
)
MCP: dict[str, Any] = {"writer": {"command": "python3", "args": ["mcpw.py"]}}
# name, order, answer to its question; reason, tool rounds, and a part of the message or final text
HELD: list[tuple[str, Order, str | None, Reason | None, int, str]] = [
    ("parallel", order("SCENARIO:parallel=3"), None, None, 1, "Done: parallel after 3"),
    ("subagent", order("SCENARIO:subagent"), None, None, 2, "Done: subagent"),
    ("subagent-asks", order('CALL spawn_agent {"message": "SCENARIO:ask"}'), "decline", None, 1, "agent_id"),
    ("two-turns", order("SCENARIO:tool"), None, None, 1, "I recall 2"),
    ("steer", order("SCENARIO:slow=6"), None, None, 0, "I recall 2"),
    ("patch-accept", order(PATCH, permissions=ASK_ALL), "accept", None, 1, "moved.txt"),
    ("mcp-decline", order('CALL put_it {"x":"1"}', mcp_servers=MCP), "decline", None, 1, "user rejected"),
    ("read-only", order("SCENARIO:run=touch escaped.txt", read_only=True), None, None, 1, "Done: run"),
    ("approval-cancel", order("SCENARIO:ask"), "cancel", Reason.PERMISSION_DENIED, 1, "stop the agent"),
    ("max-turns", order("SCENARIO:long=6", max_turns=2), None, Reason.MAX_TURNS, 2, "2 turns"),
    ("error-401", order("SCENARIO:error=401"), None, Reason.AUTH, 0, "401"),
    ("no-key", order("SCENARIO:text"), None, Reason.AUTH, 0, "Missing environment variable"),
    ("error-429", order("SCENARIO:error=429"), None, Reason.RATE_LIMITED, 0, "429"),
    ("error-500", order("SCENARIO:error=500"), None, Reason.MODEL_ERROR, 0, "high demand"),
    ("cut", order("SCENARIO:cut"), None, Reason.TRUNCATED, 0, "stream closed"),
]


@pytest.mark.parametrize(("name", "given_order", "answer", "reason", "rounds", "text"), HELD)
def test_a_recorded_conversation_is_held_and_its_end_told(
    name: str, given_order: Order, answer: str | None, reason: Reason | None, rounds: int, text: str
) -> None:
    talk = held(f"app-server-{name}", given_order, answer)
    outcome = talk.outcome
    assert (outcome.reason, outcome.turns_used) == (reason, rounds)
    assert text in ((outcome.final_message if reason is None else outcome.message) or "")
    assert outcome.session == talk.of(SessionIs)[0].session
    assert not talk.said


def test_the_session_is_told_before_the_first_prompt() -> None:
    talk = held("app-server-parallel", order("SCENARIO:parallel=3"))
    session = next(at for at, action in enumerate(talk.actions) if isinstance(action, SessionIs))
    prompt = next(
        at for at, action in enumerate(talk.actions) if isinstance(action, Say) and b"turn/start" in action.data
    )
    assert session < prompt


def test_an_approval_is_asked_with_all_that_a_person_needs() -> None:
    talk = Conversation(order(), answer="accept")
    for row in rows_of("app-server-approval-accept"):
        if row["dir"] == "out":
            talk.hear(row["msg"])
    (ask,) = talk.of(Ask)
    assert (ask.tool, ask.asked_by, ask.arguments["reason"]) == ("shell", None, "May I?")
    assert answer_by([{"tool": "shell", "pattern": "touch *", "answer": "allow"}], ask.tool, ask.arguments) == "allow"
    assert ask.question == "May I?"
    names = ["accept", "decline", "cancel"]
    assert [name for name, _ in ask.options][:3] == names
    assert [ask.means[name] for name in names] == [ALLOW, DENY, DENY]
    assert {"id": 0, "result": {"decision": "accept"}} in talk.said
    assert talk.outcome.usage == {"input": 22228 - 5601, "output": 40, "cached": 5601}
    tools = [(row.phase, row.status, row.name) for row in talk.rows if row.type is RowType.TOOL]
    assert tools == [(Phase.START, "running", "shell"), (Phase.END, "completed", "shell")]


def test_what_is_offered_beyond_the_usual_answers_counts_as_allowed_for_good() -> None:
    amendment = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["rm"]}}
    offered = ["accept", "acceptForSession", amendment, "somethingNew", "decline"]
    talk = Conversation(order()).begun()
    params = {"threadId": ROOT, "itemId": "i", "command": "rm x", "availableDecisions": offered}
    talk.hear({"id": 7, "method": "item/commandExecution/requestApproval", "params": params})
    (ask,) = talk.of(Ask)
    assert ask.means == {
        "accept": ALLOW, "acceptForSession": ALLOW_ALWAYS, "acceptWithExecpolicyAmendment": ALLOW_ALWAYS,
        "somethingNew": ALLOW_ALWAYS, "decline": DENY, "cancel": DENY,
    }  # fmt: skip


def test_a_question_is_answered_in_codex_words() -> None:
    talk = Conversation(order(), answer="blue")
    for row in rows_of("app-server-question"):
        if row["dir"] == "out":
            talk.hear(row["msg"])
    (ask,) = talk.of(Ask)
    assert (ask.question, [name for name, _ in ask.options], ask.other) == ("Which colour?", ["red", "blue"], True)
    assert {"id": 0, "result": {"answers": {"stub": {"answers": ["blue"]}}}} in talk.said
    assert talk.outcome.turns_used == 1
    questions = [row.status for row in talk.rows if row.type is RowType.QUESTION]
    assert questions == ["running", "answered"]


def test_a_sub_agent_has_its_own_rows_each_once_and_its_tokens_count() -> None:
    talk = held("app-server-subagent", order("SCENARIO:subagent"))
    agents = [row for row in talk.rows if row.type is RowType.AGENT]
    assert [(row.phase, row.status, row.parent) for row in agents] == [
        (Phase.START, "running", None),
        (Phase.END, "completed", None),
    ]
    assert agents[0].name == (agents[0].detail or {})["prompt"] == "Report back. SCENARIO:tool"
    child = agents[0].id
    nested = [(row.type, row.phase) for row in talk.rows if row.parent == child and row.type is not RowType.USAGE]
    assert nested == [
        (RowType.MESSAGE, Phase.END),
        (RowType.TOOL, Phase.START),
        (RowType.TOOL, Phase.END),
        (RowType.MESSAGE, Phase.END),
    ]
    last = {row.id: row.detail for row in talk.rows if row.type is RowType.USAGE}
    assert len(last) == 2
    sums = {key: sum((detail or {})[key] for detail in last.values()) for key in ("input", "output", "cached")}
    assert talk.outcome.usage == sums
    assert not [row for row in talk.rows if row.name == "spawnAgent"]


def test_the_end_waits_for_a_sub_agent_that_works_on() -> None:
    talk = Conversation(order()).begun()
    spawn: Message = {"type": "collabAgentToolCall", "id": "c", "tool": "spawnAgent", "status": "completed"}
    spawn |= {"senderThreadId": ROOT, "receiverThreadIds": [CHILD], "prompt": "look"}
    talk.told("item/completed", threadId=ROOT, turnId="t1", item=spawn)
    talk.completed()
    assert not talk.of(Finished)
    talk.told("turn/started", threadId=CHILD, turn={"id": "c1"})
    talk.completed(CHILD, "failed")
    assert talk.outcome.reason is None
    assert [row.status for row in talk.rows if row.type is RowType.AGENT] == ["running", "failed"]


def spawned(talk: Conversation, *, is_done: bool, told: str = "look\nfor bugs") -> None:
    """Have the agent tell that it starts, or has started, a sub-agent."""
    spawn: Message = {"type": "collabAgentToolCall", "id": "c", "tool": "spawnAgent", "prompt": told}
    spawn |= {"senderThreadId": ROOT, "receiverThreadIds": [CHILD]}
    talk.told(f"item/{'completed' if is_done else 'started'}", threadId=ROOT, turnId="t1", item=spawn)


def heard(talk: Conversation, *texts: str) -> None:
    """Have the sub-agent tell which messages it has got."""
    for number, text in enumerate(texts):
        said: Message = {"type": "userMessage", "id": f"u{number}", "content": [{"type": "text", "text": text}]}
        talk.told("item/completed", threadId=CHILD, turnId="c1", item=said)


def test_a_sub_agent_that_was_known_without_a_name_gets_it_with_its_arguments() -> None:
    talk = Conversation(order()).begun()
    talk.told("turn/started", threadId=CHILD, turn={"id": "c1"})
    spawned(talk, is_done=False)
    spawned(talk, is_done=True)
    assert [(row.phase, row.name, row.detail) for row in talk.rows if row.type is RowType.AGENT] == [
        (Phase.START, None, None),
        (Phase.PROGRESS, "look", {"prompt": "look\nfor bugs"}),
    ]


@pytest.mark.parametrize("is_told_first", [True, False])
def test_only_the_prompt_of_a_sub_agent_is_left_out_of_what_it_is_told(*, is_told_first: bool) -> None:
    talk = Conversation(order()).begun()
    spawned(talk, is_done=False, told="go on")
    if is_told_first:
        spawned(talk, is_done=True, told="go on")
    heard(talk, "go on")
    spawned(talk, is_done=True, told="go on")
    heard(talk, "go on", "stop")
    assert [row.text for row in talk.rows if row.name == "user" and row.parent == CHILD] == ["go on", "stop"]


def test_a_sub_agents_question_names_it() -> None:
    talk = held("app-server-subagent-asks", order('CALL spawn_agent {"message": "SCENARIO:ask"}'), "decline")
    (agent, _) = [row for row in talk.rows if row.type is RowType.AGENT]
    assert [ask.asked_by for ask in talk.of(Ask)] == [agent.id]
    assert "denied" in [row.status for row in talk.rows if row.type is RowType.TOOL and row.parent == agent.id]


def test_an_interrupt_while_a_sub_agent_alone_works_is_no_natural_end() -> None:
    talk = Conversation(order()).begun()
    talk.told("turn/started", threadId=CHILD, turn={"id": "c1"})
    talk.completed()
    assert list(talk.do(talk.dialogue.interrupted())) == [HangUp()]
    talk.completed(CHILD)
    assert not talk.of(Finished)
    assert talk.dialogue.ended(0).reason is Reason.SIGNAL


def resumed(**more: Any) -> Conversation:
    rows = rows_of("app-server-resume")
    (resume,) = [row["msg"] for row in rows if row["msg"].get("method") == "thread/resume"]
    return held("app-server-resume", order("SCENARIO:recall", resume=resume["params"]["threadId"], **more))


def test_a_resumed_run_counts_its_own_tokens_alone() -> None:
    talk = resumed()
    assert talk.outcome.usage == {"input": 5728, "output": 13, "cached": 5727}
    assert "I recall 3" in (talk.outcome.final_message or "")


def test_tokens_of_a_later_attempt_are_not_taken_for_those_of_the_first() -> None:
    first, later = (
        {row.id for row in resumed(earlier_attempts=earlier).rows if row.type is RowType.USAGE} for earlier in (0, 1)
    )
    assert first
    assert not first & later


def test_whoever_may_only_read_is_kept_inside_the_sandbox() -> None:
    talk = held("app-server-read-only", order("SCENARIO:run=touch escaped.txt", read_only=True))
    params = next(row["msg"]["params"] for row in rows_of("app-server-read-only") if row["msg"].get("id") == 3)
    assert (params["approvalPolicy"], params["permissions"]) == ("never", "agentctl-read-only")
    assert "deny" in params["config"]["permissions.agentctl-read-only"]["filesystem"].values()
    assert params["config"]["mcp_servers"]["writer"]["enabled"] is False
    assert next(row for row in talk.rows if row.type is RowType.TOOL and row.phase is Phase.END).status == "failed"
    request = {"threadId": talk.outcome.session, "command": "touch a"}
    talk.said.clear()
    talk.hear({"id": 9, "method": "item/commandExecution/requestApproval", "params": request})
    assert list(talk.said) == [{"id": 9, "result": {"decision": "decline"}}]
    assert not talk.of(Ask)
    assert "features.apps=false" in DRIVER.argv(order(read_only=True))


@pytest.mark.parametrize(
    ("git", "markers", "looks"),
    [
        ("/project/.git", [".git"], False),
        (None, [".git"], False),
        ("/.git", [".git"], True),
        ("/project/.git", [".hg", ".git"], True),
        ("/project/.git", None, True),
    ],
)
def test_codex_is_spared_the_search_for_a_project_that_begins_where_its_reader_works(
    git: str | None, markers: list[str] | None, looks: bool
) -> None:
    reader = Conversation(order(read_only=True, walls={"workspace": "/project", "git": git}))
    reader.hear({"id": 1, "result": {}})
    reader.hear({"id": 2, "result": {"config": {"project_root_markers": markers}}})
    config = reader.said[-1]["params"]["config"]
    assert config.get("project_root_markers", "as configured") == ("as configured" if looks else [])


@pytest.mark.parametrize(
    ("answers", "policy", "read_only_policy"),
    [
        ([], "on-request", "never"),
        (["allow"], "on-request", "never"),
        (["ask"], "untrusted", "never"),
        (["deny"], "untrusted", "untrusted"),
        (["ask", "allow"], "untrusted", "never"),
        (["deny", "allow"], "untrusted", "untrusted"),
        (["allow", "deny"], "on-request", "never"),
        (["own"], None, "never"),
    ],
)
def test_rules_that_say_no_are_asked_about(answers: list[str], policy: str | None, read_only_policy: str) -> None:
    """The last rule is for every call; what comes after one that is for every call counts for nothing."""
    rules = [{"tool": "*", "pattern": "*", "answer": answer} for answer in answers]
    if len(rules) > 1 and answers[0] != "allow":
        rules[0]["tool"] = "shell"
    params = Conversation(order(permissions=rules)).said[2]["params"]
    assert params.get("approvalPolicy") == policy
    assert params.get("approvalsReviewer") == (None if policy is None else "user")
    reader = Conversation(order(permissions=rules, read_only=True))
    reader.hear({"id": 2, "result": {"config": {}}})
    assert reader.said[-1]["params"]["approvalPolicy"] == read_only_policy


@pytest.mark.parametrize(
    ("told", "named"),
    [
        ({"approvalPolicy": "never"}, "approvalPolicy is never, not on-request"),
        ({"approvalPolicy": {"granular": {"rules": False}}}, 'approvalPolicy is {"granular"'),
        ({"approvalPolicy": None}, "approvalPolicy is null"),
        ({"approvalsReviewer": "auto_review"}, "approvalsReviewer is auto_review, not user"),
    ],
)
def test_a_thread_that_does_not_ask_as_ordered_is_not_begun(told: Message, named: str) -> None:
    talk = Conversation(order())
    talk.hear({"id": 1, "result": {}})
    talk.hear({"id": 2, "result": {"thread": {"id": ROOT}, **ASKS, **told}})
    (stop,) = talk.of(StopProgram)
    assert stop.outcome.reason is Reason.NOT_STARTED
    assert NEEDED not in stop.outcome.message
    assert named in str(stop.outcome.message)
    assert OWN_PERMISSIONS in str(stop.outcome.message)
    assert not [said for said in talk.said if said.get("method") == "turn/start"]


#: What Codex tells of a thread with the profile of an agent that may only read, and of one that may write.
READS = {
    "approvalPolicy": "never",
    "approvalsReviewer": "user",
    "activePermissionProfile": {"id": "agentctl-read-only", "extends": None},
}
WRITES = {**ASKS, "activePermissionProfile": {"id": "agentctl", "extends": ":workspace"}}
READING = {"type": "readOnly", "networkAccess": False}
WRITING = {"type": "workspaceWrite", "writableRoots": [], "networkAccess": False}
ALL = {"type": "dangerFullAccess"}
WALLS: Message = {"workspace": "/project", "closed": ["/project/.agentctl"]}
OWN = [{"tool": "*", "pattern": "*", "answer": "own"}]
READER, WRITER = order(read_only=True), order(walls=WALLS)
#: order, what is told otherwise than ordered, the sandbox that is told; what the message names, whether `own` helps
OTHERS: list[tuple[Order, Message, Message | None, str, bool]] = [
    (WRITER, {"approvalPolicy": "never"}, WRITING, "approvalPolicy is never, not on-request", True),
    (WRITER, {"activePermissionProfile": {"id": ":workspace"}}, WRITING, "profile is :workspace, not agentctl", False),
    (WRITER, {"activePermissionProfile": None}, WRITING, "profile is null, not agentctl", False),
    (WRITER, {}, ALL, "sandbox is dangerFullAccess", False),
    (WRITER, {}, {**WRITING, "networkAccess": True}, "sandbox has the network", False),
    (WRITER, {}, None, "sandbox is null", False),
    (WRITER._replace(permissions=OWN), {"activePermissionProfile": {"id": "x"}}, WRITING, "profile is x", False),
    (READER, {"approvalPolicy": "on-request"}, READING, "approvalPolicy is on-request, not never", False),
    (READER, {"activePermissionProfile": {"id": "agentctl"}}, READING, "profile is agentctl, not", False),
    (READER, {}, WRITING, "sandbox is workspaceWrite, not readOnly", False),
    (READER, {}, {**READING, "networkAccess": True}, "sandbox has the network", False),
    (READER._replace(permissions=OWN), {}, ALL, "sandbox is dangerFullAccess", False),
    (order(), {}, ALL, "sandbox is dangerFullAccess", False),
]


def told_by(one: Order) -> Message:
    """Return what is told of the thread of an order, without its sandbox."""
    return READS if one.read_only else WRITES if one.walls else ASKS


def opened(one: Order, sandbox: Message | None, **told: Any) -> Conversation:
    """Open a conversation whose thread is told so."""
    talk = Conversation(one)
    talk.hear({"id": 1, "result": {}})
    if told_by(one) is not ASKS:
        talk.hear({"id": 2, "result": {"config": {}}})
    answer = {"thread": {"id": ROOT}, **told_by(one), "sandbox": sandbox, **told}
    talk.hear({"id": 2 if told_by(one) is ASKS else 3, "result": answer})
    return talk


@pytest.mark.parametrize(("given_order", "told", "sandbox", "named", "own_helps"), OTHERS)
def test_a_thread_that_is_not_opened_as_ordered_is_not_begun(
    given_order: Order, told: Message, sandbox: Message | None, named: str, own_helps: bool
) -> None:
    talk = opened(given_order, sandbox, **told)
    (stop,) = talk.of(StopProgram)
    assert (stop.outcome.reason, NEEDED in stop.outcome.message) == (Reason.NOT_STARTED, False)
    assert named in str(stop.outcome.message)
    assert (OWN_PERMISSIONS in str(stop.outcome.message)) == own_helps
    assert "another driver" in str(stop.outcome.message) or own_helps
    assert not [said for said in talk.said if said.get("method") == "turn/start"]


@pytest.mark.parametrize("thread", [ROOT, CHILD])
@pytest.mark.parametrize(("given_order", "told", "sandbox", "named", "own_helps"), OTHERS)
def test_a_thread_that_is_changed_from_what_was_ordered_is_stopped(
    given_order: Order, told: Message, sandbox: Message | None, named: str, own_helps: bool, thread: str
) -> None:
    as_ordered = READING if given_order.read_only else WRITING
    talk = opened(given_order, as_ordered)
    assert [said for said in talk.said if said.get("method") == "turn/start"]
    talk.told(
        "thread/settings/updated", threadId=thread, threadSettings={**told_by(given_order), "sandboxPolicy": as_ordered}
    )
    assert not talk.of(StopProgram)
    changed = {**told_by(given_order), "sandboxPolicy": sandbox, **told}
    talk.told("thread/settings/updated", threadId=thread, threadSettings=changed)
    (stop,) = talk.of(StopProgram)
    assert stop.outcome.reason is Reason.PERMISSION_DENIED
    assert talk.dialogue.ended(0).reason is Reason.PERMISSION_DENIED
    assert named in str(stop.outcome.message)
    assert (OWN_PERMISSIONS in str(stop.outcome.message)) == own_helps


def test_a_network_that_the_person_has_configured_is_as_ordered() -> None:
    talk = Conversation(WRITER)
    talk.hear({"id": 1, "result": {}})
    talk.hear({"id": 2, "result": {"config": {"sandbox_workspace_write": {"network_access": True}}}})
    sandbox = {**WRITING, "networkAccess": True}
    talk.hear({"id": 3, "result": {"thread": {"id": ROOT}, **WRITES, "sandbox": sandbox}})
    assert not talk.of(StopProgram)


def test_an_older_codex_that_tells_no_profile_is_too_old() -> None:
    told = {name: value for name, value in WRITES.items() if name != "activePermissionProfile"}
    talk = Conversation(WRITER)
    talk.hear({"id": 1, "result": {}})
    talk.hear({"id": 2, "result": {"config": {}}})
    talk.hear({"id": 3, "result": {"thread": {"id": ROOT}, **told, "sandbox": WRITING}})
    (stop,) = talk.of(StopProgram)
    assert NEEDED in stop.outcome.message


def test_where_the_persons_own_settings_decide_no_answer_is_another_one() -> None:
    own = [{"tool": "*", "pattern": "*", "answer": "own"}]
    talk = Conversation(order(permissions=own))
    talk.hear({"id": 1, "result": {}})
    talk.hear({"id": 2, "result": {"thread": {"id": ROOT}, "approvalPolicy": "never", "approvalsReviewer": "x"}})
    assert not talk.of(StopProgram)


@pytest.mark.parametrize(("answered", "is_stopped"), [("/w/home", False), ("/home/me/.codex", True), (None, True)])
def test_a_codex_with_other_settings_than_those_that_it_was_given_is_stopped(
    answered: str | None, is_stopped: bool
) -> None:
    talk = Conversation(order(home={"variable": "CODEX_HOME", "own": "/w/home", "persons": "/home/me/.codex"}))
    talk.hear({"id": 1, "result": {"codexHome": answered}})
    assert bool(talk.of(StopProgram)) == is_stopped
    # One that does not say it is an older one.
    told = [NEEDED in stop.outcome.message for stop in talk.of(StopProgram)]
    assert told == ([answered is None] if is_stopped else [])


def test_the_databases_of_another_home_are_not_passed_on() -> None:
    given = {"CODEX_SQLITE_HOME": "/d", "CODEX_HOME": "/w/home"}
    assert DRIVER.environ(order(home={"own": "/w/home"}), given) == {"CODEX_HOME": "/w/home"}
    assert DRIVER.environ(order(), given) == given


def test_the_usual_home_is_the_same_account_by_its_name() -> None:
    assert DRIVER.account is not None
    usual = DRIVER.account({"HOME": "/home/me"}, lambda _: b"")
    assert usual == DRIVER.account({"HOME": "/home/me", "CODEX_HOME": "/home/me/.codex"}, lambda _: b"")
    assert usual != DRIVER.account({"HOME": "/home/me", "CODEX_HOME": "/other"}, lambda _: b"")


def test_a_request_that_is_not_known_is_refused_at_once_and_noted() -> None:
    talk = Conversation(order()).begun()
    talk.hear({"id": 7, "method": "item/tool/call", "params": {"threadId": ROOT}})
    assert [(said["id"], said["error"]["code"]) for said in talk.said] == [(7, -32601)]
    assert "item/tool/call" in (talk.rows[-1].text or "")


def test_what_is_not_known_is_counted_and_told_at_the_end() -> None:
    talk = Conversation(order()).begun()
    talk.do(talk.dialogue.received(b"\xff no JSON"))
    talk.told("planet/aligned")
    talk.told("planet/aligned")
    talk.told("item/started", threadId=ROOT, item={"type": "dream", "id": "d"})
    talk.hear({"method": "warning", "params": {"message": "hm"}, "mood": "blue"})
    talk.completed()
    assert next(row.detail for row in talk.rows if row.id == "unknown") == {
        "line that is not a JSON object": 1,
        "notification planet/aligned": 2,
        "item dream": 1,
        "field mood": 1,
    }


def test_an_interrupt_takes_back_what_is_open_and_then_hangs_up() -> None:
    talk = Conversation(order()).begun()
    talk.hear({"id": 0, "method": "item/fileChange/requestApproval", "params": {"threadId": ROOT, "itemId": "f"}})
    talk.do(talk.dialogue.interrupted())
    assert talk.of(Withdraw) == [Withdraw("0")]
    assert [said.get("method") or said["result"]["decision"] for said in talk.said] == ["cancel", "turn/interrupt"]
    assert not talk.of(HangUp)
    talk.completed(status="interrupted")
    assert talk.actions[-1] == HangUp()
    assert talk.dialogue.ended(0).reason is Reason.SIGNAL
    assert list(talk.dialogue.interrupted()) == []


def test_a_recorded_interrupt_in_a_tool() -> None:
    talk = held("app-server-interrupt-tool", order("SCENARIO:slowtool=20"))
    assert talk.actions[-1] == HangUp()
    assert talk.dialogue.ended(0).message == "it was interrupted"


def test_an_interrupt_before_the_turn_has_an_id_is_said_when_it_has() -> None:
    talk = Conversation(order())
    talk.hear({"id": 2, "result": {"thread": {"id": ROOT}, **ASKS}})
    talk.said.clear()
    assert list(talk.do(talk.dialogue.interrupted())) == []
    talk.hear({"id": 3, "result": {"turn": {"id": "t1"}}})
    talk.told("turn/started", threadId=ROOT, turn={"id": "t1"})
    assert [said["method"] for said in talk.said] == ["turn/interrupt"]


def test_retries_are_told_until_something_comes() -> None:
    talk = held("app-server-cut", order("SCENARIO:cut"))
    kinds = [type(action) for action in talk.actions if isinstance(action, Retrying | Progress | Finished)]
    assert kinds == [Retrying, Progress, Finished]
    assert talk.of(Retrying)[0].reason is Reason.TRUNCATED


def test_a_refused_key_stops_at_the_first_sign() -> None:
    talk = held("app-server-error-401", order("SCENARIO:error=401"))
    assert not talk.of(Retrying)
    assert talk.of(StopProgram)
    assert talk.dialogue.ended(0).reason is Reason.AUTH


def test_messages_wait_for_the_next_turn() -> None:
    talk = Conversation(order()).begun()
    talk.do(talk.dialogue.told("one", interrupt=False))
    talk.do(talk.dialogue.told("two", interrupt=False))
    assert not talk.said
    talk.completed()
    assert not talk.of(Finished)
    assert [part["text"] for part in talk.said[0]["params"]["input"]] == ["one", "two"]
    talk.told("turn/started", threadId=ROOT, turn={"id": "t2"})
    talk.completed()
    assert talk.outcome.reason is None


def test_a_message_that_comes_too_late_to_steer_is_the_next_turns() -> None:
    talk = Conversation(order()).begun()
    talk.do(talk.dialogue.told("now", interrupt=True))
    (steer,) = talk.said
    assert (steer["method"], steer["params"]["expectedTurnId"]) == ("turn/steer", "t1")
    talk.completed()
    assert not talk.of(Finished)
    talk.said.clear()
    talk.hear({"id": steer["id"], "error": {"code": -32600, "message": "no active turn to steer"}})
    assert talk.said[0]["params"]["input"][0]["text"] == "now"


def test_a_thread_that_cannot_be_opened_stops_it() -> None:
    talk = Conversation(order(resume="gone"))
    talk.hear({"id": 2, "error": {"code": -32600, "message": "no rollout found"}})
    assert talk.outcome.reason is Reason.NOT_STARTED
    assert "no rollout found" in (talk.outcome.message or "")
    assert talk.dialogue.ended(-15).reason is Reason.NOT_STARTED


def test_a_round_whose_call_was_refused_unseen_is_counted_in_any_order() -> None:
    def told(talk: Conversation, order_of_events: str) -> int:
        totals = iter(range(10, 100, 10))
        for event in order_of_events:
            if event == "u":
                total = {"inputTokens": next(totals)}
                talk.told("thread/tokenUsage/updated", threadId=ROOT, turnId="t1", tokenUsage={"total": total})
            else:
                talk.told("item/started", threadId=ROOT, item={"type": "agentMessage", "id": "m"})
        talk.completed()
        return talk.outcome.turns_used

    assert [told(Conversation(order()).begun(), events) for events in ("mumu", "mmuu", "mu")] == [1, 1, 0]


def rounds(talk: Conversation, count: int) -> None:
    """Have the model answer that often within a turn."""
    for number in range(1, count + 1):
        talk.told("item/started", threadId=ROOT, item={"type": "agentMessage", "id": f"m{number}"})
        usage = {"total": {"inputTokens": 10 * number}}
        talk.told("thread/tokenUsage/updated", threadId=ROOT, turnId="t1", tokenUsage=usage)


def test_a_turn_that_was_cancelled_for_its_worker_is_not_interrupted_once_more_for_its_limit() -> None:
    talk = Conversation(order(max_turns=1)).begun()
    talk.do(talk.dialogue.interrupted())
    rounds(talk, 3)
    assert talk.dialogue.rounds.used > 1
    assert [message["method"] for message in talk.said].count("turn/interrupt") == 1
    assert talk.dialogue.ended(-2).reason is not Reason.MAX_TURNS


def test_a_limit_stays_the_cause_where_the_cancel_comes_later() -> None:
    talk = Conversation(order(max_turns=1)).begun()
    rounds(talk, 2)
    talk.do(talk.dialogue.interrupted())
    assert talk.dialogue.ended(-2).reason is Reason.MAX_TURNS


def test_touched_files_and_the_files_of_a_change() -> None:
    talk = held("app-server-patch-accept", order(PATCH, permissions=ASK_ALL), "accept")
    assert talk.outcome.touched_files == ["/project/new.txt", "/project/old.txt", "/project/moved.txt"]
    (ask,) = talk.of(Ask)
    assert (ask.tool, ask.arguments["changes"]) == (
        "apply_patch",
        [
            {"path": "/project/new.txt", "kind": "add"},
            {"path": "/project/old.txt", "kind": "update"},
            {"path": "/project/moved.txt", "kind": "move"},
        ],
    )
    started = next(row for row in talk.rows if row.type is RowType.TOOL)
    assert started.detail == {key: value for key, value in ask.arguments.items() if key != "reason"}
    assert (started.detail or {})["diff of /project/old.txt"].startswith("@@ -1 +1 @@\n-a\n+b")


def asked_about(*changes: Any) -> Ask:
    """Have Codex ask about a change of files."""
    talk = Conversation(order()).begun()
    item = {"type": "fileChange", "id": "i", "changes": list(changes), "status": "inProgress"}
    talk.told("item/started", threadId=ROOT, item=item)
    params = {"threadId": ROOT, "turnId": "t1", "itemId": "i"}
    talk.hear({"id": 7, "method": "item/fileChange/requestApproval", "params": params})
    asks: list[Ask] = talk.of(Ask)
    return asks[0]


def asked_in_old_words(path: str, change: Message) -> Ask:
    """Have it ask in the words of the protocol's first version."""
    talk = Conversation(order()).begun()
    params = {"conversationId": ROOT, "callId": "i", "fileChanges": {path: change}}
    talk.hear({"id": 7, "method": "applyPatchApproval", "params": params})
    asks: list[Ask] = talk.of(Ask)
    return asks[0]


def updated(path: str, diff: Any = "@@ -1 +1 @@\n-a\n+b\n", to: Any = None) -> Message:
    return {"path": path, "kind": {"type": "update", "move_path": to}, "diff": diff}


def allowed_ways(ask: Ask) -> list[str]:
    """Return the options that allow, where all of the question is shown."""
    question = question_for(ask, None)
    return [
        one.id for one in offered(question, question_within(question, EVERYTHING)) if question.meaning(one.id) != DENY
    ]


@pytest.mark.parametrize("is_old", [False, True])
@pytest.mark.parametrize(
    ("pattern", "answer", "decided"),
    [("/tmp/src/*", "allow", "ask"), ("/root/*", "deny", "deny"), ("/tmp/src/*", "deny", "deny")],
)
def test_where_a_patch_moves_a_file_is_seen_by_rules_and_by_who_is_asked(
    pattern: str, answer: str, decided: str, is_old: bool
) -> None:
    source, target = "/tmp/src/a.txt", "/root/.bashrc"
    old = {"type": "update", "unified_diff": "@@\n", "move_path": target}
    ask = asked_in_old_words(source, old) if is_old else asked_about(updated(source, to=target))
    rules = [{"tool": "apply_patch", "pattern": pattern, "answer": answer}]
    assert answer_by(rules, ask.tool or "", ask.arguments) == decided
    question = question_for(ask, None)
    assert question.text == "Allow apply_patch: /tmp/src/a.txt, /root/.bashrc?"
    assert "/root/.bashrc" in question_within(question, EVERYTHING).call
    assert in_one_line(question).text == "Allow apply_patch: /tmp/src/a.txt, /root/.bashrc, and more?"


def test_who_is_asked_about_a_change_sees_all_that_it_writes() -> None:
    add = {"path": "/p/new", "kind": {"type": "add"}, "diff": "evil\n"}
    ask = asked_about(updated("/p/a"), add, {"path": "/p/b", "kind": {"type": "delete"}, "diff": "x" * 50_000})
    written = {name: text for name, text in (ask.arguments or {}).items() if name.startswith("diff of ")}
    assert written == {"diff of /p/a": "@@ -1 +1 @@\n-a\n+b\n", "diff of /p/new": "evil\n"}
    assert len(allowed_ways(ask)) == 2, "a deletion is whole by its name"
    question = question_for(ask, None)
    assert not in_one_line(question).is_whole
    assert "evil" in question_within(question, EVERYTHING).call
    old = asked_in_old_words("/p/new", {"type": "add", "content": "evil\n"})
    assert old.arguments == {"changes": [{"path": "/p/new", "kind": "add"}], "diff of /p/new": "evil\n"}
    assert allowed_ways(old)


@pytest.mark.parametrize(
    "changes",
    [
        [],
        [5],
        [updated("/p/a", diff=None)],
        [updated("/p/a", diff=["+b"])],
        [updated("/p/a"), updated("/p/b", diff=None)],
        [updated("")],
        [updated("/p/a"), updated("/p/a", diff="+another\n")],
        [updated("/p/a", to=["/p/b"])],
        [updated("/p/a", diff="+b\n" * 20_000)],
        [{"path": "/p/a", "kind": {"type": "link"}, "diff": ""}],
    ],
)
def test_a_change_that_is_not_told_whole_cannot_be_allowed(changes: list[Any]) -> None:
    assert allowed_ways(asked_about(*changes)) == []


@pytest.mark.parametrize("changes", [[], [5], [updated("")], [updated("/p/a", to=["/p/a"])]])
def test_a_change_of_which_no_file_is_known_falls_under_no_rule_that_allows_some(changes: list[Any]) -> None:
    ask = asked_about(*changes)
    rules = [{"tool": "apply_patch", "pattern": pattern, "answer": "allow"} for pattern in ("/p/*", "*p*")]
    assert answer_by(rules, ask.tool or "", ask.arguments) == "ask"


def test_a_form_of_a_server_takes_its_one_value_or_json() -> None:
    schema = {"type": "object", "properties": {"size": {"type": "integer"}}}
    deep = "[" * 100_000
    for answer, content in (("7", {"size": 7}), ('{"size": 8}', {"size": 8}), (deep, {"size": deep})):
        talk = Conversation(order(), answer).begun()
        params = {"threadId": ROOT, "serverName": "s", "mode": "form", "message": "How big?", "requestedSchema": schema}
        talk.hear({"id": "e", "method": "mcpServer/elicitation/request", "params": params})
        assert list(talk.said) == [{"id": "e", "result": {"action": "accept", "content": content}}]


def test_a_servers_progress_is_the_tools() -> None:
    talk = Conversation(order()).begun()
    talk.told("item/mcpToolCall/progress", threadId=ROOT, itemId="m", message="half way")
    assert talk.rows == [Row(RowType.TOOL, "m", Phase.PROGRESS, status="running", text="half way")]


def test_a_request_that_codex_takes_back_is_withdrawn() -> None:
    talk = Conversation(order()).begun()
    question: Message = {"id": "q", "question": "?", "options": None}
    two = {"threadId": ROOT, "questions": [question, question | {"id": "r"}]}
    talk.hear({"id": 5, "method": "item/tool/requestUserInput", "params": two})
    talk.do(talk.dialogue.answered("5/q", "yes"))
    assert not talk.said
    talk.told("serverRequest/resolved", threadId=ROOT, requestId=5)
    assert talk.of(Withdraw) == [Withdraw("5/r")]
    assert list(talk.dialogue.answered("5/r", "late")) == []


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ({"codexErrorInfo": "unauthorized"}, Reason.AUTH),
        ({"codexErrorInfo": "usageLimitExceeded"}, Reason.RATE_LIMITED),
        ({"codexErrorInfo": "sessionBudgetExceeded"}, Reason.BUDGET),
        ({"codexErrorInfo": "contextWindowExceeded"}, Reason.CONTEXT),
        ({"codexErrorInfo": "usageLimitExceeded", "message": "Quota exceeded. Check your plan."}, Reason.BILLING),
        ({"message": "unexpected status 429 Too Many Requests: insufficient_quota"}, Reason.BILLING),
        *(
            ({"codexErrorInfo": "usageLimitExceeded", "message": message}, reason)
            for message, reason in (
                (
                    "To use Codex with your ChatGPT plan, upgrade to Plus: https://chatgpt.com/explore/plus.",
                    Reason.BILLING,
                ),
                ("Your workspace is out of credits. Add credits to continue.", Reason.BILLING),
                ("You hit your spend cap set in your workspace.", Reason.BILLING),
                ("You have hit your usage limit. Purchase more credits or try again at 3 PM.", Reason.RATE_LIMITED),
            )
        ),
        ({"message": "unexpected status 529 <unknown status code>"}, Reason.OVERLOADED),
        ({"message": "server_is_overloaded"}, Reason.OVERLOADED),
        ({"message": "Incomplete response returned, reason: max_output_tokens"}, Reason.TRUNCATED),
        ({"codexErrorInfo": "cyberPolicy"}, Reason.REFUSED),
        ({"codexErrorInfo": {"httpConnectionFailed": {"httpStatusCode": 403}}}, Reason.AUTH),
        ({"codexErrorInfo": {"responseTooManyFailedAttempts": {"httpStatusCode": 429}}}, Reason.RATE_LIMITED),
        ({"codexErrorInfo": {"httpConnectionFailed": {"httpStatusCode": None}}}, Reason.MODEL_ERROR),
        ({"message": "stream disconnected before completion"}, Reason.TRUNCATED),
        ({"message": "stream disconnected before completion: error sending request"}, Reason.MODEL_ERROR),
        ({"message": "unexpected status 401 Unauthorized"}, Reason.AUTH),
        ({}, Reason.MODEL_ERROR),
    ],
)
def test_errors_have_their_reasons(error: Message, reason: Reason) -> None:
    assert turn_error_reason(error) is reason


@pytest.mark.parametrize(
    ("complaint", "code", "reason"),
    [
        (b"", -9, Reason.SIGNAL),
        (b"", 0, Reason.SIGNAL),
        (b"", 143, Reason.SIGNAL),
        (b"\x1b[31mERROR\x1b[0m Not logged in", 1, Reason.AUTH),
        (b"Error loading config.toml", 1, Reason.EXIT_CODE),
    ],
)
def test_an_early_death_is_no_natural_end(complaint: bytes, code: int, reason: Reason) -> None:
    talk = Conversation(order()).begun()
    talk.do(talk.dialogue.complained(complaint))
    outcome = talk.dialogue.ended(code)
    assert outcome.reason is reason
    assert "\x1b" not in (outcome.message or "")


INITIALIZED: Message = {"id": 1, "result": {}}
OPENED: Message = {"id": 2, "result": {"thread": {"id": ROOT}, **ASKS}}


def refusal(number: int, message: str) -> Message:
    return {"id": number, "error": {"code": -32600, "message": message}}


# messages received, text on stderr, exit code; whether another way to run Codex may work
EARLY_ENDS: dict[str, tuple[list[Message], bytes, int, bool]] = {
    "no such subcommand": ([], b"error: unrecognized subcommand 'app-server'", 2, True),
    "gone without a word": ([], b"", 0, True),
    "crashed while it began": ([INITIALIZED], b"", -11, True),
    "an older protocol": ([INITIALIZED, refusal(2, "Invalid request: unknown variant `thread/start`")], b"", 0, True),
    "no greeting": ([refusal(1, "Not supported")], b"", 0, True),
    "an order that it refuses": ([INITIALIZED, refusal(2, "no rollout found for thread id x")], b"", 0, False),
    "a refused key": ([], b"Error: not logged in", 1, False),
    "its own program is missing": ([], b"env: node: No such file or directory", 127, False),
    "after it was told what to do": ([INITIALIZED, OPENED], b"", 2, False),
}


@pytest.mark.parametrize("how", EARLY_ENDS)
def test_a_newer_version_helps_what_never_began(how: str) -> None:
    heard, complaint, code, has_not_begun = EARLY_ENDS[how]
    talk = Conversation(order())
    for message in heard:
        talk.hear(message)
    talk.do(talk.dialogue.complained(complaint))
    stopped = talk.of(StopProgram)
    outcome = stopped[0].outcome if stopped else talk.dialogue.ended(code)
    assert outcome.reason is not None
    assert ("`codex app-server` could not begin" in str(outcome.message)) is has_not_begun
    assert (NEEDED in str(outcome.message)) is has_not_begun


def test_a_backtrace_hides_no_cause() -> None:
    talk = Conversation(order())
    for line in ("Error: no rollout found", "", "Stack backtrace:", *(f"   {n}: <unknown>" for n in range(12))):
        talk.do(talk.dialogue.complained(line.encode()))
    assert str(talk.dialogue.ended(1).message).startswith("Error: no rollout found; `codex app-server` could not begin")


def test_another_codex_does_not_speak_for_this_one() -> None:
    inherited = {"CODEX_SANDBOX": "seatbelt", "CODEX_THREAD_ID": "x", "CODEX_HOME": "/h", "CODEX_API_KEY": "k"}
    assert DRIVER.environ(order(), inherited) == {"CODEX_HOME": "/h", "CODEX_API_KEY": "k"}


# -- nothing raises, whatever the program sends, in any order --------------------------------------------------------

SEEN = [row["msg"] for path in sorted(RECORDINGS.glob("app-server-*.jsonl")) for row in rows_of(path.stem)]
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner))
INPUTS: list[Callable[[CodexDialogue], Sequence[Action]]] = [
    lambda dialogue: dialogue.told("more", interrupt=False),
    lambda dialogue: dialogue.told("now", interrupt=True),
    lambda dialogue: dialogue.answered("0", "accept"),
    lambda dialogue: dialogue.answered("0/stub", "blue"),
    lambda dialogue: dialogue.complained(b"\xff"),
    lambda dialogue: dialogue.interrupted(),
]


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (container, key) of every value in a message."""
    pairs = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    for key, inner in pairs:
        yield value, key
        if isinstance(inner, dict | list):
            yield from _places(inner)


@st.composite
def messages(draw: st.DrawFn) -> Any:
    """Draw a recorded message, mostly with some of its values replaced."""
    message = json.loads(json.dumps(draw(st.sampled_from(SEEN))))
    for _ in range(draw(st.integers(0, 2))):
        container, key = draw(st.sampled_from(list(_places(message))))
        container[key] = draw(VALUES)
    return message


@settings(max_examples=50, deadline=None)
@given(
    events=st.lists(messages() | VALUES | st.sampled_from(INPUTS), max_size=25),
    read_only=st.booleans(),
    code=st.sampled_from([0, 1, -9]),
)
def test_nothing_that_is_said_raises(events: list[Any], read_only: bool, code: int) -> None:
    talk = Conversation(order(read_only=read_only, max_turns=1))
    for event in events:
        talk.do(event(talk.dialogue)) if callable(event) else talk.hear(event)
    for row in talk.rows:
        assert encode_row(row, "2026-01-01T00:00:00Z").endswith(b"\n")
    assert isinstance(talk.dialogue.ended(code), AgentOutcome)


@settings(max_examples=60, deadline=None)
@given(line=st.binary(max_size=60))
def test_no_line_raises(line: bytes) -> None:
    talk = Conversation(order()).begun()
    talk.do(talk.dialogue.received(line))
    talk.do(talk.dialogue.complained(line))

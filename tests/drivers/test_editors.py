"""At stake: an editor that speaks the Agent Client Protocol sees what its agent does, and gets an honest answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from acp import text_block
from acp.exceptions import RequestError
from acp.schema import (
    ClientCapabilities,
    EnvVariable,
    HttpMcpServer,
    McpServerStdio,
    PermissionOption,
    PromptResponse,
    ToolCallUpdate,
)

import agentctl
from agentctl.adapters import eventlog
from agentctl.adapters.clock import now_iso
from agentctl.adapters.taskdir import TaskDir
from agentctl.domain.events import CANCEL_FAILED, make_event
from agentctl.errors import StorageError, UsageError
from agentctl.interfaces.editor.client_link import EditorLink
from agentctl.interfaces.editor.methods import EditorAgent, EditorOptions
from agentctl.interfaces.editor.session.session_options import Choices
from agentctl.interfaces.editor.turn_end import TurnFailed
from tests.acp_steps import FORMS, Chooses, Editor, allows, content_of, denies, edit, edited, hesitates, seen
from tests.agent_steps import agent_world, blocked, define, plays
from tests.agents.lab import Lab
from tests.agents.standin import StandIn
from tests.processes import files_of
from tests.steps import Task
from tests.support import PROGRAM, is_alive, run, wait_until


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    return agent_world(tmp_path, monkeypatch)


def test_without_its_library_it_says_how_to_get_it(root: Path) -> None:
    code = (
        "import importlib.util as u, sys; find = u.find_spec;"
        "u.find_spec = lambda name, *more: None if name == 'acp' else find(name, *more);"
        "from agentctl.interfaces.cli.app import main; sys.exit(main(['acp']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "the Agent Client Protocol's library is not installed" in done.stderr
    assert f"hint: {sys.executable} -P -m pip install 'agent-client-protocol<" in done.stderr


def test_the_opening_tells_what_it_can(task: Task) -> None:
    async def to(editor: Editor) -> None:
        for offered in (1, 2):
            told = await editor.conn.initialize(protocol_version=offered)
            assert told.protocol_version == 1
            assert told.agent_info is not None
            assert (told.agent_info.name, told.agent_info.version) == ("agentctl", agentctl.__version__)
            can = told.agent_capabilities
            assert can is not None
            assert can.load_session
            assert can.session_capabilities is not None
            assert can.session_capabilities.resume is not None
            assert can.session_capabilities.list is not None
            assert can.session_capabilities.close is not None
            assert can.prompt_capabilities is not None
            assert (can.prompt_capabilities.image, can.prompt_capabilities.embedded_context) == (False, True)
            assert not told.auth_methods

    edit(to)


def test_a_new_session_offers_its_choices_and_starts_nothing(root: Path, tmp_path: Path) -> None:
    async def to(editor: Editor) -> None:
        made = await editor.conn.new_session(cwd=str(tmp_path / "work"), mcp_servers=[])
        options = {one.id: one for one in made.config_options or []}
        assert (options["agent"].category, options["agent"].current_value) == ("mode", "general")
        assert {one.value for one in options["agent"].options} >= {"explore", "plan", "general"}
        assert options["permissions"].current_value == "default"
        assert made.modes is not None
        assert made.modes.current_mode_id == "general"
        told = await editor.conn.set_config_option("permissions", made.session_id, "deny")
        assert told is not None
        assert {one.id: one.current_value for one in told.config_options}["permissions"] == "deny"
        await editor.conn.set_session_mode(session_id=made.session_id, mode_id="plan")
        changed = [one for one in editor.updates if one["sessionUpdate"] == "config_option_update"]
        assert changed[-1]["configOptions"][0]["currentValue"] == "plan"
        for name, value in (("agent", "nobody"), ("permissions", "perhaps"), ("colour", "red")):
            with pytest.raises(RequestError):
                await editor.conn.set_config_option(name, made.session_id, value)
        for cwd in ("relative", str(tmp_path / "nowhere"), str(tmp_path / "\0")):
            with pytest.raises(RequestError, match=r"absolute|cannot be used"):
                await editor.conn.new_session(cwd=cwd, mcp_servers=[])

    edit(to)
    assert not root.exists()


@pytest.mark.parametrize(
    ("option", "value", "says", "step"),
    [
        ("--agent", "nope", "nope", "known: "),
        ("--driver", "nope", "there is no driver 'nope'", "known: claude"),
        ("--permissions", "sometimes", "must be allow, deny, ask", None),
        ("--permissions", "[{]", "are not JSON", "rules look like"),
        ("--task", "nosuch", "no task 'nosuch'", "known: "),
    ],
)
def test_a_wrong_option_is_told_when_a_session_is_opened(
    task: Task, option: str, value: str, says: str, step: str | None
) -> None:
    async def to(editor: Editor) -> None:
        with pytest.raises(RequestError, match=re.escape(says)) as failed:
            await editor.opened()
        assert (step or "") in (failed.value.data or {"next": ""})["next"]
        assert (failed.value.data is None) == (step is None)

    edit(to, option, value)


def test_tokens_add_up_over_all_runs_of_a_session(task: Task) -> None:
    async def to(editor: Editor) -> None:
        session = await editor.opened()
        used: list[int] = []

        def counts(response: PromptResponse) -> None:
            assert response.usage is not None
            used.append(response.usage.total_tokens)

        counts(await editor.says(session, "say one"))
        counts(await editor.says(session, "say two"))
        prompt = asyncio.create_task(editor.says(session, "hang"))
        await seen(lambda: [one for one in run("list", "--json").json if one["status"] == "running"])
        await editor.conn.cancel(session_id=session)
        assert (await prompt).stop_reason == "cancelled"
        counts(await editor.says(session, "say three"))
        assert len(run("list", "--json").json) == 2, "the last prompt has a run of its own"
        first, second, third = used
        assert third > second > first > 0

    edit(to)


def test_several_prompts_go_to_one_worker(task: Task) -> None:
    async def to(editor: Editor) -> None:
        session = await editor.opened()
        first = await editor.says(session, "say all is well")
        assert first.stop_reason == "end_turn"
        assert first.usage is not None
        assert first.usage.input_tokens > 0
        assert editor.text() == "all is well"
        second = await editor.says(session, "say and still is")
        assert second.stop_reason == "end_turn"
        assert editor.text().endswith("and still is")
        assert editor.text("user_message_chunk") == ""
        (worker,) = run("list", "--json").json
        assert (worker["agentInstance"], worker["agent"], worker["status"]) == (session, "general", "blocked")
        with pytest.raises(RequestError, match="before its first prompt"):
            await editor.conn.set_config_option("agent", session, "plan")

    edit(to)
    (worker,) = run("list", "--json").json
    run("wait", worker["agentInstance"])
    assert task.exit(worker["agentInstance"])["status"] == "completed"  # type: ignore[index]


def test_a_message_from_a_terminal_is_shown_as_one(task: Task) -> None:
    async def to(editor: Editor) -> None:
        session = await editor.opened()
        await editor.says(session, "say one")
        await asyncio.to_thread(run, "send", session, "say from elsewhere")
        await asyncio.to_thread(run, "wait-any", session, "--for", "blocked")
        await editor.says(session, "say three")
        assert editor.text("user_message_chunk") == "say from elsewhere"
        assert "from elsewhere" in editor.text()
        assert editor.text().endswith("three")

    edit(to)


def test_tool_calls_and_sub_agents_of_the_program_are_tool_calls(task: Task, tmp_path: Path) -> None:
    script = """
me.assistant({"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls -la"}})
say(type="user", message={"content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a.py"}]})
me.assistant({"type": "tool_use", "id": "t2", "name": "Edit",
              "input": {"file_path": "a.py", "old_string": "1", "new_string": "2"}})
say(type="user", message={"content": [{"type": "tool_result", "tool_use_id": "t2", "content": "no", "is_error": True}]})
todos = [{"content": "Look", "status": "completed"}, {"content": "Think", "status": "in_progress"}]
me.assistant({"type": "tool_use", "id": "t3", "name": "TodoWrite", "input": {"todos": todos}})
say(type="user", message={"content": [{"type": "tool_result", "tool_use_id": "t3", "content": "ok"}]})
me.assistant({"type": "tool_use", "id": "a1", "name": "Task",
              "input": {"subagent_type": "explore", "description": "Find tests", "prompt": "..."}})
def below(block, parent="a1"):
    message = {"id": f"m-{parent}", "model": "none", "content": [block]}
    say(type="assistant", message=message, parent_tool_use_id=parent)
below({"type": "tool_use", "id": "t4", "name": "Grep", "input": {"pattern": "def test", "path": "/src"}})
say(type="user", parent_tool_use_id="a1",
    message={"content": [{"type": "tool_result", "tool_use_id": "t4", "content": "two"}]})
below({"type": "text", "text": "there are two"})
say(type="user", message={"content": [{"type": "tool_result", "tool_use_id": "a1", "content": "two tests"}]})
me.assistant({"type": "thinking", "thinking": "hm"})
me.answer("done")
"""

    async def to(editor: Editor) -> None:
        session = await editor.opened()
        assert (await editor.says(session, plays(tmp_path, script))).stop_reason == "end_turn"
        calls = {one["toolCallId"].rpartition(":")[2]: one for one in editor.calls().values()}
        assert set(calls) == {"t1", "t2", "a1", "t4"}
        assert (calls["t1"]["kind"], calls["t1"]["status"], calls["t1"]["title"]) == (
            "execute",
            "completed",
            "Bash ls -la",
        )
        assert (calls["t1"]["rawInput"], content_of(calls["t1"])) == ({"command": "ls -la"}, "```\na.py\n```")
        assert (calls["t2"]["kind"], calls["t2"]["status"]) == ("edit", "failed")
        assert calls["t2"]["locations"] == [{"path": str(Path.cwd() / "a.py")}]
        assert (calls["a1"]["kind"], calls["a1"]["title"]) == ("think", "explore: Find tests")
        assert (calls["a1"]["status"], content_of(calls["a1"])) == ("completed", "two tests")
        assert calls["t4"]["_meta"]["agentctl"] == {
            "instance": f"{task.path.name}/{session}", "depth": 1, "parentToolCallId": calls["a1"]["toolCallId"],
        }  # fmt: skip
        (plan,) = [one for one in editor.updates if one["sessionUpdate"] == "plan"]
        assert [(one["content"], one["status"]) for one in plan["entries"]] == [
            ("Look", "completed"),
            ("Think", "in_progress"),
        ]
        assert editor.text("agent_thought_chunk") == "hm"
        assert editor.text() == "done"

    edit(to)


@pytest.mark.parametrize(("chooses", "said"), [(allows, "allowed"), (denies, "denied")])
def test_a_permission_is_a_dialog(task: Task, chooses: Chooses, said: str) -> None:
    async def to(editor: Editor) -> None:
        session = await editor.opened()
        assert (await editor.says(session, "permit make test")).stop_reason == "end_turn"
        ((call, options),) = editor.dialogs
        assert {one.kind for one in options} == {"allow_once", "reject_once"}
        assert (call.kind, call.raw_input) == ("execute", {"command": "make test"})
        assert call.tool_call_id in editor.calls()
        assert editor.text() == said

    edit(to, editor=Editor(chooses))
    (event,) = task.events("interaction.responded")
    assert event["payload"]["by"] == "user"


def test_a_question_that_is_answered_elsewhere_is_withdrawn(task: Task) -> None:
    async def to(editor: Editor) -> None:
        session = await editor.opened()
        prompt = asyncio.create_task(editor.says(session, "permit make test"))
        await seen(lambda: editor.dialogs)
        await asyncio.to_thread(run, "interact", "respond", session, "--id", "q1", "allow")
        assert (await prompt).stop_reason == "end_turn"
        assert editor.text() == "allowed"
        assert len(editor.withdrawn) == 1

    edit(to, editor=Editor(hesitates))


def test_the_card_of_a_question_is_completed_by_an_answer_from_anywhere_and_by_nothing_else(task: Task) -> None:
    async def to(editor: Editor) -> None:
        session = await editor.opened()
        prompt = asyncio.create_task(editor.says(session, "question"))
        await seen(lambda: editor.dialogs)
        await asyncio.to_thread(run, "interact", "respond", session, "--id", "q1", "red")
        assert (await prompt).stop_reason == "end_turn"
        prompt = asyncio.create_task(editor.says(session, "question"))
        await seen(lambda: len(editor.dialogs) == 2)
        await editor.conn.cancel(session_id=session)
        assert (await prompt).stop_reason == "cancelled"
        asked = [call for name, call in editor.calls().items() if name.startswith("question:")]
        assert [call["status"] for call in asked] == ["completed", "failed"]

    edit(to, editor=Editor(hesitates))


def test_a_call_that_is_too_long_to_be_seen_can_only_be_denied(task: Task, tmp_path: Path) -> None:
    script = """
me.ask("Bash", {"command": "echo " + "x" * 9000 + "; rm -rf /"}, "permission")
"""

    async def to(editor: Editor) -> None:
        session = await editor.opened()
        await editor.says(session, plays(tmp_path, script))
        ((_call, options),) = editor.dialogs
        assert {one.kind for one in options} == {"reject_once"}
        assert editor.text() == "denied"

    edit(to, editor=Editor(denies))


def test_a_question_with_options_is_a_form_or_a_dialog(task: Task) -> None:
    async def to(editor: Editor) -> None:
        session = await editor.opened()
        assert (await editor.says(session, "question")).stop_reason == "end_turn"
        assert editor.text() == "blue"

    async def fills(message: str, schema: dict[str, object]) -> dict[str, object]:
        assert "Which colour?" in message
        return {"answer": "blue"}

    async def chooses(_call: ToolCallUpdate, options: list[PermissionOption]) -> str:
        return "blue"

    with_forms = edit(to, editor=Editor(fills=fills), capabilities=FORMS)
    assert (len(with_forms.forms), with_forms.dialogs) == (1, [])
    without = edit(to, editor=Editor(chooses))
    assert (without.forms, len(without.dialogs)) == ([], 1)


def test_a_question_for_a_text_ends_the_turn_and_the_next_prompt_answers_it(task: Task) -> None:
    define(
        task.path.parent.parent, "asks",
        'colour=$(agentctl interact ask "Which colour?" --kind input --json) && echo "it is $colour"',
    )  # fmt: skip

    async def to(editor: Editor) -> None:
        session = await editor.opened()
        assert (await editor.says(session, "go")).stop_reason == "end_turn"
        assert "Which colour?" in editor.text()
        assert (await editor.says(session, "deep red")).stop_reason == "end_turn"
        assert "it is" in editor.text()
        assert "deep red" in editor.text()

    edit(to, "--agent", "asks")


async def dismisses(*_: object) -> Any:
    """Close a dialog or a form without an answer, as a client without a user does."""


@pytest.mark.parametrize("capabilities", [None, FORMS])
def test_a_question_that_is_dismissed_ends_the_turn_and_the_next_prompt_answers_it(
    task: Task, capabilities: ClientCapabilities | None
) -> None:
    async def to(editor: Editor) -> None:
        session = await editor.opened()
        assert (await editor.says(session, "question")).stop_reason == "end_turn"
        assert "Which colour?" in editor.text()
        assert "Your next prompt is the answer" in editor.text()
        assert (await editor.says(session, "blue")).stop_reason == "end_turn"
        assert editor.text().endswith("blue")

    edit(to, editor=Editor(dismisses, fills=dismisses), capabilities=capabilities)


def test_a_call_that_was_not_shown_whole_cannot_be_allowed_by_a_prompt_either(task: Task, tmp_path: Path) -> None:
    script = 'me.ask("Bash", {"command": "echo " + "x" * 9000 + "; rm -rf /"}, "permission")'

    async def to(editor: Editor) -> None:
        session = await editor.opened()
        assert (await editor.says(session, plays(tmp_path, script))).stop_reason == "end_turn"
        with pytest.raises(RequestError, match="not shown whole"):
            await editor.says(session, "allow")
        assert (await editor.says(session, "deny")).stop_reason == "end_turn"
        assert editor.text().endswith("denied")

    edit(to, editor=Editor(dismisses))


def test_a_dismissed_question_of_a_worker_below_is_answered_by_a_prompt_to_the_session(
    task: Task, tmp_path: Path
) -> None:
    spawning = [*PROGRAM, "spawn", "--agent", "general", "--wait", "question"]
    script = plays(tmp_path, f"import subprocess\nsubprocess.run({spawning!r})\nme.answer('all done')")

    async def to(editor: Editor) -> None:
        session = await editor.opened()
        assert (await editor.says(session, script)).stop_reason == "end_turn"
        assert "Which colour?" in editor.text()
        assert (await editor.says(session, "blue")).stop_reason == "end_turn"
        assert editor.text().endswith("all done")

    edit(to, editor=Editor(dismisses))


def test_workers_below_are_shown_with_all_that_they_do(task: Task, tmp_path: Path) -> None:
    deeper = plays(tmp_path, 'me.ask("Bash", {"command": "make deep"}, "permission")')
    script = f"""
import subprocess, sys
def agentctl(*args):
    return subprocess.run([sys.executable, "-m", "agentctl", *args], check=True, capture_output=True, text=True).stdout
agentctl("spawn", "--agent", "general", "--name", "below", {deeper!r})
agentctl("wait", "below")
me.answer("the one below has " + agentctl("result", "below").strip())
"""

    async def to(editor: Editor) -> None:
        session = await editor.opened()
        assert (await editor.says(session, plays(tmp_path, script))).stop_reason == "end_turn"
        ((call, _options),) = editor.dialogs
        assert (call.raw_input, (call.title or "").startswith("below: ")) == ({"command": "make deep"}, True)
        calls = editor.calls()
        card = calls[f"worker:{task.path.name}/below"]
        assert (card["status"], card["kind"], content_of(card)) == ("completed", "think", "allowed")
        own = calls[call.tool_call_id]
        assert own["_meta"]["agentctl"] == {
            "instance": f"{task.path.name}/below", "depth": 1, "parentToolCallId": card["toolCallId"],
        }  # fmt: skip
        assert "the one below has allowed" in editor.text()

    edit(to)


def test_a_command_below_is_shown_as_a_terminal_shows_it_with_why_it_failed(task: Task, tmp_path: Path) -> None:
    fails = r"printf '1 %%\r100 %%\n\033[32m**ok**\033[m\n'; printf '\033[31mError:\033[K no *such* file\n' >&2; exit 3"
    script = f"""
import subprocess, sys
def agentctl(*args):
    subprocess.run([sys.executable, "-m", "agentctl", *args], check=False, capture_output=True)
agentctl("spawn", "--name", "bad", "--wait", "--", "sh", "-c", {fails!r})
agentctl("spawn", "--name", "good", "--wait", "--", "sh", "-c", {fails.replace("exit 3", "exit 0")!r})
me.answer("done")
"""

    async def to(editor: Editor) -> None:
        session = await editor.opened()
        assert (await editor.says(session, plays(tmp_path, script))).stop_reason == "end_turn"
        cards = {name: editor.calls()[f"worker:{task.path.name}/{name}"] for name in ("bad", "good")}
        assert [cards[name]["status"] for name in ("bad", "good")] == ["failed", "completed"]
        output = "```\n100 %\n**ok**\n```"
        texts = [one["content"]["text"] for one in cards["bad"]["content"]]
        assert texts == ["exit code 3", "```\nError: no *such* file\n```", output]
        assert content_of(cards["good"]) == output

    edit(to)


def test_the_error_of_a_turn_has_the_last_lines_of_the_program_and_nothing_that_a_terminal_obeys(
    task: Task, tmp_path: Path
) -> None:
    dies = "print('\\x1b[31mError: no such model\\x1b[m', file=sys.stderr, flush=True); os._exit(3)"

    async def to(editor: Editor) -> None:
        session = await editor.opened()
        with pytest.raises(RequestError, match="Error: no such model") as failed:
            await editor.says(session, plays(tmp_path, f"import os, sys\n{dies}"))
        assert str(failed.value).isprintable()

    edit(to)


def test_a_cancel_in_the_middle_of_a_call_leaves_nothing_alive(task: Task, tmp_path: Path) -> None:
    pids = tmp_path / "pids"

    async def to(editor: Editor) -> None:
        session = await editor.opened()
        prompt = asyncio.create_task(editor.says(session, f"deaf {pids}"))
        await seen(pids.exists)
        found = [int(pid) for pid in pids.read_text(encoding="ascii").split()]
        assert all(map(is_alive, found))
        await editor.conn.cancel(session_id=session)
        assert (await prompt).stop_reason == "cancelled"
        assert not any(map(is_alive, found))
        again = await editor.says(session, "say I am back")
        assert again.stop_reason == "end_turn"
        assert "I am back" in editor.text()

    edit(to)


def test_a_cancel_that_processes_survive_is_an_error_that_lists_them(task: Task) -> None:
    async def to(editor: Editor) -> None:
        session = await editor.opened()
        prompt = asyncio.create_task(editor.says(session, "hang"))
        await seen(lambda: "working" in editor.text())
        survivors = {"survivors": [{"pid": 4711, "command": "cp /nfs/a b"}, {"pid": 4712, "command": "sync\x1b"}]}
        events = TaskDir(str(task.path)).events
        eventlog.append(events, [make_event(now_iso(), CANCEL_FAILED, task.path.name, "user", survivors, session)])
        with pytest.raises(RequestError, match=r"pid 4711: cp /nfs/a b; pid 4712: sync") as failed:
            await prompt
        assert failed.value.data is not None
        assert failed.value.data["reason"] == "survivors"
        await asyncio.to_thread(run, "cancel", session, check=False)
        await asyncio.to_thread(run, "wait", session, check=False)

    edit(to)


def test_a_cancel_withdraws_what_is_asked(task: Task) -> None:
    async def to(editor: Editor) -> None:
        session = await editor.opened()
        prompt = asyncio.create_task(editor.says(session, "permit make test"))
        await seen(lambda: editor.dialogs)
        await editor.conn.cancel(session_id=session)
        assert (await prompt).stop_reason == "cancelled"
        assert all(call["status"] in ("failed", "completed") for call in editor.calls().values())

    edit(to, editor=Editor(hesitates))
    assert run("interact", "list", "--json").json == []


class HesitatingLink:
    """A client in this process, which shows dialogs that nobody answers."""

    def __init__(self, *_: object) -> None:
        self.asked: list[str] = []
        self.updates: list[dict[str, Any]] = []

    def is_taken_back(self, request: object) -> bool:
        return request is not None

    async def update(self, _session_id: str, update: dict[str, Any]) -> None:
        self.updates.append(update)

    async def ask(self, _method: str, params: dict[str, Any]) -> None:
        """Show a dialog."""
        self.asked.append(params["toolCall"]["title"])
        await asyncio.Event().wait()


def test_a_cancel_that_cannot_be_written_shows_the_question_again(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    link = HesitatingLink()
    monkeypatch.setattr("agentctl.interfaces.editor.methods.EditorLink", lambda *_: link)

    def on_a_full_disk(_: object) -> None:
        raise StorageError("the disk is full")

    async def run_it() -> None:
        agent = EditorAgent(EditorOptions(Choices()))
        await agent.initialize(1)
        session = (await agent.new_session(str(Path.cwd()))).session_id
        prompt = asyncio.create_task(agent.prompt([text_block("permit make test")], session))
        await seen(lambda: link.asked)
        with monkeypatch.context() as full:
            full.setattr("agentctl.interfaces.editor.session.prompt_delivery.cancel_run", on_a_full_disk)
            await agent.cancel(session)
            await seen(lambda: len(link.asked) == 2)
        assert "The cancel has failed: the disk is full" in json.dumps(link.updates)
        await agent.cancel(session)
        assert (await prompt).stop_reason == "cancelled"

    asyncio.run(run_it())


@pytest.mark.parametrize(
    ("does", "expected"),
    [("crash", "out of cheese"), ("cut", "truncated"), ("once 500 {tmp}/f", "model_error")],
)
def test_a_failure_is_an_error_and_never_an_answer(task: Task, tmp_path: Path, does: str, expected: str) -> None:
    async def to(editor: Editor) -> None:
        session = await editor.opened()
        with pytest.raises(RequestError, match=expected) as failed:
            await editor.says(session, does.format(tmp=tmp_path))
        assert failed.value.data is not None
        assert failed.value.data["instance"] == session
        assert failed.value.data["next"]

    edit(to)


@pytest.fixture
def lab(task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """A stand-in for a plain model, in the environment of the editor."""
    with StandIn() as standin:
        found = Lab("llm", tmp_path, task, standin)
        for name, value in found.environ().items():
            if value is None:
                monkeypatch.delenv(name, raising=False)
            else:
                monkeypatch.setenv(name, value)
        yield found


@pytest.mark.parametrize(
    ("does", "step"),
    [
        ("fail=401", "standin needs a valid key: set OPENAI_API_KEY"),
        ("fail=402", "standin needs a key whose account has credit: set OPENAI_API_KEY"),
        ("fail=404", "agentctl why"),
        ("fail=500", "later"),
    ],
)
def test_the_next_step_of_a_plain_model_is_one_that_helps(lab: Lab, does: str, step: str) -> None:
    async def to(editor: Editor) -> None:
        session = await editor.opened()
        with pytest.raises(RequestError) as failed:
            await editor.says(session, f"SCENARIO:{does}")
        assert failed.value.data is not None
        assert step in failed.value.data["next"]

    edit(to, "--driver", "llm")


def test_a_permission_of_a_plain_model_is_on_the_card_of_its_call(lab: Lab) -> None:
    async def to(editor: Editor) -> None:
        session = await editor.opened()
        assert (await editor.says(session, "SCENARIO:ask")).stop_reason == "end_turn"
        ((asked, _options),) = editor.dialogs
        assert asked.raw_input is not None
        assert asked.raw_input["command"] == "touch asked.txt"
        ((name, call),) = editor.calls().items()
        assert (name, call["status"]) == (asked.tool_call_id, "completed")

    edit(to, "--driver", "llm")
    assert Path("asked.txt").exists()


def test_a_model_that_declines_and_a_limit_have_reasons_of_their_own(task: Task, tmp_path: Path) -> None:
    def script(**result: object) -> str:
        return plays(tmp_path, f'me.result("no", **{result!r})')

    async def to(editor: Editor) -> None:
        session = await editor.opened()
        assert (await editor.says(session, script(stop_reason="refusal"))).stop_reason == "refusal"
        assert (await editor.says(session, script(stop_reason="max_tokens"))).stop_reason == "max_tokens"
        subtype = {"subtype": "error_max_turns", "is_error": True}
        assert (await editor.says(session, script(**subtype))).stop_reason == "max_turn_requests"
        assert (await editor.says(session, "say fine")).stop_reason == "end_turn"

    edit(to)


def test_servers_of_the_editor_are_passed_on_if_they_hold_no_secret(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers: list[Any] = [
        McpServerStdio(name="plain", command="/bin/true", args=["-x"], env=[]),
        McpServerStdio(name="keyed", command="/bin/true", args=[], env=[EnvVariable(name="KEY", value="secret")]),
        HttpMcpServer(type="http", name="web", url="https://example.org/mcp", headers=[]),
        HttpMcpServer(type="http", name="private", url="https://me:secret@example.org/mcp", headers=[]),
        McpServerStdio(name="agentctl", command="/bin/false", args=[], env=[]),
    ]

    async def configured(editor: Editor, mode: str) -> dict[str, Any]:
        made = await editor.conn.new_session(cwd=str(Path.cwd()), mcp_servers=servers)
        await editor.conn.set_session_mode(session_id=made.session_id, mode_id=mode)
        await editor.says(made.session_id, "argv")
        spec = (task.agent(made.session_id) / "spec.json").read_text(encoding="utf-8")
        assert "secret" not in spec
        result = json.loads((task.agent(made.session_id) / "result.json").read_bytes())
        argv = json.loads(result["finalMessage"])
        given = [json.loads(one.partition("=")[2]) for one in argv if one.startswith("--mcp-config=")]
        found: dict[str, Any] = given[0]["mcpServers"] if given else {}
        return {name: value for name, value in found.items() if value.get("command") != sys.executable}

    async def of_a_person(editor: Editor) -> None:
        assert await configured(editor, "general") == {
            "plain": {"command": "/bin/true", "args": ["-x"]},
            "web": {"type": "http", "url": "https://example.org/mcp"},
        }
        notes = editor.text("agent_thought_chunk")
        assert all(f"{name} is not passed on" in notes for name in ("keyed", "private", "agentctl"))
        assert await configured(editor, "plan") == {}
        assert "plain is not passed on: plan may only read" in editor.text("agent_thought_chunk")

    async def of_an_agent(editor: Editor) -> None:
        assert await configured(editor, "general") == {}

    edit(of_a_person)
    monkeypatch.setenv("CLAUDECODE", "1")
    edit(of_an_agent)


def test_an_agent_that_is_not_installed_is_an_error_with_the_way_to_get_it(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "nothing").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'nothing'}{os.pathsep}/usr/bin{os.pathsep}/bin")

    async def to(editor: Editor) -> None:
        session = await editor.opened()
        with pytest.raises(RequestError, match="install"):
            await editor.says(session, "say hello")

    edit(to, "--driver", "claude")


def test_an_agent_of_any_program_is_answered_by_what_it_prints(task: Task) -> None:
    define(task.path.parent.parent, "shell", 'echo "you said: $1"')

    async def to(editor: Editor) -> None:
        session = await editor.opened()
        assert (await editor.says(session, "hello")).stop_reason == "end_turn"
        assert editor.text() == "you said: hello"
        assert (await editor.says(session, "again")).stop_reason == "end_turn"
        assert editor.text().endswith("you said: again")
        assert "begins anew" in editor.text("agent_thought_chunk")

    edit(to, "--agent", "shell")


def test_what_any_program_prints_and_a_session_had_is_nothing_that_a_terminal_obeys(task: Task) -> None:
    define(task.path.parent.parent, "shell", r"printf '\033[2J**ok**\n'")
    opened: list[str] = []

    async def first(editor: Editor) -> None:
        opened.append(await editor.opened())
        await editor.says(opened[0], "hello\x1b[2J")
        assert editor.text() == "\\x1b[2J**ok**"

    edit(first, "--agent", "shell")

    async def second(editor: Editor) -> None:
        await editor.conn.load_session(cwd=str(Path.cwd()), session_id=opened[0], mcp_servers=[])
        assert (editor.text("user_message_chunk"), editor.text()) == ("hello\\x1b[2J", "\\x1b[2J**ok**")

    edit(second)


def test_a_prompt_that_waits_in_the_queue_says_so(task: Task, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    for name in ("b1", "b2"):
        run("spawn", "--name", name, "--shell", f"until test -e {gate}; do sleep 0.05; done")

    async def to(editor: Editor) -> None:
        session = await editor.opened()
        prompt = asyncio.create_task(editor.says(session, "say at last"))
        await seen(lambda: "in the queue" in editor.text("agent_thought_chunk"))
        gate.touch()
        assert (await prompt).stop_reason == "end_turn"

    edit(to)


def test_the_editor_goes_away_and_the_work_goes_on(task: Task, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    script = f"""
import os, time
me.assistant({{"type": "text", "text": "working"}})
while not os.path.exists({str(gate)!r}): time.sleep(0.02)
me.answer("done without you")
"""

    async def to() -> str:
        async with edited() as editor:
            session = await editor.opened()
            prompt = asyncio.create_task(editor.says(session, plays(tmp_path, script)))
            await seen(lambda: "working" in editor.text())
            prompt.cancel()
        assert editor.process.returncode == 0
        return session

    session = asyncio.run(to())
    assert task.exit(session) is None
    gate.touch()
    run("wait", session)
    assert run("result", session).out.strip().endswith("done without you")


@contextlib.asynccontextmanager
async def stopped_in_mid_spawn(
    monkeypatch: pytest.MonkeyPatch, said: str
) -> AsyncIterator[tuple[Editor, str, asyncio.Task[Any], psutil.Process]]:
    """Give a prompt, and yield the editor, its session, the prompt and agentctl, which is stopped while it starts."""
    monkeypatch.setenv("AGENTCTL_FAILPOINT", "spawn.after-mkdir:stop")
    async with edited() as editor:
        monkeypatch.delenv("AGENTCTL_FAILPOINT")
        session = await editor.opened()
        prompt = asyncio.create_task(editor.says(session, said))
        process = psutil.Process(editor.process.pid)
        await seen(lambda: process.status() == psutil.STATUS_STOPPED)
        yield editor, session, prompt, process


def test_a_prompt_that_is_being_given_when_the_editor_goes_away_is_given(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run_it() -> str:
        async with stopped_in_mid_spawn(monkeypatch, "say one") as (editor, session, prompt, process):
            assert editor.process.stdin is not None
            editor.process.stdin.close()
            process.resume()
            assert await asyncio.wait_for(editor.process.wait(), 20) == 0
            with pytest.raises(ConnectionError):
                await prompt
        return session

    session = asyncio.run(run_it())
    run("wait", session)
    assert run("result", session).out.strip() == "one"


def test_a_session_that_is_closed_while_its_prompt_is_being_given_ends_with_it(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run_it() -> str:
        async with stopped_in_mid_spawn(monkeypatch, "hang") as (editor, session, prompt, process):
            close = asyncio.create_task(editor.conn.close_session(session_id=session))
            await asyncio.sleep(0)
            process.resume()
            await close
            ended = task.exit(session)
            assert ended is not None
            assert ended["status"] == "cancelled"
            assert (await prompt).stop_reason == "cancelled"
            held = [path for path in files_of(process) if path.endswith("editor.lock")]
            assert held == []
        return session

    asyncio.run(run_it())


def test_a_killed_server_leaves_the_question_open_and_the_session_can_be_loaded(task: Task) -> None:
    async def first() -> str:
        async with edited(editor=Editor(hesitates)) as editor:
            session = await editor.opened()
            prompt = asyncio.create_task(editor.says(session, "question"))
            await seen(lambda: editor.dialogs)
            editor.process.kill()
            await editor.process.wait()
            with pytest.raises(ConnectionError):
                await prompt
        return session

    session = asyncio.run(first())
    assert blocked(session)["question"].startswith("Which colour?")

    async def second(editor: Editor) -> None:
        await editor.conn.load_session(cwd=str(Path.cwd()), session_id=session, mcp_servers=[])
        assert editor.text("user_message_chunk") == "question"
        (call,) = editor.calls().values()
        assert call["status"] == "in_progress"
        assert (await editor.says(session, "say well")).stop_reason == "end_turn"
        assert len(editor.dialogs) == 1
        assert editor.text().startswith("red")

    async def chooses(_call: ToolCallUpdate, _options: list[PermissionOption]) -> str:
        return "red"

    edit(second, editor=Editor(chooses))


def test_an_idle_worker_of_a_killed_server_is_let_end_by_the_next_one(task: Task) -> None:
    async def run_it() -> None:
        async with edited() as first, edited() as other:
            killed, held = await first.opened(), await other.opened()
            await first.says(killed, "say one")
            await other.says(held, "say two")
            first.process.kill()
            await first.process.wait()
            async with edited() as third:
                await third.opened()
                await seen(lambda: task.exit(killed))
                assert task.exit(held) is None
            assert (await other.says(held, "say three")).stop_reason == "end_turn"

    asyncio.run(run_it())


def test_a_worker_that_was_no_editors_is_left_alone_whatever_its_name(task: Task) -> None:
    names = ("acp--first", "acp-zz-last")
    for name in names:
        run("spawn", "--agent", "general", "--name", name, "--keep", "say one")
        run("wait-any", name, "--for", "blocked")

    async def run_it() -> None:
        async with edited() as killed:
            session = await killed.opened()
            await killed.says(session, "say two")
            killed.process.kill()
            await killed.process.wait()
        async with edited() as next_one:
            await next_one.opened()
            await seen(lambda: task.exit(session))

    asyncio.run(run_it())
    for name in names:
        assert list((task.agent(name) / "inbox").glob("*")) == []
        run("send", name, "--close")
    run("wait", *names)


def test_sessions_are_listed_loaded_resumed_and_closed_in_another_process(task: Task, tmp_path: Path) -> None:
    cwd = str(Path.cwd())

    async def first(editor: Editor) -> None:
        session = await editor.opened()
        await editor.says(session, "say one")
        await editor.says(session, "say two")
        told.append(session)

    told: list[str] = []
    edit(first)
    (session,) = told
    run("wait", session)
    run("spawn", "--agent", "general", "--name", "mine", "--wait", "say of a terminal")

    async def second(editor: Editor) -> None:
        listed = await editor.conn.list_sessions(cwd=cwd)
        assert [one.session_id for one in listed.sessions] == [f"{task.path.name}/mine", session]
        assert [(one.title, one.cwd) for one in listed.sessions] == [("say of a terminal", cwd), ("say one", cwd)]
        assert all(one.updated_at for one in listed.sessions)
        assert (await editor.conn.list_sessions(cwd=str(tmp_path))).sessions == []
        await editor.conn.load_session(cwd=cwd, session_id=session, mcp_servers=[])
        shown = [(one["sessionUpdate"][:5], one["content"]["text"].strip()) for one in editor.updates]
        assert shown == [("user_", "say one"), ("agent", "one"), ("user_", "say two"), ("agent", "two")]
        editor.updates.clear()
        assert (await editor.says(session, "say three")).stop_reason == "end_turn"
        assert (editor.text("user_message_chunk"), editor.text()) == ("", "three")

    edit(second)
    run("wait-all")


def test_a_session_is_resumed_without_its_history_and_closed(task: Task) -> None:
    run("spawn", "--agent", "general", "--name", "mine", "--wait", "say of a terminal")
    cwd, mine = str(Path.cwd()), f"{task.path.name}/mine"

    async def to(editor: Editor) -> None:
        fresh = await editor.opened()
        await editor.conn.resume_session(cwd=cwd, session_id=fresh, mcp_servers=[])
        await editor.conn.resume_session(cwd=cwd, session_id=mine, mcp_servers=[])
        assert editor.updates == []
        assert (await editor.says(mine, "say more")).stop_reason == "end_turn"
        assert editor.text() == "more"
        prompt = asyncio.create_task(editor.says(mine, "hang"))
        await seen(lambda: "working" in editor.text())
        await editor.conn.close_session(session_id=mine)
        assert (await prompt).stop_reason == "cancelled"
        with pytest.raises(RequestError, match="no open session"):
            await editor.says(mine, "say more")
        for unknown in ("acp-nobody", "no/body", "../../etc", ""):
            with pytest.raises(RequestError, match="no session"):
                await editor.conn.load_session(cwd=cwd, session_id=unknown, mcp_servers=[])

    edit(to)
    run("wait-all", check=False)
    statuses = {row["agentInstance"]: row["status"] for row in run("list", "--json").json}
    assert statuses == {"mine": "completed", "mine-1": "completed", "mine-2": "cancelled"}


def test_many_sessions_are_listed_page_by_page(task: Task) -> None:
    define(task.path.parent.parent, "shell", "true")
    rows = [{"agent": "shell", "prompt": f"number {number}"} for number in range(120)]
    run("spawn", "--batch", "-", "--json", stdin="".join(json.dumps(row) + "\n" for row in rows), timeout=60)

    async def to(editor: Editor) -> None:
        found: list[str] = []
        cursor = None
        while True:
            page = await editor.conn.list_sessions(cursor=cursor)
            found += [one.title or "" for one in page.sessions]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert sorted(found) == sorted(f"number {number}" for number in range(120))
        with pytest.raises(RequestError, match="cursor"):
            await editor.conn.list_sessions(cursor="%%%")

    edit(to)
    run("cancel", "--all")


def test_a_session_of_an_agent_may_allow_nothing(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")

    async def to(editor: Editor) -> None:
        session = await editor.opened()
        prompt = asyncio.create_task(editor.says(session, "permit make test"))
        await seen(lambda: "does not count" in editor.text())
        assert (await prompt).stop_reason == "end_turn"
        assert blocked(session)["tool"] == "Bash"
        with pytest.raises(RequestError, match="an agent may deny it"):
            await editor.says(session, "allow")
        assert (await editor.says(session, "deny")).stop_reason == "end_turn"

    edit(to)


def test_an_agent_gains_nothing_by_being_an_editor_itself(task: Task, tmp_path: Path) -> None:
    script = """
import json, os, subprocess, sys
command = [sys.executable, "-m", "agentctl", "acp"]
server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
def send(**message):
    server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    server.stdin.flush()
def until(found):
    while not found(message := json.loads(server.stdout.readline())): pass
    return message
send(id=1, method="initialize", params={"protocolVersion": 1})
until(lambda one: one.get("id") == 1)
send(id=2, method="session/new", params={"cwd": os.getcwd(), "mcpServers": []})
session = until(lambda one: one.get("id") == 2)["result"]["sessionId"]
prompt = [{"type": "text", "text": "permit rm -rf /"}]
send(id=3, method="session/prompt", params={"sessionId": session, "prompt": prompt})
asked = until(lambda one: one.get("method") == "session/request_permission")
option = next(one for one in asked["params"]["options"] if one["kind"] == "allow_once")
send(id=asked["id"], result={"outcome": {"outcome": "selected", "optionId": option["optionId"]}})
said = until(lambda one: "does not count" in json.dumps(one))
server.stdin.close()
server.wait()
me.answer(session)
"""
    run("spawn", "--agent", "general", "--name", "above", plays(tmp_path, script))
    wait_until((task.agent("above") / "result.json").exists, what="the agent to have tried")
    below = run("result", "above", check=False).out.strip()
    question = blocked(below)
    assert (question["tool"], question["arguments"]) == ("Bash", {"command": "rm -rf /"})
    assert json.loads((task.agent(below) / "spec.json").read_bytes())["parent"] == "above"
    run("interact", "respond", below, "--id", "q1", "deny")
    run("wait", below, "above")
    assert run("result", below).out.strip() == "denied"


def test_workers_that_have_ended_leave_no_zombies_but_the_last(task: Task) -> None:
    async def to(editor: Editor) -> None:
        for _ in range(4):
            session = await editor.opened()
            await editor.says(session, "say one")
            await editor.conn.close_session(session_id=session)
            await asyncio.to_thread(run, "wait", session)
        assert len(psutil.Process(editor.process.pid).children()) <= 1

    edit(to)


def test_why_an_agent_below_has_failed_is_no_markdown(task: Task, tmp_path: Path) -> None:
    fails = plays(tmp_path, 'me.result("no *such* model <b>", is_error=True)')
    script = f"""
import subprocess, sys
def agentctl(*args):
    subprocess.run([sys.executable, "-m", "agentctl", *args], check=False, capture_output=True)
agentctl("spawn", "--agent", "general", "--name", "bad", "--wait", {fails!r})
me.answer("done")
"""

    async def to(editor: Editor) -> None:
        session = await editor.opened()
        assert (await editor.says(session, plays(tmp_path, script))).stop_reason == "end_turn"
        card = editor.calls()[f"worker:{task.path.name}/bad"]
        assert card["status"] == "failed"
        assert card["content"][0]["content"]["text"] == "`model_error: no *such* model <b>`"

    edit(to)


def test_what_agentctl_says_itself_is_no_markdown(task: Task) -> None:
    async def to(editor: Editor) -> None:
        session = await editor.opened(servers=[McpServerStdio(name="_a_*b*", command="x", args=[], env=[secret])])
        assert (await editor.says(session, "question")).stop_reason == "end_turn"
        assert "`The MCP server _a_*b* is not passed on: " in editor.text("agent_thought_chunk")
        root = task.path.parent.parent
        command = f"agentctl answer {session} ANSWER --task {task.path.name} --root {root} --id q1"
        assert f"\n\n```\n{command}\nANSWER: red, blue, any text\n```\n" in editor.text()
        await editor.says(session, "blue")

    secret = EnvVariable(name="KEY", value="1")
    edit(to, editor=Editor(dismisses))


def test_the_data_of_an_error_is_nothing_that_a_terminal_obeys(task: Task, tmp_path: Path) -> None:
    class Odd:
        async def new_session(self, **_: object) -> None:
            raise UsageError("no", hint="\x1b[2J")

        async def load_session(self, **_: object) -> None:
            raise TurnFailed(TaskDir(str(task.path)).worker("a"), "odd\x1b[2J", "no", "\x1b[2J")

    async def data_of(method: str, **params: object) -> object:
        link = EditorLink(Odd(), print)
        with pytest.raises(RequestError) as failed:
            await link._handle(method, {"cwd": str(tmp_path), "mcpServers": [], **params}, False)
        return failed.value.data

    assert asyncio.run(data_of("session/new")) == {"next": "\\x1b[2J"}
    assert asyncio.run(data_of("session/load", sessionId="s")) == {
        "reason": "odd\\x1b[2J", "task": task.path.name, "instance": "a", "next": "\\x1b[2J",
    }  # fmt: skip

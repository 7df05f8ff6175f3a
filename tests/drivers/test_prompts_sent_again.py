"""At stake: a prompt that an editor sends again, since it has lost the answer, starts no second worker and is no second
message; and another prompt with the same text is another one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol

import pytest
from acp import text_block
from acp.exceptions import RequestError
from acp.schema import PromptResponse

from agentctl.adapters.taskdir import WorkerDir
from agentctl.errors import StorageError, UsageError
from agentctl.interfaces.editor.methods import EditorAgent, EditorOptions
from agentctl.interfaces.editor.session import prompt_delivery
from agentctl.interfaces.editor.session.prompt_delivery import GivenPrompt
from agentctl.interfaces.editor.session.session_options import Choices
from agentctl.interfaces.editor.turn_end import TurnFailed
from agentctl.operations.talk.interacting import answer_open_question
from tests.acp_steps import Editor, Wire, edit, edited, wired
from tests.agent_steps import agent_world, plays
from tests.drivers.test_hostile_editors import lines, opened, prompt, taken_back
from tests.steps import Task, statuses
from tests.support import PROGRAM, run

AGAIN = "This prompt was given before, and is not given once more."


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    return agent_world(tmp_path, monkeypatch)


def texts(task: Task) -> list[str]:
    """Return what was sent to the workers, but for their ends."""
    found = (json.loads(file.read_bytes()) for file in sorted(task.path.glob("agents/*/inbox/*.json")))
    return [one["text"] for one in found if not one.get("close")]


async def answer(wire: Wire, name: object) -> tuple[dict[str, Any], str]:
    """Return the answer to a request, and what came before it as text."""
    before = []
    while (message := await wire.got()).get("id") != name or "method" in message:
        assert "method" in message, f"an answer that nobody waits for: {message}"
        before.append(json.dumps(message))
    return message, "".join(before)


def test_a_prompt_that_comes_again_before_its_answer_has_one_answer(task: Task) -> None:
    async def run_it() -> str:
        async with wired() as wire:
            session = await opened(wire)
            await wire.line(lines(prompt(session, "say one", 9), prompt(session, "say one", 9)))
            assert (await answer(wire, 9))[0]["result"]["stopReason"] == "end_turn"
            await wire.send(**prompt(session, "say two", 10))
            assert (await answer(wire, 10))[0]["result"]["stopReason"] == "end_turn"
            return session

    session = asyncio.run(run_it())
    assert ([*statuses()], texts(task)) == ([session], ["say two"])


def test_another_prompt_with_the_id_of_one_under_way_is_not_taken_for_it(task: Task) -> None:
    async def run_it() -> None:
        async with wired() as wire:
            session = await opened(wire)
            await wire.line(lines(prompt(session, "say one", 9), prompt(session, "say two", 9)))
            said = [(await answer(wire, 9))[0] for _ in range(2)]
            assert "is under way" in str([one["error"] for one in said if "error" in one])
            assert [one["result"]["stopReason"] for one in said if "result" in one] == ["end_turn"]

    asyncio.run(run_it())
    assert texts(task) == []


def test_a_prompt_is_known_again_behind_other_requests_with_its_id(task: Task) -> None:
    async def run_it() -> None:
        async with wired() as wire:
            session = await opened(wire)
            first = prompt(session, "hang", 9)
            await wire.line(lines(first, prompt(session, "say two", 9)))
            assert "is under way" in (await answer(wire, 9))[0]["error"]["message"]
            await wire.send(id=9, method="session/set_mode", params={"sessionId": session, "modeId": "plan"})
            assert "before its first prompt" in (await answer(wire, 9))[0]["error"]["message"]
            await wire.line(lines(first, taken_back(9)))
            assert (await answer(wire, 9))[0]["result"]["stopReason"] == "cancelled"
            await wire.send(**prompt(session, "say three", 10))
            assert (await answer(wire, 10))[0]["result"]["stopReason"] == "end_turn"

    asyncio.run(run_it())


def test_a_prompt_that_comes_again_behind_its_answer_is_told_as_given(task: Task) -> None:
    async def run_it() -> str:
        async with wired() as wire:
            session = await opened(wire)
            for name, text in ((9, "say one"), (10, "say two")):
                for is_again in (False, True):
                    await wire.send(**prompt(session, text, name))
                    message, told = await answer(wire, name)
                    assert (message["result"]["stopReason"], AGAIN in told) == ("end_turn", is_again)
            assert texts(task) == ["say two"]
            await wire.send(**prompt(session, "say two", 11))  # It has the same text, and is another one.
            await answer(wire, 11)
            await wire.send(**prompt(session, "say three", 11))  # So does this one, of a client that does not count.
            await answer(wire, 11)
            return session

    session = asyncio.run(run_it())
    assert ([*statuses()], texts(task)) == ([session], ["say two", "say two", "say three"])


async def says(editor: Editor, session: str, text: str, key: str) -> PromptResponse:
    """Send a prompt with a key of the client's."""
    return await editor.conn.prompt(session_id=session, prompt=[text_block(text)], agentctl={"key": key})


async def dismisses(*_: object) -> Any:
    """Close a dialog, so that the next prompt is the answer."""


@pytest.mark.parametrize("options", [(), ("--no-keep",)], ids=["messages", "continued"])
def test_a_prompt_with_a_key_is_given_once_whichever_process_gets_it(task: Task, options: tuple[str, ...]) -> None:
    async def killed() -> str:
        async with edited(*options) as editor:
            session = await editor.opened()
            await says(editor, session, "say one", "k1")
            await says(editor, session, "say two", "k2")
            editor.process.kill()
            await editor.process.wait()
        return session

    session = asyncio.run(killed())
    before = (sorted(statuses()), texts(task))
    assert before == ((sorted([session, f"{session}-1"]), []) if options else ([session], ["say two"]))

    async def again(editor: Editor) -> None:
        await editor.conn.load_session(cwd=str(Path.cwd()), session_id=session, mcp_servers=[])
        for text, key in (("say one", "k1"), ("say two", "k2")):
            assert (await says(editor, session, text, key)).stop_reason == "end_turn"
            with pytest.raises(RequestError, match=f"the key '{key}' has given another prompt already"):
                await says(editor, session, "say something else", key)
        assert editor.text("agent_thought_chunk").count(AGAIN) == 2
        assert (sorted(statuses()), texts(task)) == before
        await says(editor, session, "say two", "k3")
        assert editor.text().endswith("two")

    edit(again, *options)


def test_a_key_is_of_its_session_and_has_to_be_a_text(task: Task) -> None:
    async def to(editor: Editor) -> None:
        for text in ("say one", "say two"):
            await says(editor, await editor.opened(), text, "k")
        assert editor.text() == "onetwo"
        session = await editor.opened()
        for wrong in ("", 5, ["k"], "a\0b", "k" * 9001):
            with pytest.raises(RequestError, match="must be a text of 1 to 9000 characters without NUL"):
                await editor.conn.prompt(session_id=session, prompt=[text_block("x")], agentctl={"key": wrong})
        await says(editor, session, "say three", "k" * 9000)

    edit(to)
    assert len(statuses()) == 3


def test_an_answer_that_is_prompted_again_is_what_it_was(task: Task) -> None:
    async def asked() -> str:
        async with edited(editor=Editor(dismisses)) as editor:
            session = await editor.opened()
            await editor.says(session, "question")
            for _ in range(2):
                assert (await says(editor, session, "blue", "k")).stop_reason == "end_turn"
            with pytest.raises(RequestError, match="was answered already, with 'blue' by user"):
                await says(editor, session, "red", "k")
            editor.process.kill()
            await editor.process.wait()
        return session

    session = asyncio.run(asked())

    async def again(editor: Editor) -> None:
        await editor.conn.load_session(cwd=str(Path.cwd()), session_id=session, mcp_servers=[])
        assert (await says(editor, session, "blue", "k")).stop_reason == "end_turn"
        with pytest.raises(RequestError, match="was answered already, with 'blue' by user"):
            await says(editor, session, "red", "k")

    edit(again)
    assert ([*statuses()], texts(task)) == ([session], [])
    assert len(task.events("interaction.responded")) == 1


# -- errors behind the effect ------------------------------------------------------------------------------------------


class SilentLink:
    """In the place of a client: it keeps what it is told."""

    def __init__(self) -> None:
        self.told = ""

    def is_taken_back(self, _request: object) -> bool:
        return False

    async def update(self, _session: str, update: object) -> None:
        """Take an update."""
        self.told += json.dumps(update)

    async def ask(self, *_: object) -> None:
        """Close a dialog without an answer."""


@pytest.fixture
def link(monkeypatch: pytest.MonkeyPatch) -> SilentLink:
    link = SilentLink()
    monkeypatch.setattr("agentctl.interfaces.editor.methods.EditorLink", lambda *_: link)
    return link


class Says(Protocol):
    """Prompts the agent, and returns how the turn has ended; a prompt that names no request is one of its own."""

    def __call__(self, text: str, *, request: object = None, key: str | None = None) -> Awaitable[str]: ...


async def prompted(does: Callable[[Says, str], Awaitable[None]], cwd: Path | None = None) -> None:
    """Have an agent of the protocol in this process: `does` gets what prompts it, and the session."""
    agent = EditorAgent(EditorOptions(Choices()))
    await agent.initialize(1)
    session = (await agent.new_session(str(cwd or Path.cwd()))).session_id
    number = iter(range(100))

    async def says(text: str, *, request: object = None, key: str | None = None) -> str:
        request = next(number) if request is None else request
        return str((await agent.prompt([text_block(text)], session, request=request, key=key)).stop_reason)

    try:
        await does(says, session)
    finally:
        await asyncio.to_thread(run, "cancel", "--all")


async def loses_its_answer(says: Says, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Send a prompt that is carried out, and whose client is told that a disk is full."""

    def loses(*_: object) -> dict[str, Any]:
        raise StorageError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr("agentctl.interfaces.editor.turn.response_of", loses)
        with pytest.raises(StorageError, match="the disk is full"):
            await says(text)


@pytest.mark.parametrize("step", ["spawn_workers", "deliver_message", "resume_worker", "start_anew"])
def test_a_prompt_that_met_an_error_behind_its_effect_is_given_once(
    task: Task, link: SilentLink, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    carried_out = getattr(prompt_delivery, step)
    told: list[object] = []

    def loses_the_first(*given: Any, **how: Any) -> Any:
        done = carried_out(*given, **how)
        told.append(done)
        if len(told) == 1:
            raise StorageError("the disk is full")
        return done

    async def steps(says: Says, session: str) -> None:
        if step != "spawn_workers":
            await says("say zero")
        if step in {"resume_worker", "start_anew"}:
            await asyncio.to_thread(run, "cancel", session)
        if step == "start_anew":
            (task.agent(session) / "session.json").unlink()
        monkeypatch.setattr(prompt_delivery, step, loses_the_first)
        with pytest.raises(StorageError, match="the disk is full"):
            await says("say one")
        before = (sorted(statuses()), texts(task))
        assert await says("say one") == "end_turn"
        assert (sorted(statuses()), texts(task)) == before
        assert await says("say one") == "end_turn"  # That one has had its answer.
        assert (sorted(statuses()), texts(task)) != before

    asyncio.run(prompted(steps))


def test_a_prompt_whose_turn_met_an_error_behind_its_giving_is_given_once(
    task: Task, link: SilentLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent has it and has answered; what its client is told is that a disk is full."""

    async def steps(says: Says, _session: str) -> None:
        await says("say zero")
        await loses_its_answer(says, "say one", monkeypatch)
        assert texts(task) == ["say one"]
        assert await says("say one") == "end_turn"
        assert texts(task) == ["say one"]
        assert await says("say one") == "end_turn"  # That one has had its answer.
        assert texts(task) == ["say one", "say one"]

    asyncio.run(prompted(steps))


def test_the_same_text_behind_a_failure_of_the_agent_is_another_prompt(task: Task, link: SilentLink) -> None:
    async def steps(says: Says, _session: str) -> None:
        for runs in (1, 2):
            with pytest.raises(TurnFailed, match="out of cheese"):
                await says("crash")
            assert len(statuses()) == runs

    asyncio.run(prompted(steps))


def test_an_answer_that_met_an_error_behind_its_effect_is_given_once(
    task: Task, link: SilentLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried_out = answer_open_question
    told: list[object] = []

    def loses_the_first(*given: Any, **how: Any) -> Any:
        told.append(carried_out(*given, **how))
        if len(told) == 1:
            raise StorageError("the disk is full")
        return told[-1]

    async def steps(says: Says, _session: str) -> None:
        await says("question")
        monkeypatch.setattr(prompt_delivery, "answer_open_question", loses_the_first)
        with pytest.raises(StorageError, match="the disk is full"):
            await says("blue")
        assert await says("blue") == "end_turn"
        assert texts(task) == []
        await says("blue")  # That one has had its answer.
        assert texts(task) == ["blue"]

    asyncio.run(prompted(steps))
    assert len(task.events("interaction.responded")) == 1


# -- questions ---------------------------------------------------------------------------------------------------------

#: It asks for one command, and as soon as that is answered for another one.
ASKS_TWICE = """
me.ask("Bash", {"command": "echo harmless"}, lambda _: me.ask("Bash", {"command": "rm -rf /precious"}, "permission"))
"""
#: The ways in which a prompt that comes again is known again.
WAYS = ["key", "request", "error"]


async def says_twice(says: Says, text: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Send a prompt, and send it again in such a way."""
    if way == "error":
        await loses_its_answer(says, text, monkeypatch)
        await says(text)
        return
    for _ in range(2):
        await (says(text, key="k") if way == "key" else says(text, request="r"))


@pytest.mark.parametrize(("way", "is_below"), [*((way, False) for way in WAYS), ("request", True)])
def test_an_answer_that_comes_again_is_none_to_the_next_question(
    task: Task, tmp_path: Path, link: SilentLink, monkeypatch: pytest.MonkeyPatch, way: str, *, is_below: bool
) -> None:
    script = plays(tmp_path, ASKS_TWICE)
    if is_below:
        spawning = [*PROGRAM, "spawn", "--agent", "general", "--wait", script]
        script = plays(tmp_path, f"import subprocess\nsubprocess.run({spawning!r})\nme.answer('done')")

    async def steps(says: Says, _session: str) -> None:
        await says(script)
        await says_twice(says, "allow", way, monkeypatch)
        assert (len(task.events("interaction.responded")), AGAIN in link.told) == (1, True)
        await says("allow")
        assert len(task.events("interaction.responded")) == 2

    asyncio.run(prompted(steps))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("before", [(), ("say zero",)], ids=["start", "message"])
def test_a_prompt_that_comes_again_does_not_answer_the_question_that_it_led_to(
    task: Task, link: SilentLink, monkeypatch: pytest.MonkeyPatch, way: str, before: tuple[str, ...]
) -> None:
    async def steps(says: Says, _session: str) -> None:
        for text in before:
            await says(text)
        await says_twice(says, "question", way, monkeypatch)
        assert (len(task.events("interaction.responded")), AGAIN in link.told) == (0, True)
        await says("blue")
        assert len(task.events("interaction.responded")) == 1
        assert texts(task) == ["question"] * len(before)

    asyncio.run(prompted(steps))


def test_an_answer_that_another_process_gives_at_that_moment_is_no_message(
    task: Task, link: SilentLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = prompt_delivery.given_before

    def looks_too_early(worker: WorkerDir, *given: Any) -> GivenPrompt | None:
        found = looked(worker, *given)
        run("interact", "respond", worker.instance, "--id", "q1", "blue")
        return found

    async def steps(says: Says, _session: str) -> None:
        await says("question")
        monkeypatch.setattr(prompt_delivery, "given_before", looks_too_early)
        assert await says("blue", key="k") == "end_turn"

    asyncio.run(prompted(steps))
    assert (len(task.events("interaction.responded")), texts(task)) == (1, [])


def test_an_answer_hides_no_message_with_its_text(task: Task) -> None:
    async def to(editor: Editor) -> None:
        session = await editor.opened()
        await editor.says(session, "question")
        await editor.says(session, "blue")
        await asyncio.to_thread(run, "send", session, "blue")
        await asyncio.to_thread(run, "wait-any", session, "--for", "blocked")
        await editor.says(session, "say one")
        assert editor.text("user_message_chunk") == "blue"

    edit(to, editor=Editor(dismisses))


# -- other prompts -----------------------------------------------------------------------------------------------------


def test_an_error_of_one_prompt_does_not_swallow_another(task: Task, tmp_path: Path, link: SilentLink) -> None:
    folder, away = tmp_path / "project", tmp_path / "away"
    folder.mkdir()

    async def steps(says: Says, _session: str) -> None:
        await says("say one")
        await says("say two")
        folder.rename(away)
        with pytest.raises(UsageError, match="cannot be used"):
            await says("say three")
        away.rename(folder)
        assert await says("say two") == "end_turn"
        assert (texts(task), AGAIN in link.told) == (["say two", "say two"], False)

    asyncio.run(prompted(steps, folder))

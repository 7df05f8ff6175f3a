"""At stake: what a model answers is carried out, counted and told once, whatever it answers."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from agentctl.worker_programs.plain_model import history
from agentctl.worker_programs.plain_model.break_off import BreakOff
from agentctl.worker_programs.plain_model.history import Conversation, read_conversation
from agentctl.worker_programs.plain_model.host_channel import HostChannel, SharedParts
from agentctl.worker_programs.plain_model.model.answer import STOP, AnswerUsage, ModelAnswer, ToolCall
from agentctl.worker_programs.plain_model.model.model_call import Model, Partial
from agentctl.worker_programs.plain_model.model.provider_key import Mask
from agentctl.worker_programs.plain_model.model.request import ModelRequest
from agentctl.worker_programs.plain_model.model_turns import Prompt, RunBounds, TurnLoop
from agentctl.worker_programs.plain_model.toolbox import tool_calls
from agentctl.worker_programs.plain_model.toolbox.reachable_paths import Places
from agentctl.worker_programs.plain_model.toolbox.tool_calls import ToolCalls
from agentctl.worker_programs.plain_model.toolbox.toolset import chosen_tools

_UNBOUND = RunBounds()


class _Silent(HostChannel):
    """A host that keeps what it is told, and has nothing more to say once a turn has ended."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[dict[str, Any]] = []
        self.over: Callable[[], object] = list

    def say(self, kind: str, **fields: Any) -> None:
        self.lines.append({"type": kind, **fields})
        if kind == "turn_end":
            self.over()


class _Scripted:
    """A model whose answers are known before; each comes after one that was of no use."""

    def __init__(self, answers: Sequence[ModelAnswer | Exception], wasted: AnswerUsage | None) -> None:
        self.answers, self.wasted = list(answers), wasted
        self.requests: list[ModelRequest] = []

    def answer(self, request: ModelRequest, lost: Callable[[AnswerUsage | None], object]) -> ModelAnswer:
        self.requests.append(request)
        lost(self.wasted)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Agent:
    """An agent in a folder; `run` gives one to a prompt, after those that have run there before."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "conversation.jsonl"

    def run(
        self, *answers: ModelAnswer | Exception, bounds: RunBounds = _UNBOUND, wasted: AnswerUsage | None = None
    ) -> tuple[_Scripted, list[dict[str, Any]]]:
        kept = read_conversation(str(self.path))
        conversation = Conversation(str(self.path), Mask(None).data)
        conversation.begin("t/a", "m", None, kept.records if kept is not None else [])
        host, model = _Silent(), _Scripted(answers, wasted)
        shared = SharedParts(host, BreakOff(), Mask(None))
        places = Places(str(self.folder), {}, str(self.folder / "outputs"))
        outputs = str(self.folder / "outputs")
        tools = ToolCalls(shared, places, chosen_tools(None, read_only=True), None, ([], []), outputs)
        loop = TurnLoop(shared, cast("Model", model), tools, conversation, ModelRequest("m", "", ()), {}, bounds)
        host.over = loop.cancel
        loop.tell(Prompt("Do it."))
        loop.run()
        return model, host.lines


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return Agent(tmp_path)


def reads(*names: str, call_id: Callable[[int], str] = lambda _: "") -> ModelAnswer:
    calls = [ToolCall(call_id(number), "read_file", {"path": name}) for number, name in enumerate(names)]
    return ModelAnswer(calls=calls, finish=STOP)


def says(text: str) -> ModelAnswer:
    return ModelAnswer(text, finish=STOP)


@pytest.mark.parametrize("call_id", [lambda _: "", lambda _: "call_0", lambda number: f"call_{number}"])
def test_every_call_has_its_own_result_however_often_its_agent_goes_on(
    agent: Agent, call_id: Callable[[int], str]
) -> None:
    """Some servers give calls no ids, or the same ones in each answer."""
    names = [["a", "b"], ["c", "d"], ["e", "f"]]
    for pair in names:
        for name in pair:
            (agent.folder / name).write_text(f"content of {name}\n")
        agent.run(reads(*pair, call_id=call_id), says("Done."))
    model, _ = agent.run(says("Done."))
    records = model.requests[0].records
    ids = [record["call"] for record in records if record["type"] == "result"]
    texts = [record["text"] for record in records if record["type"] == "result"]
    assert texts == [f"1\tcontent of {name}" for pair in names for name in pair]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("last", ["", " \n", "Done."])
def test_an_end_without_a_word_is_told_as_such(agent: Agent, last: str) -> None:
    look = reads("a")._replace(text="Let me look first.")
    _, lines = agent.run(look, says(last))
    end = lines[-1]
    assert (end["type"], end["reason"], end["silent"]) == ("turn_end", None, not last.strip())


COSTLY = AnswerUsage(input=5, output=1, cost=0.4)


def test_what_was_of_no_use_is_counted_and_paid(agent: Agent) -> None:
    model, lines = agent.run(reads("a"), reads("a"), reads("a"), bounds=RunBounds(max_budget_usd=1), wasted=COSTLY)
    assert [line["cost"] for line in lines if line["type"] == "usage"] == [0.4, 0.4, 0.4]
    assert (lines[-1]["reason"], len(model.requests), len(model.answers)) == ("budget", 3, 1)


def test_what_was_broken_off_is_counted(agent: Agent) -> None:
    _, lines = agent.run(Partial(ModelAnswer("Well", usage=COSTLY)), bounds=RunBounds(max_budget_usd=0.1))
    assert [line["input"] for line in lines if line["type"] == "usage"] == [5]
    assert lines[-1]["reason"] == "interrupted"


def test_a_full_disk_is_told_as_such(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_all(fd: int, data: bytes) -> None:
        if b'"assistant"' in data:
            os.write(fd, data[:9])
            raise OSError(errno.ENOSPC, "No space left on device")
        os.write(fd, data)

    monkeypatch.setattr(history, "write_all", write_all)
    _, lines = agent.run(says("Done."))
    assert "cannot be written down: No space left" in lines[-1]["message"]
    _, lines = agent.run(says("Done."))
    assert all(json.loads(line) for line in agent.path.read_bytes().splitlines())


def test_a_tool_that_the_machine_has_no_room_for_fails_alone(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    def look(*_: object) -> str:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(tool_calls, "look", look)
    search = ToolCall("c", "search", {"pattern": "a"})
    for calls in ([search], [search, search]):
        model, lines = agent.run(ModelAnswer(calls=calls, finish=STOP), says("Done."))
        assert lines[-1]["reason"] is None
        results = [record for record in model.requests[-1].records if record["type"] == "result"]
        assert "temporarily unavailable" in results[-1]["text"]

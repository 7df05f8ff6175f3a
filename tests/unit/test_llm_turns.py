"""At stake: what a model answers is carried out, counted and told once, whatever it answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from agentctl.llm.answer import STOP, ModelAnswer, ToolCall
from agentctl.llm.asking_model import Model
from agentctl.llm.breaking import BreakOff
from agentctl.llm.history import Conversation, read_conversation
from agentctl.llm.keys import Mask
from agentctl.llm.places import Places
from agentctl.llm.request import ModelRequest
from agentctl.llm.talking import HostChannel, SharedParts
from agentctl.llm.tool_calls import ToolCalls
from agentctl.llm.toolset import chosen
from agentctl.llm.turns import Prompt, RunBounds, TurnLoop


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
    """A model whose answers are known before."""

    def __init__(self, answers: Sequence[ModelAnswer]) -> None:
        self.answers = list(answers)
        self.requests: list[ModelRequest] = []

    def answer(self, request: ModelRequest) -> ModelAnswer:
        self.requests.append(request)
        return self.answers.pop(0)


class Agent:
    """An agent in a folder; `run` gives one to a prompt, after those that have run there before."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "conversation.jsonl"

    def run(self, *answers: ModelAnswer, bounds: RunBounds = RunBounds()) -> tuple[_Scripted, list[dict[str, Any]]]:
        kept = read_conversation(str(self.path))
        conversation = Conversation(str(self.path), Mask(None).data)
        conversation.begin("t/a", "m", None, kept.records if kept is not None else [])
        host, model = _Silent(), _Scripted(answers)
        shared = SharedParts(host, BreakOff(), Mask(None))
        places = Places(str(self.folder), {}, str(self.folder / "outputs"))
        outputs = str(self.folder / "outputs")
        tools = ToolCalls(shared, places, chosen(None, read_only=True), None, ([], []), outputs)
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

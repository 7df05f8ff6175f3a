"""What real programs said over ACP, played to the dialogue: ends, calls and answers are those of the recording.

Recorded with the versions in `drivers/acp/programs.yaml` and a stand-in model, by a client of a few lines.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentctl.domain.activity.row import RowType
from agentctl.domain.agent.permissions import parse_policy
from agentctl.domain.states import Reason
from agentctl.drivers.acp.conversation import AcpDialogue
from agentctl.drivers.acp.program import AcpProgram
from agentctl.drivers.dialogue import Action, Ask, Finished, HangUp, Note, Say, StopProgram
from agentctl.drivers.order import Order

RECORDINGS = Path(__file__).parent.parent / "recordings" / "acp"
PROGRAMS = ("claude-agent-acp", "codex-acp", "opencode", "qwen")
#: The prompt's request, in every recording but one that sets something before.
PROMPT = 3
#: Recording -> the reason of its end; what is not here ended well. A denial ends the turn of some programs.
ENDS: dict[tuple[str, str], Reason] = {
    **{(program, "ask-deny"): Reason.PERMISSION_DENIED for program in ("codex-acp", "opencode", "qwen")},
    **{(program, "error-429-typed"): Reason.RATE_LIMITED for program in PROGRAMS},
    ("claude-agent-acp", "error-401"): Reason.AUTH,
    ("claude-agent-acp", "error-429"): Reason.RATE_LIMITED,
    ("codex-acp", "error-401"): Reason.AUTH,
    ("qwen", "error-401"): Reason.AUTH,
    ("qwen", "steer"): Reason.SIGNAL,  # The client's second prompt broke its first one off.
}
#: What a program reports as a good end, or with no word that tells why: nothing in its messages says otherwise.
UNTOLD = {
    ("claude-agent-acp", "cut"), ("codex-acp", "cut"), ("codex-acp", "error-429"), ("opencode", "error-401"),
    ("opencode", "error-429"),
}  # fmt: skip
ALL = [(file.parent.name, file.stem) for file in sorted(RECORDINGS.glob("*/*.jsonl"))]


class Played:
    """A recording that was played to a dialogue, up to the end of its first prompt."""

    def __init__(self, program: str, name: str) -> None:
        rows = [json.loads(line) for line in (RECORDINGS / program / f"{name}.jsonl").read_text().splitlines()]
        resumes = any(row["msg"].get("method") in {"session/load", "session/resume"} for row in rows)
        row = AcpProgram(program=program, usage="turn")
        self.dialogue = AcpDialogue(
            Order(
                driver=program, program=program, agent="general", prompt="do it", cwd="/home/user/project",
                resume="old" if resumes else None, acp=row.to_json(),
                # They were recorded in whatever mode each program takes by itself.
                permissions=parse_policy("own"),
            )
        )  # fmt: skip
        self.name, self.was_cancelled = name, False
        self.actions: list[Action] = []
        self.said: list[Any] = []
        #: What the program has told, up to the same.
        self.heard: list[Any] = []
        self._do(self.dialogue.begin())
        for row_ in rows:
            message = row_["msg"]
            if row_["dir"] == "in":
                if message.get("method") == "session/cancel":
                    self.was_cancelled = True
                    self._do(self.dialogue.interrupted())
                continue
            if "method" in message or message.get("id", 0) <= PROMPT:
                self.heard.append(message)
                self._do(self.dialogue.received(json.dumps(message).encode()))

    def _do(self, actions: Any) -> None:
        for action in actions:
            self.actions.append(action)
            if isinstance(action, Say):
                self.said.append(json.loads(action.data))
            if isinstance(action, Ask):
                answer = action.options[0][0] if action.tool is None else "deny" if self.name == "ask-deny" else "allow"
                self._do(self.dialogue.answered(action.key, answer))

    def of(self, kind: type[Any]) -> list[Any]:
        """Return the actions of a kind."""
        return [action for action in self.actions if isinstance(action, kind)]


@pytest.mark.parametrize(("program", "name"), ALL)
def test_the_end_is_that_of_the_recording(program: str, name: str) -> None:
    played = Played(program, name)
    if played.was_cancelled:
        assert played.of(HangUp)
        assert not played.of(Finished)
        return
    ends = [end.outcome for end in played.of(Finished) + played.of(StopProgram)]
    if (program, name) in UNTOLD:
        assert ends
        return
    if (program, name) == ("codex-acp", "question"):  # Its prompt is the fourth request.
        assert played.of(Ask)
        return
    assert ends[-1].reason == ENDS.get((program, name)), ends
    assert not any("an invalid" in str(note.row.text) for note in played.of(Note))


@pytest.mark.parametrize("program", PROGRAMS)
def test_calls_have_a_beginning_an_end_and_a_name_of_ours(program: str) -> None:
    rows = [note.row for note in Played(program, "tool").of(Note) if note.row.type is RowType.TOOL]
    assert [row.phase for row in rows if row.phase != "progress"] == ["start", "end"]
    assert rows[-1].name == "Bash"
    assert "hi" in str(rows[-1].text)
    assert "echo hi" in str(rows[-1].detail)


@pytest.mark.parametrize("program", ["claude-agent-acp", "qwen"])
def test_sub_agents_are_in_the_tree(program: str) -> None:
    rows = [note.row for note in Played(program, "subagent").of(Note)]
    (agent,) = {row.id for row in rows if row.type is RowType.AGENT}
    assert [row for row in rows if row.type is RowType.TOOL and row.parent == agent]


@pytest.mark.parametrize("program", ["claude-agent-acp", "codex-acp", "qwen"])
def test_a_question_of_the_programs_own(program: str) -> None:
    (ask,) = Played(program, "question").of(Ask)
    assert (ask.tool, ask.other) == (None, True)
    assert "red" in str(ask.options)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_history_of_a_session_is_counted_and_not_shown(program: str) -> None:
    played = Played(program, "load")
    assert "replayed: " in str(played.of(Note)[0].row.text)

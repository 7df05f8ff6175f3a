"""What the stand-in model does, by the name in the prompt.

It keeps no state: the answer follows from the conversation alone, so that a program which asks twice, or was
killed and continues, gets the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tests.agents.conversation import NOT_YET, Request

#: How long something lasts that is to be cancelled: no test waits for its end.
FOR_EVER_S = 120
QUESTION = "Which colour?"
#: What is answered to a request without tools, where a tool would be called.
SUMMARY = "A summary by the stand-in model."
_MOST_WAITS = 20
_OURS = "mcp__agentctl__"
COLOURS = ("red", "blue")


class Call(NamedTuple):
    """A tool to be called, by the program's own name of it."""

    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """A text, tools to be called, and how it is sent."""

    text: str = ""
    #: What it thinks before that; not of `responses`.
    thought: str = ""
    calls: tuple[Call, ...] = ()
    #: The HTTP status of a refusal.
    error: int | None = None
    #: The provider's own name of it, and its sentence.
    kind: str = ""
    sentence: str = ""
    #: Headers that go with a refusal.
    headers: Mapping[str, str] = field(default_factory=dict)
    #: How many tokens the conversation has, where that matters.
    tokens: int = 0
    #: Why the model stopped, where it did not just end: `max_tokens` or `refusal`.
    stop: str = ""
    #: Seconds between two words.
    pace_s: float = 0
    #: Where the stream breaks off: after the first `word`, or after the last `part`, before it says that it is whole.
    cut: str = ""
    #: Nothing is sent at all.
    mute: bool = False
    #: Sent in one piece, although a stream was asked for.
    unstreamed: bool = False


def reply_to(request: Request) -> Reply:
    """Return what the model answers."""
    name, argument = request.scenario
    play = _SCENARIOS.get(name)
    if play is None:
        return Reply(text=f"no such scenario: {name}")
    reply = play(request, argument)
    if _has_to_wait(request, reply):
        return Reply(text="I wait.", pace_s=0.2, calls=(Call("glob", {"pattern": NOT_YET}),))
    # Without tools, a program wants a title or a summary of the conversation.
    return Reply(text=SUMMARY) if reply.calls and not request.tools else reply


def _has_to_wait(request: Request, reply: Reply) -> bool:
    """Whether a tool of our server is to be called that is not there yet: qwen connects to servers while it works."""
    wanted = [call.tool for call in reply.calls if call.tool.startswith(_OURS)]
    return _is_qwen(request) and bool({*wanted} - {*request.tools}) and request.waits < _MOST_WAITS


def done(name: str, results: int) -> str:
    """Return the last words of a scenario with tools."""
    return f"Done: {name} after {results} tool results."


def recalled(*names: str) -> str:
    """Return what `recall` answers to a conversation with these marks: it proves what the program has sent."""
    return f"I recall {len(names)} marked messages: {', '.join(names)}."


# -- what each program calls its tools ----------------------------------------------------------------------------


def _is_claude(request: Request) -> bool:
    # `read_file` is a tool of our own program, which may speak either API.
    return request.api == "messages" and "read_file" not in request.tools


def _is_codex(request: Request) -> bool:
    return request.api == "responses"


def _is_qwen(request: Request) -> bool:
    return request.api == "chat" and "run_shell_command" in request.tools


#: What other programs call their tools, the most telling name first.
_SHELLS = ("shell", "bash", "run_shell_command")
_WRITERS = ("write_file", "write")
_ASKERS = ("ask_user", "ask_user_question", "question")


def _named(request: Request, names: Sequence[str]) -> str:
    """Return the first of these tools that is offered; the first of all where none is."""
    return next((name for name in names if name in request.tools), names[0])


def _shell(request: Request, command: str, *, ask: bool = False) -> Call:
    told = {"command": command, "description": "A command of the stand-in"}
    if not _is_codex(request):
        return Call("Bash" if _is_claude(request) else _named(request, _SHELLS), told)
    # Within its sandbox the program asks nobody; this is how its model wants to leave it.
    escalation = {"sandbox_permissions": "require_escalated", "justification": "May I?"} if ask else {}
    # The longest that the program lets a command hold up its turn.
    return Call("exec_command", {"cmd": command, "yield_time_ms": 30000, **escalation})


def _agent(request: Request, prompt: str, *, background: bool = False) -> Call:
    if _is_claude(request):
        order = {"description": "A sub-agent", "prompt": prompt, "subagent_type": "general-purpose"}
        return Call("Agent", {**order, "run_in_background": background})
    if not _is_codex(request):
        if "agent" in request.tools:
            order = {"description": "A sub-agent", "prompt": prompt, "subagent_type": "general-purpose"}
            return Call("agent", {**order, "run_in_background": background})
        return Call("task", {"description": "A sub-agent", "prompt": prompt, "subagent_type": "general"})
    return Call(_offered(request, "spawn_agent"), {"message": prompt})


def _question(request: Request) -> Call:
    options = [{"label": colour, "description": f"a {colour} one"} for colour in COLOURS]
    question = {"question": QUESTION, "header": "Colour", "options": options}
    if _is_claude(request):
        return Call("AskUserQuestion", {"questions": [{**question, "multiSelect": False}]})
    if not _is_codex(request):
        asked = {"question": QUESTION, "options": list(COLOURS)}
        name = _named(request, _ASKERS)
        return Call(name, asked if name == "ask_user" else {"questions": [{**question, "multiple": False}]})
    return Call("request_user_input", {"questions": [{**question, "id": "colour"}]})


def _writes(request: Request) -> tuple[Call, ...]:
    """Every way to make a file, whether it is offered or not: a model may try what it likes."""
    by_shell = [_shell(request, "touch by-shell.txt"), _shell(request, "touch by-asking.txt", ask=True)]
    if _is_codex(request):
        return tuple(by_shell)
    texts = "\n".join(turn.text for turn in request.turns)
    match = re.search(r"(?i)working (?:in the )?directory: (\S+)", f"{request.system}\n{texts}")
    folder = match[1] if match else "."
    if not _is_claude(request):
        file = f"{folder}/by-tool.txt"
        call = Call(_named(request, _WRITERS), {"path": file, "filePath": file, "file_path": file, "content": "w\n"})
        return call, *by_shell[:1]
    return Call("Write", {"file_path": f"{folder}/by-tool.txt", "content": "written\n"}), *by_shell[:1]


def _offered(request: Request, name: str) -> str:
    """Return a tool's whole name, with the namespace in which it is offered."""
    return next((tool for tool in request.tools if tool.split("/")[-1] == name), name)


# -- the scenarios --------------------------------------------------------------------------------------------------


def _text(request: Request, argument: str) -> Reply:
    return Reply(text="The answer of the stand-in model.")


def _recall(request: Request, argument: str) -> Reply:
    return Reply(text=recalled(*(name for name, _ in request.marked)))


def _tools_once(name: str, calls: Callable[[Request, str], tuple[Call, ...]]) -> Callable[[Request, str], Reply]:
    """A scenario that calls tools in its first answer, and tells in its second how many results there were."""

    def play(request: Request, argument: str) -> Reply:
        if request.results:
            return Reply(text=done(name, len(request.results)))
        return Reply(text="I call a tool.", calls=calls(request, argument))

    return play


def _endless(request: Request, argument: str) -> Reply:
    return Reply(calls=(_shell(request, f"echo round {len(request.results) + 1}"),))


def _answered(question: Callable[[Request], Call]) -> Callable[[Request, str], Reply]:
    """The question; then the answer that arrived."""

    def play(request: Request, argument: str) -> Reply:
        if not request.results:
            return Reply(calls=(question(request),))
        chosen = [colour for colour in COLOURS if re.search(rf'"{colour}\\?"|: {colour}$', request.results[-1])]
        return Reply(text=f"The answer was: {', '.join(chosen) or 'none'}.")

    return play


def _question_by_us(request: Request) -> Call:
    # qwen takes only the first form that our description has for an option.
    options = [{"id": colour} for colour in COLOURS] if _is_qwen(request) else list(COLOURS)
    return Call(_ours(request, "ask_user"), {"question": QUESTION, "options": options})


def _subagent(request: Request, argument: str) -> Reply:
    """A sub-agent that plays the scenario in the argument, and is waited for."""
    results = request.results
    if not results:
        return Reply(text="I start a sub-agent.", calls=(_agent(request, f"Report back. SCENARIO:{argument}"),))
    if len(results) == 1 and _is_codex(request):
        child = re.findall(r'"agent_id": ?"([^"]+)"', results[0])
        return Reply(calls=(Call(_offered(request, "wait_agent"), {"targets": child, "timeout_ms": 60000}),))
    return Reply(text=done("subagent", len(results)))


def _delegate(request: Request, argument: str) -> Reply:
    """A sub-agent by our own tools, in another process; it plays the scenario in the argument, and is waited for.

    Or the argument names a file with the scenario and whatever else is chosen for the sub-agent.
    """
    if not _is_claude(request):
        return _handmade(request, argument)
    if request.results:
        return Reply(text=f"It answered: {request.results[-1]}")
    return Reply(text="I delegate.", calls=(Call(f"{_OURS}task", _order("objective", argument)),))


def _handmade(request: Request, argument: str) -> Reply:
    """The same in two steps: start it, then wait for it."""
    results = request.results
    if not results:
        call = Call(_ours(request, "spawn_agent"), _order("instruction", argument))
        return Reply(text="I delegate.", calls=(call,))
    if not re.search(r"success\W+true", results[-1]) and len(results) < _MOST_WAITS:
        # A wait that tells of a question is no end; whoever watches the task answers it.
        seen = re.findall(r"cursor\W+([0-9a-f]+)", results[-1])
        again = {"timeout_ms": 20000} | ({"cursor": seen[-1]} if seen else {})
        return Reply(calls=(Call(_ours(request, "wait"), again),))
    return Reply(text=f"It answered: {results[-1]}")


def _order(prompt: str, argument: str) -> dict[str, Any]:
    chosen = json.loads(Path(argument).read_text(encoding="utf-8")) if argument.endswith(".json") else {}
    return {prompt: f"Report back. SCENARIO:{chosen.pop('scenario', argument)}", **chosen}


def _ours(request: Request, name: str) -> str:
    """Return the whole name of a tool of our server."""
    whole = f"{_OURS}{name}" if _is_claude(request) or _is_qwen(request) else name
    return next((tool for tool in request.tools if "agentctl" in tool and tool.endswith(name)), whole)


def _background(request: Request, argument: str) -> Reply:
    """A sub-agent that nobody waits for: the first answer comes while it works."""
    if not request.results:
        call = _agent(request, "Report back. SCENARIO:pause=3", background=True)
        return Reply(text="I start a sub-agent.", calls=(call,))
    if request.notices:
        return Reply(text="The sub-agent in the background has ended.")
    return Reply(text="A sub-agent works in the background.")


def _fail(request: Request, argument: str) -> Reply:
    """`STATUS`, or `STATUS.NAME.A_SENTENCE_WITHOUT_SPACES`."""
    status, kind, sentence = (*argument.split(".", 2), "", "")[:3]
    return Reply(error=int(status or 500), kind=kind, sentence=sentence.replace("_", " "))


def _stop(request: Request, why: str) -> Reply:
    return Reply(text="" if why == "refusal" else "A part of an answer.", stop=why)


def _slow(request: Request, argument: str) -> Reply:
    return Reply(text="word " * FOR_EVER_S * 2, pace_s=0.5)


def _mute(request: Request, argument: str) -> Reply:
    return Reply(mute=True)


def _cut(request: Request, argument: str) -> Reply:
    return Reply(text="This stream is cut off before its end.", cut=argument)


def _think(request: Request, argument: str) -> Reply:
    return Reply(thought="I consider it.", text="The answer of the stand-in model.")


def _pausing(seconds: float) -> str:
    """A command that takes its time, with a child process; programs refuse a plain `sleep`."""
    return f"timeout {seconds} tail -f /dev/null; echo paused"


def _calls(request: Request, file: str) -> tuple[Call, ...]:
    """The calls that a file in the working folder of the test lists: [[tool, arguments], ...]."""
    return tuple(Call(*call) for call in json.loads(Path(file or "calls.json").read_text(encoding="utf-8")))


def _steps(request: Request, file: str) -> Reply:
    """One reply after the other, as a file lists them: [[[tool, arguments], ...], ...].

    `ours:NAME` is a tool of our server, `tool:NAME` any by the program's own name, `agent` a sub-agent of the program's
    own in the background, `shell` and `out` a command, out of the program's sandbox.
    """
    replies = json.loads(Path(file or "steps.json").read_text(encoding="utf-8"))
    given = len(request.results)
    for calls in replies:
        if given <= 0:
            return Reply(text="I call a tool.", calls=tuple(_step(request, *call) for call in calls))
        given -= len(calls)
    return Reply(text=done("steps", len(request.results)))


def _step(request: Request, tool: str, arguments: Any) -> Call:
    match tool.partition(":"):
        case ["ours", ":", name]:
            return Call(_ours(request, name), arguments)
        case ["tool", ":", name]:
            return Call(name, arguments)
        case ["agent", _, _]:
            return _agent(request, arguments, background=True)
        case _:
            return _shell(request, arguments, ask=tool == "out")


_SCENARIOS: dict[str, Callable[[Request, str], Reply]] = {
    "text": _text,
    "think": _think,
    "recall": _recall,
    "tool": _tools_once("tool", lambda request, _: (_shell(request, "echo hello from a tool"),)),
    "ask": _tools_once("ask", lambda request, name: (_shell(request, f"touch {name or 'asked.txt'}", ask=True),)),
    "pause": _tools_once("pause", lambda request, seconds: (_shell(request, _pausing(float(seconds))),)),
    "slowtool": _tools_once("slowtool", lambda request, _: (_shell(request, _pausing(FOR_EVER_S)),)),
    "steps": _steps,
    "calls": _tools_once("calls", _calls),
    "write": _tools_once("write", lambda request, _: _writes(request)),
    "question": _answered(_question),
    "askus": _answered(_question_by_us),
    "endless": _endless,
    "subagent": _subagent,
    "background": _background,
    "delegate": _delegate,
    "handmade": _handmade,
    "fail": _fail,
    "stop": _stop,
    "slow": _slow,
    "mute": _mute,
    "cut": _cut,
}

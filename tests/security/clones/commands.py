"""What a person types in a clone: every command, with arguments that make sense there."""

# ruff: noqa: E501 - the tables are easier to look over in rows.

from __future__ import annotations

import json
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Command:
    """A command line, and what is given to it."""

    args: tuple[str, ...]
    stdin: str = ""
    environ: dict[str, str] = field(default_factory=dict)
    #: What it may start besides git.
    starts: bool = False
    #: It needs a second to be loaded.
    is_slow: bool = False
    #: Below the clone.
    cwd: str = "."

    def __str__(self) -> str:
        told = " ".join(f"{name}={value!r}" for name, value in self.environ.items())
        where = "" if self.cwd == "." else f"(in {self.cwd}) "
        return f"{where}{told} agentctl {' '.join(self.args)}".strip()


def _each(*lines: str, **options: object) -> list[Command]:
    return [Command(tuple(line.split()), **options) for line in lines]  # type: ignore[arg-type]


def _completing(line: str) -> list[Command]:
    words = line.split(" ")
    return [
        Command((), environ={"_AGENTCTL_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": line}),
        Command(
            (), environ={"_AGENTCTL_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
        ),
    ]


#: The stranger's task, by name: what is read must be readable, whatever is chosen.
_OF = " --task build"
READING = [
    *_each("tasks", "tasks --json", "search e --logs", "search e --json", "list", "agents", "agents --json", "agents show general", "agents show helper",
           "templates", "templates --json", "trust", "trust --list --json", "interact list", "interact list --json",
           "", "answer"),
    *_each(*(f"{line}{_OF}" for line in (
        "list", "list --json --recursive", "show w", "show v --json", "show q", "why w", "why v --json", "why q", "logs w", "logs v --raw", "events",
        "events --json", "tree --expand all --recursive", "tree --json", "usage", "usage --json", "timeline",
        "timeline --html -", "activity w",
        "result w", "result v --json", "join", "worktrees list", "worktrees list --json", "worktrees show w", "diff w", "status",
        "wait w --timeout-seconds 0", "wait-any --timeout-seconds 0", "wait-any --for blocked --timeout-seconds 0 --json",
        "wait-all --timeout-seconds 0", "doctor", "doctor --json"))),
    *(each for line in ("new --template ", "use ", "show ", "show --task build ", "spawn --agent ", "trust ", "cancel ")
      for each in _completing(f"agentctl {line}")),
]  # fmt: skip

_HOOK = json.dumps({"hook_event_name": "SubagentStart", "agent_id": "a1", "agent_type": "$(touch PWNED)", "cwd": "."})


def _calls(*calls: tuple[str, dict[str, object]]) -> str:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    rows: list[dict[str, object]] = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
    ]
    rows += [
        {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        for number, (name, arguments) in enumerate(calls, 2)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


#: What acts, in the stranger's task: each must refuse or do no harm.
WRITING = [
    *_each(*(f"{line}{_OF}" for line in (
        "interact respond v --id q1 yes", "answer v --id q1 yes", "answer v", "send v hello", "send w hello", "cancel v --grace-seconds 0.1",
        "cancel --all --grace-seconds 0.1 --no-wait", "pause v", "unpause v", "worktrees remove w",
        "activity w --rebuild", "doctor --close-breaker general", "doctor --fix", "join --json",
        "resume w", "resume --lost", "spawn --resume-queue", "resume-queue", "spawn-template"))),
    *_each("spawn --task build -- true", "spawn --queue --task build -- true", "spawn --reuse --task build -- true",
           "spawn --key k1 --task build -- true", "spawn --task build --agent general hello",
           "spawn --task build --agent helper hello", "spawn --worktree --task build -- true",
           "subtask general Title --task build --no-wait --json", "subtask helper Title --task build --no-wait", starts=True),
    Command(("hook",), stdin=_HOOK),
    *_each("report progress 1", "inbox", "interact ask hello"),
    *_each("install claude --project", "install codex --project", "install gemini --project --undo", "install opencode --project",
           "install claude --project --hooks --json"),
    Command(("mcp", "--tools", "all"), is_slow=True, starts=True, stdin=_calls(
        ("list_agents", {}), ("spawn_agent", {"agent_type": "general", "message": "x"}),
        ("spawn_agent", {"agent_type": "helper", "message": "x"}), ("send_input", {"id": "v", "message": "allow"}))),
    Command(("mcp", "--tools", "all", "--task", "build"), is_slow=True, starts=True, stdin=_calls(
        ("list_agents", {}), ("spawn_agent", {"agent_type": "general", "message": "x"}),
        ("send_input", {"id": "v", "message": "allow"}))),
    *_each("use build"),
]  # fmt: skip

#: What a person does in a task of her own, in the same root: a whole evening, in this order.
OWN = [
    *_each("new Mine --id mine"),
    *_each("list", "tasks", "tree --recursive", "doctor", "interact list --json"),
    *_each("spawn --name a -- true", "spawn --queue --name b --after a -- true", "spawn --reuse --name c -- true",
           "spawn --name d --worktree -- true", "spawn --name e --agent general hello", "spawn --name f --agent helper hello",
           "spawn --name g --agent explore hello", "subtask general Title --no-wait", starts=True),
    *_each("wait-all --timeout-seconds 2", "list --json", "result a", "join", "worktrees", "usage"),
    *_each("doctor --fix", starts=True),
    Command(("hook",), stdin=_HOOK),
    *_each("new --template survey --set path=src --id surveyed", "templates"),
    *_each("new --template survey --set path=src --id started --start", starts=True),
    *_each("cancel --all --grace-seconds 0.1", starts=True),
    *_each("new Another"),
]  # fmt: skip

#: In a folder of the clone.
BELOW = [
    *(Command(("spawn", "--reuse", "--name", "r", "--", "true"), starts=True, cwd=cwd) for cwd in ("data", "src")),
    Command(("list",), cwd="data"),
]

DEMO = Command(("demo",), starts=True)

_SAMPLES = tuple(_each(f"list{_OF}", f"show w{_OF}", f"doctor{_OF}"))
_SPAWNS = _each("spawn --task build -- true", "spawn --queue --task build -- true", starts=True)
_MINE = _each("new Mine --id mine")
_RUN = _each("spawn --name a -- true", "spawn --queue --name b --after a -- true", starts=True)
_ENDED = [*_each("wait-all --timeout-seconds 2"), *_each("cancel --all --grace-seconds 0.1", starts=True)]


@dataclass(frozen=True)
class Concern:
    """What has to do with a kind of trick."""

    #: Run for each trick of the kind, in this order.
    always: list[Command]
    #: Each trick has a part of them, the soak test all.
    more: list[Command] = field(default_factory=list)


CONCERNS: dict[str, Concern] = {
    "all": Concern([*READING[::3], *OWN, DEMO]),
    "reading": Concern(_each(f"show v --json{_OF}", f"list --json --recursive{_OF}"), [each for each in READING if not each.environ]),
    "rules": Concern([
        *_each(*(f"{line}{_OF}" for line in ("subtask general Title --no-wait --json", "resume w", "resume --lost")),
               "spawn --task build --name x --agent general hello", "spawn --task build --name y --agent helper hello", starts=True),
        *_MINE, *_each("spawn --name f --agent helper hello", "spawn --name g --agent general hello",
                       "subtask general Title --no-wait", starts=True), *_ENDED]),
    "places": Concern([*_SPAWNS, *_each(f"cancel --all --no-wait{_OF}", f"doctor{_OF}"), *_MINE, *_RUN, *_ENDED],
                      _each(*(f"{line}{_OF}" for line in (
                          "list", "show w", "usage", "tree", "wait-all --timeout-seconds 0", "worktrees list", "join")))),
    "git": Concern([*_each(*(f"{line}{_OF}" for line in ("worktrees list", "worktrees show w", "worktrees diff w", "result w", "join", "doctor --fix",
                                                         "worktrees remove w", "show w"))),
                    *BELOW, *_MINE, *_each("spawn --reuse --name c -- true", "spawn --name d --worktree -- true", starts=True),
                    *_ENDED, *_each("join", "worktrees")]),
    "templates": Concern([*_each("templates", "trust --list --json"), *_completing("agentctl new --template "),
                          *_each("new --template survey --set path=src --id surveyed"),
                          *_each("new --template survey --set path=src --id started --start", "new --template demo --start",
                                 "cancel --all --grace-seconds 0.1", starts=True)]),
    "processes": Concern(_each(*(f"{line}{_OF}" for line in (
                             "list", "pause v", "unpause v", "cancel v --grace-seconds 0.1", "worktrees remove w",
                             "cancel --all --grace-seconds 0.1 --no-wait"))),
                         [*_each(*(f"{line}{_OF}" for line in (
                             "wait v --timeout-seconds 0", "worktrees list", "interact respond v --id q1 yes", "doctor --fix")))]),
    "queue": Concern([*_SPAWNS, *_each(f"resume-queue{_OF}", f"spawn --key k1{_OF} -- true", starts=True),
                      *_each(f"wait-any{_OF} --timeout-seconds 0", f"doctor --fix{_OF}"), *_MINE, *_RUN, *_ENDED], [*_SAMPLES]),
    "names": Concern([], [*(each for each in READING if each.environ),
                          *_each("tasks", "templates", "agents", f"list{_OF}", f"interact list{_OF}", f"doctor{_OF}")]),
}  # fmt: skip

#: For a clone with one odd thing that much else hangs on.
GATED = [*_SAMPLES, *_each("tasks", f"events{_OF}", f"tree{_OF}", "agents", "trust --list", f"join{_OF}"), *_SPAWNS[:1],
         *_completing("agentctl show --task build ")[:1], *_MINE, *_RUN, *_ENDED]  # fmt: skip

#: What a person does in a task that became their own, whatever a `git pull` or a worker has put there since.
ADOPTED = [
    *(each for each in READING if not each.environ),
    *_each("spawn --name a --task build -- true", "spawn --queue --name b --task build -- true",
           "spawn --key k1 --task build -- true", "spawn --name g --agent general --task build hello",
           "subtask general Title --task build --no-wait", starts=True),
    Command(("hook",), stdin=_HOOK),
    *_each(*(f"{line}{_OF}" for line in (
        "interact respond v --id q1 yes", "send v hello", "pause v", "unpause v", "activity w --rebuild", "worktrees remove w",
        "wait-any --timeout-seconds 0.2", "doctor --close-breaker general", "list", "doctor --fix", "list --json",
        "result w", "resume w", "cancel --all --grace-seconds 0.1")), starts=True),
]  # fmt: skip

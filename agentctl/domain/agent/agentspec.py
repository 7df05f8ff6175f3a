"""The keys of an agent definition, and how definitions of Claude Code and Codex are translated to them.

Our own keys are checked strictly: a mistyped restriction must not be silently ignored. From the other formats, keys
that mean the same are taken over; the rest is left out, and listed by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from agentctl.domain.agent.driver_names import ANY_ACP, COMMAND
from agentctl.domain.agent.permissions import BadValue, Rules, parse_policy
from agentctl.domain.names import NAME_RULE, camel, is_name
from agentctl.domain.placement import Resources, check_runner, resources_from
from agentctl.errors import UsageError
from agentctl.lean import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from agentctl.domain.documents.agents import AgentDefinition

EFFORTS = ("low", "medium", "high")
#: The programs' words for efforts; they have more levels than we do.
_EFFORT_WORDS = {"none": "low", "minimal": "low", "xhigh": "high", "max": "high", "ultra": "high"} | {
    word: word for word in EFFORTS
}


class AgentSpec(NamedTuple):
    """What an agent definition says. What is None or empty is left to the program that runs the agent."""

    name: str
    description: str = ""
    #: The role: added to the program's own system prompt.
    instructions: str = ""
    driver: str | None = None
    model: str | None = None
    #: low medium high
    effort: str | None = None
    #: The only tools that may be used, by the program's own names; None allows all of them.
    tools: list[str] | None = None
    #: Tools that it is denied, whatever any rule says: `Bash`, `Bash(rm *)`.
    disallowed_tools: list[str] = []  # noqa: RUF012 - never changed
    read_only: bool = False
    max_turns: int | None = None
    timeout_seconds: float | None = None
    max_budget_usd: float | None = None
    #: Rules {tool, pattern, answer}; see `permissions`.
    permissions: Rules = []  # noqa: RUF012 - never changed
    #: worktree
    isolation: str | None = None
    #: For the driver `command`: the prompt is appended, or given on stdin.
    argv: list[str] | None = None
    prompt_on_stdin: bool = False
    #: What runs it, and what it needs there: fields of a `Placement`.
    runner: str | None = None
    resources: Resources = {}  # noqa: RUF012 - never changed
    #: Keys of another program's format that mean nothing here.
    ignored: list[str] = []  # noqa: RUF012 - never changed
    #: The file that it was read from.
    source: str = ""

    @property
    def denials(self) -> Rules:
        """The rules by which the tools that it may not use are denied: they come before all others."""
        return [_denial(tool) for tool in self.disallowed_tools]

    @property
    def rules(self) -> Rules:
        """All its rules, in their order."""
        return [*self.denials, *self.permissions]

    def to_json(self) -> AgentDefinition:
        """Return the definition under the keys of the file; what is not given is null, false or empty."""
        return {
            "name": self.name, "description": self.description, "driver": self.driver, "model": self.model,
            "effort": self.effort, "tools": self.tools, "disallowedTools": self.disallowed_tools,
            "readOnly": self.read_only, "maxTurns": self.max_turns, "timeoutSeconds": self.timeout_seconds,
            "maxBudgetUsd": self.max_budget_usd,
            "permissions": [
                {"tool": rule["tool"], "pattern": rule["pattern"], "answer": rule["answer"]}
                for rule in self.permissions
            ],
            "isolation": self.isolation, "argv": self.argv, "promptOnStdin": self.prompt_on_stdin,
            "runner": self.runner, "resources": self.resources, "instructions": self.instructions,
            "ignored": self.ignored, "source": self.source,
        }  # fmt: skip


#: The fields of an `AgentSpec`; all of their values are plain JSON.
FIELDS = AgentSpec._fields


def own_spec(value: Mapping[str, Any], name: str, instructions: str, source: str) -> AgentSpec:
    """Return the spec of a definition of ours; `name`, from the file's name, counts where it gives none.

    Raises:
        BadValue: A key that does not exist, or a value that it cannot have.
    """
    for key in value:
        if key not in _KEYS and key not in _CLAUDE and key not in _CLAUDE_IGNORED:
            known = ", ".join(_KEYS)
            raise BadValue(
                (key,), f"unknown key {key!r}", hint=f"known: {known}; and those of Claude Code's sub-agents"
            )
    return _spec(_from_claude(value), name, instructions, source)


def claude_spec(value: Mapping[str, Any], name: str, instructions: str, source: str) -> AgentSpec:
    """Return the spec of a sub-agent of Claude Code. Its models and tools are Claude's, so its driver is `claude`."""
    known = {key: item for key, item in value.items() if key in _CLAUDE_SHARED or key in _CLAUDE}
    left_out = sorted(set(value) - set(known))
    return _spec({"driver": "claude", **_from_claude(known)}, name, instructions, source, left_out)


def codex_spec(value: Mapping[str, Any], name: str, instructions: str, source: str) -> AgentSpec:
    """Return the spec of an agent of Codex. Its models are Codex's, so its driver is `codex`."""
    text = value.get("developer_instructions", instructions)
    if not isinstance(text, str):
        raise BadValue(("developer_instructions",), f"developer_instructions must be text, not {text!r}"[:300])
    shared = {key: value[key] for key in ("name", "description", "model") if key in value}
    if "model_reasoning_effort" in value:
        shared["effort"] = _under("model_reasoning_effort", _effort, value["model_reasoning_effort"])
    left_out = sorted(set(value) - {*shared, *_CODEX})
    said = {"driver": "codex", **shared, **_codex_powers(value)}
    return _spec(said, name, text, source, left_out)


def _spec(
    value: Mapping[str, Any], name: str, instructions: str, source: str, ignored: list[str] | None = None
) -> AgentSpec:
    fields: dict[str, Any] = {"name": _name(name)}
    for key, item in value.items():
        if key in _KEYS:
            field = _KEYS[key]
            fields[field] = _under(key, _CHECKS[field], item)
    spec = AgentSpec(
        **fields,
        instructions=instructions.strip(),
        source=source,
        ignored=ignored if ignored is not None else sorted(set(value) & _CLAUDE_IGNORED),
    )
    return _with_driver(spec)


def _with_driver(spec: AgentSpec) -> AgentSpec:
    """Return the spec with the driver that `argv` implies."""
    if spec.argv is None:
        if spec.driver in (COMMAND, ANY_ACP):
            raise BadValue(("driver",), f"the driver {spec.driver} needs argv: the program and its arguments")
        if spec.prompt_on_stdin:
            raise BadValue(("promptOnStdin",), "promptOnStdin is for definitions with argv")
        return spec
    if spec.driver not in (None, COMMAND, ANY_ACP):
        raise BadValue(("argv",), f"argv is for the drivers {COMMAND} and {ANY_ACP}, not for {spec.driver}")
    return spec._replace(driver=spec.driver or COMMAND)


def _under(key: str, check: Callable[[Any], Any], item: Any) -> Any:
    """Return a checked value; an error names its key."""
    try:
        return check(item)
    except _NotA as error:
        raise BadValue((key,), f"{key} must be {error}, not {item!r}"[:300]) from error


# -- the other formats ---------------------------------------------------------------------------------------

#: What a mode of Claude Code allows without asking, as rules.
_EDITS = ("Edit", "MultiEdit", "Write", "NotebookEdit")
_CLAUDE_MODES: dict[str, Any] = {
    "default": [],
    "manual": [],
    "auto": [],
    "plan": [],
    "dontAsk": "deny",
    "bypassPermissions": "allow",
    "acceptEdits": [{"tool": tool, "answer": "allow"} for tool in _EDITS],
}
_CLAUDE = frozenset({"permissionMode"})
_CLAUDE_SHARED = ("name", "description", "model", "effort", "tools", "disallowedTools", "maxTurns", "isolation")
_CLAUDE_IGNORED = frozenset({"background", "color", "hooks", "initialPrompt", "mcpServers", "memory", "skills"})
_CODEX = frozenset({"developer_instructions", "model_reasoning_effort", "sandbox_mode", "approval_policy"})


def _from_claude(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a definition with Claude Code's keys replaced by ours."""
    said = {key: item for key, item in value.items() if key not in _CLAUDE}
    if said.get("model") == "inherit":
        del said["model"]
    mode = value.get("permissionMode", "default")
    if not isinstance(mode, str) or mode not in _CLAUDE_MODES:
        raise BadValue(("permissionMode",), f"permissionMode must be one of {', '.join(_CLAUDE_MODES)}, not {mode!r}")
    if mode == "plan":
        said["readOnly"] = True
    rules = parse_policy(value.get("permissions")) + parse_policy(_CLAUDE_MODES[mode], "permissionMode")
    return {**said, **({"permissions": rules} if rules else {})}


def _denial(tool: str) -> dict[str, str]:
    """Return the deny rule for `Bash` or `Bash(rm *)` in a list of disallowed tools."""
    name, bracket, pattern = tool.partition("(")
    text = pattern.removesuffix(")").replace(":*", "*")
    return {"tool": name.strip(), "pattern": text if bracket and text else "*", "answer": "deny"}


def _codex_powers(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of ours that mean the same as Codex's sandbox mode and approval policy."""
    sandbox, approval = value.get("sandbox_mode", "workspace-write"), value.get("approval_policy", "on-request")
    if sandbox not in ("read-only", "workspace-write", "danger-full-access"):
        known = "read-only, workspace-write or danger-full-access"
        raise BadValue(("sandbox_mode",), f"sandbox_mode must be {known}, not {sandbox!r}"[:300])
    if sandbox == "danger-full-access":
        return {"permissions": "allow"}
    return {"readOnly": sandbox == "read-only", **({"permissions": "deny"} if approval == "never" else {})}


# -- values --------------------------------------------------------------------------------------------------

#: No value may begin with a dash: on the command line of an agent program it would be an option.
_MODEL = re.compile(r"[A-Za-z0-9][\w.:/@\[\]+-]{0,199}", re.ASCII)
_TOOL = re.compile(r"[A-Za-z_*][^\x00-\x1f\x7f]{0,299}")
_LIST_ITEM = re.compile(r"(?:[^,(]|\([^)]*\)?)+")


class _NotA(ValueError):
    """A value is not what its key needs; the message says what that is, in a few words."""


def _name(value: Any) -> str:
    if not isinstance(value, str) or not is_name(value):
        raise BadValue(("name",), f"name {value!r} is not a name"[:300], hint=f"use {NAME_RULE}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _NotA("text")
    return " ".join(value.split())


def _driver(value: Any) -> str:
    if not isinstance(value, str) or not is_name(value):
        raise _NotA("the name of a driver")
    return value


def _model(value: Any) -> str:
    if not isinstance(value, str) or not _MODEL.fullmatch(value):
        raise _NotA("the name of a model")
    return value


def _effort(value: Any) -> str:
    found = effort_word(value)
    if found is None:
        raise _NotA(f"one of {', '.join(EFFORTS)}")
    return found


def effort_word(value: Any) -> str | None:
    """Return our word for an effort of Claude Code or Codex; None where they have no such word.

    >>> effort_word("xhigh"), effort_word("much")
    ('high', None)
    """
    return _EFFORT_WORDS.get(value) if isinstance(value, str) else None


def _tools(value: Any) -> list[str] | None:
    """Return the names of the only tools that may be used; None for `*`, all of them."""
    names = _names_of_tools(value)
    return None if "*" in names else names


def _names_of_tools(value: Any) -> list[str]:
    """Return the names in `A, B(x, y)` or in a list. An empty list would read as all of them."""
    items = _LIST_ITEM.findall(value) if isinstance(value, str) else value
    if not isinstance(items, list) or not items or not all(isinstance(item, str) for item in items):
        raise _NotA("names of tools separated by commas, or a list of them (leave it out for all)")
    names = [item.strip() for item in items if item.strip()]
    if not names or not all(_TOOL.fullmatch(name) for name in names):
        raise _NotA("names of tools, which begin with a letter")
    return names


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _NotA("true or false")
    return value


def _number(low: float, high: float, *, whole: bool = False) -> Callable[[Any], float]:
    kinds = (int,) if whole else (int, float)

    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
            raise _NotA(f"a {'whole ' if whole else ''}number from {low:g} to {high:g}")
        return value

    return check


def _isolation(value: Any) -> str | None:
    if value not in (None, "none", "worktree"):
        raise _NotA("worktree or none")
    return "worktree" if value == "worktree" else None


def _argv(value: Any) -> list[str]:
    good = isinstance(value, list) and value and all(isinstance(word, str) and "\0" not in word for word in value)
    if not good or not value[0]:
        raise _NotA("a list of a program and its arguments")
    return list(value)


def _runner(value: Any) -> str:
    if not isinstance(value, str):
        raise _NotA("the name of a runner, such as slurm")
    found: str = _said_of("runner", lambda: check_runner(value))
    return found


def _resources(value: Any) -> Resources:
    if not isinstance(value, Mapping):
        raise _NotA("a mapping: cpus, memory, gpus, time, partition, args")
    found: Resources = _said_of("resources", lambda: resources_from(value))
    return found


def _said_of(key: str, check: Callable[[], Any]) -> Any:
    try:
        return check()
    except UsageError as error:
        raise BadValue((key,), f"{key}: {error.message}"[:300]) from error


#: The check of each field; in camel case, the fields are the keys of a definition.
_CHECKS: dict[str, Callable[[Any], Any]] = {
    "name": _name,
    "description": _text,
    "driver": _driver,
    "model": _model,
    "effort": _effort,
    "tools": _tools,
    "disallowed_tools": _names_of_tools,
    "read_only": _flag,
    "max_turns": _number(1, 10_000, whole=True),
    "timeout_seconds": _number(0.001, 365 * 86_400),
    "max_budget_usd": _number(0.0001, 1_000_000),
    "permissions": parse_policy,
    "isolation": _isolation,
    "argv": _argv,
    "prompt_on_stdin": _flag,
    "runner": _runner,
    "resources": _resources,
}
_KEYS = {camel(field): field for field in _CHECKS}

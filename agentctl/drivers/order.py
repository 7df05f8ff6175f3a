"""What a driver is to have done: the part of `spec.json` that only drivers read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Order(NamedTuple):
    """An agent's order; money in US dollars, times in seconds."""

    driver: str
    #: The path of the agent program.
    program: str
    #: The definition's name: explore, plan, general, or the user's own.
    agent: str
    prompt: str
    #: The worker's name, and its task's.
    instance: str = ""
    task_id: str = ""
    cwd: str = ""
    #: The role: added to the program's own system prompt.
    instructions: str = ""
    model: str | None = None
    #: low medium high
    effort: str | None = None
    #: The only tools that may be used, by the program's own names; None leaves them all.
    tools: list[str] | None = None
    read_only: bool = False
    max_turns: int | None = None
    max_budget_usd: float | None = None
    #: Rules {tool, pattern, answer}, the first that matches decides; what none matches is asked.
    permissions: list[dict[str, str]] = []  # noqa: RUF012 - never changed
    #: The vendor's session: to be made under this id, where the program lets one choose.
    session: str | None = None
    #: The vendor's session to continue.
    resume: str | None = None
    #: Stay for more messages after the answer.
    keep: bool = False
    #: The command of the `command` driver; the prompt is appended, or given on stdin.
    argv: list[str] | None = None
    prompt_on_stdin: bool = False
    #: How long the program may try again without getting on.
    retry_ceiling_seconds: float = 60
    #: MCP servers to hand to the agent: name -> {command, args, env}.
    mcp_servers: Mapping[str, Any] = {}
    #: JSON schema of the final answer.
    output_schema: Mapping[str, Any] | None = None
    #: Whose rate limits it has: a name for the program with the login that the environment gives it.
    account: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it under the names of the file, without what has its default."""
        told = {_camel(name): value for name, value in self._asdict().items()}
        return {key: value for key, value in told.items() if value not in (None, "", [], {}, False)}


def order_from(value: Mapping[str, Any]) -> Order:
    """Return the order in a spec; keys that are not known here are left out."""
    return Order(**{name: value[_camel(name)] for name in Order._fields if _camel(name) in value})


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)

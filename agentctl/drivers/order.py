"""An agent's order: the part of `spec.json` that only drivers read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agentctl.domain.agent.permissions import is_for_all, policy_in
from agentctl.domain.names import camel
from agentctl.domain.states import OWN
from agentctl.errors import AtTerminal, Damaged
from agentctl.lean import NamedTuple

#: How a program is started: so that it can change nothing; that it asks agentctl before each call that is not known to
#: be harmless, whatever anybody has configured; that it asks nothing, since all is allowed; or that the person's own
#: settings of the program decide what it asks.
READ_ONLY, ASKING, ALLOWING, BY_OWN_SETTINGS = "readOnly", "asking", "allowing", "own"
#: What leads to the last of them, in a text that is stored: it may be read at a terminal, over HTTP or in a client.
OWN_PERMISSIONS = f"the permissions `{OWN}`"


class Order(NamedTuple):
    """What an agent is to do, and how; money in US dollars, times in seconds."""

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
    #: The only tools that may be used, by the program's own names; None allows all of them.
    tools: list[str] | None = None
    read_only: bool = False
    max_turns: int | None = None
    max_budget_usd: float | None = None
    #: Rules {tool, pattern, answer}: the first that matches decides; if none does, a person is asked.
    permissions: list[dict[str, str]] = []  # noqa: RUF012 - never changed
    #: The tools that its definition disallows. The first of the rules deny them, one for each.
    disallowed_tools: list[str] = []  # noqa: RUF012 - never changed
    #: How many of the rules after those came with the call: the others are those of the definition and the task.
    rules_given: int = 0
    #: The rules of each agent above it: a request that any of them denies is denied.
    denied_above: list[list[dict[str, str]]] = []  # noqa: RUF012 - never changed
    #: The id under which to create the vendor's session, if the program accepts an id.
    session: str | None = None
    #: The vendor's session to continue.
    resume: str | None = None
    #: Stay for more messages after the answer.
    keep: bool = False
    #: What is known of a program that speaks ACP: a row of `drivers/acp/programs.yaml`.
    acp: Mapping[str, Any] = {}
    #: The command of the `command` driver; the prompt is appended, or passed on stdin.
    argv: list[str] | None = None
    prompt_on_stdin: bool = False
    #: How long the program may keep retrying without progress.
    retry_ceiling_seconds: float = 60
    #: MCP servers to hand to the agent: name -> {command, args, env}.
    mcp_servers: Mapping[str, Any] = {}
    #: JSON schema of the final answer.
    output_schema: Mapping[str, Any] | None = None
    #: The tokens that the session to continue has used so far; None if that is unknown.
    used_before: Mapping[str, int] | None = None
    #: The number of earlier attempts of the same worker.
    earlier_attempts: int = 0
    #: The account whose rate limits apply: a name for the program together with the login in its environment.
    account: str = ""
    #: The folder with what is known about accounts.
    accounts: str = ""
    #: What is closed to it, in the form of `operations/start/walls.py`; empty in orders of versions without walls.
    walls: Mapping[str, Any] = {}
    #: Where the model is, and how it is asked: a row as `drivers/llm/providers.py` resolves it, without any key.
    provider: Mapping[str, Any] = {}
    #: Random, and another one for each start of a program that is given a name which nobody can know before.
    nonce: str = ""
    #: What its program has printed of the person's own settings of it, just before its start; never written down.
    own_settings: Mapping[str, Any] = {}
    #: The home, a folder of settings, that its program is given for this run in place of the person's, if it is:
    #: {variable, own, persons, resolved, notes}. The variable that names it, the paths of both, the person's without
    #: links, and what the person should know of it.
    home: Mapping[str, Any] = {}
    #: The path of `agentctl`, if the shells of its program may not find it.
    own_program: str = ""
    #: The folder of the marks which prove that an answer came through agentctl (`adapters/origin.py`).
    marks: str = ""

    @property
    def role(self) -> str:
        """What its program is told besides the prompt: the instructions, and where `agentctl` is."""
        where = f"The program `agentctl` is {self.own_program}: call it by this path where a shell does not find it."
        return "\n\n".join(filter(None, (self.instructions, where if self.own_program else "")))

    @property
    def stance(self) -> str:
        """How its program is started: READ_ONLY, ASKING, ALLOWING or BY_OWN_SETTINGS.

        A rule that denies or asks before one that allows everything can only be enforced where the program asks.
        """
        if self.read_only:
            return READ_ONLY
        policy = policy_in(self.permissions)
        if policy == OWN:
            return BY_OWN_SETTINGS
        return ALLOWING if policy == "allow" and not self.restrictions else ASKING

    @property
    def restrictions(self) -> list[dict[str, str]]:
        """The rules that deny or ask before its policy counts, and those by which agents above it are denied something.

        A policy of `deny` is one of them.
        """
        own: list[dict[str, str]] = []
        for rule in self.permissions:
            if rule.get("answer") in ("deny", "ask"):
                own.append(rule)
            if is_for_all(rule):
                break
        return [*own, *(rule for rules in self.denied_above for rule in rules if rule.get("answer") == "deny")]

    @property
    def given_rules(self) -> list[dict[str, str]]:
        """The rules that came with the call."""
        return self.permissions[len(self.disallowed_tools) :][: self.rules_given]

    def to_json(self) -> dict[str, Any]:
        """Return it under the names of the file, without empty fields."""
        fields = {camel(name): value for name, value in self._asdict().items()}
        return {key: value for key, value in fields.items() if value not in (None, "", [], {}, False)}


#: The fields that a later attempt of a worker may change.
_OF_ATTEMPT = ("prompt", "session", "resume", "used_before", "earlier_attempts", "nonce")
#: Those that a run of its program may change.
_OF_RUN = (*_OF_ATTEMPT, "home")


#: The types of the fields that are not strings.
_KINDS: Mapping[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("read_only", "keep", "prompt_on_stdin"), bool),
    **dict.fromkeys(("max_turns", "earlier_attempts", "rules_given"), int),
    **dict.fromkeys(("max_budget_usd", "retry_ceiling_seconds"), (int, float)),
    **dict.fromkeys(("tools", "disallowed_tools", "permissions", "denied_above", "argv"), list),
    **dict.fromkeys(
        ("mcp_servers", "output_schema", "used_before", "walls", "acp", "provider", "own_settings", "home"), Mapping
    ),
}


def order_from(value: Mapping[str, Any]) -> Order:
    """Return the order in a spec; unknown keys are ignored.

    Raises:
        Damaged: A field is missing or has the wrong type.
    """
    try:
        return Order(**_fields_in(value, Order._fields))
    except TypeError as error:
        raise Damaged("the agent's order lacks a driver, program, agent or prompt") from error


def _fields_in(value: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    found = {name: value[camel(name)] for name in names if camel(name) in value}
    for name, field in found.items():
        if field is not None and not isinstance(field, _KINDS.get(name, str)):
            raise Damaged(f"{camel(name)} in the agent's order has the wrong type", hint=AtTerminal("agentctl doctor"))
    return found


def order_changes(order: Order, attempt: Order) -> dict[str, Any]:
    """Return the fields in which an attempt's order differs from the spec's, under the names of the file."""
    values = ((name, getattr(attempt, name)) for name in _OF_ATTEMPT)
    return {camel(name): value for name, value in values if value != getattr(order, name)}


def changed_order(order: Order, changes: Mapping[str, Any]) -> Order:
    """Return the order of a run: the spec's order with the changes of its attempt, and of the run itself."""
    return order._replace(**_fields_in(changes, _OF_RUN))

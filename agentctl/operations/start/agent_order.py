"""Turns work for an agent into the order of its driver: definition, program, restrictions, permissions."""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import agentctl
from agentctl.adapters.files import storage_errors
from agentctl.adapters.opening import read_bytes
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.domain.agent.agentspec import AgentSpec
from agentctl.domain.agent.driver_names import ANY_ACP, COMMAND, PLAIN
from agentctl.domain.agent.permissions import Rules
from agentctl.domain.states import OWN
from agentctl.drivers.dialogue import Driver
from agentctl.drivers.order import ASKING, BY_OWN_SETTINGS, Order, order_from
from agentctl.drivers.registry import AGENT_DRIVERS, choose, driver_for, load, program_of
from agentctl.encoding import as_utf8
from agentctl.errors import AgentctlError, Argument, Next, NotFound, Refused, UsageError, WithArguments
from agentctl.lean import NamedTuple
from agentctl.operations.start.agent_server import with_identity, with_server
from agentctl.operations.start.answer_schema import ask_for, read_schema
from agentctl.operations.start.inherited import denied_above
from agentctl.operations.start.model_provider import model_of_caller, provider_and_model, provider_for
from agentctl.operations.start.obeyed import refuse_obeyed
from agentctl.operations.start.own_program import own_program
from agentctl.operations.start.permissions import check_policy_again, given_rules, policy_of
from agentctl.operations.start.requests import AgentWork
from agentctl.operations.start.tested import version_warnings
from agentctl.operations.start.walls import refuse_behind_walls, walls_of
from agentctl.operations.trust.definitions import find_agent_spec
from agentctl.operations.where.ownership import place_for_marks
from agentctl.operations.where.personal_config import DRIVER_ORDER, section
from agentctl.operations.where.task_config import usable_config
from agentctl.supervision.account.accounts import folder_of_accounts

#: Restrictions that a driver must honour, or the order is refused: the order's field -> the definition's key.
_RESTRICTIONS = {
    "read_only": "readOnly", "tools": "tools", "max_turns": "maxTurns", "max_budget_usd": "maxBudgetUsd",
    "permissions": "permissions", "denied_above": "permissions", "resume": "resume", "keep": "keep",
}  # fmt: skip
#: Of `Driver.honours`: it holds rules also where a person's own settings of its program allow the call.
_OWN_UNDER_RULES = "ownUnderRules"
#: Preferences that a driver should honour, or there is a warning.
_PREFERENCES = ("model", "effort")
#: How much of an agent program's configuration is read at most; a longer file counts as empty.
_MOST_BYTES = 16 << 20
_ASKING_HINT = "or say in a row of acp.yaml how to make it ask (`asking`; docs/agents.md)"
_PROGRAM = Path(agentctl.__file__).resolve().parent / "worker_programs" / "agent_host" / "__main__.py"


class Ordered(NamedTuple):
    """An order that can be carried out here."""

    order: Order
    #: The definition's time limit; None leaves it to the task.
    timeout_seconds: float | None = None
    wants_worktree: bool = False
    warnings: tuple[str, ...] = ()
    #: What the definition says of the runner and of resources: fields of a placement.
    running: Mapping[str, Any] = {}

    @property
    def argv(self) -> list[str]:
        """The worker's command line: our program that drives the agent's program."""
        # A library is looked for wherever this command finds it; the others need none, and start faster.
        flags = ["-E", "-P"] if driver_for(self.order).extra else ["-I", "-S"]
        return [sys.executable, *flags, str(_PROGRAM), self.order.driver]

    def of(self, worker: WorkerDir, cwd: str) -> Order:
        """Return the order with the worker's name, its folder, and the walls around it.

        Raises:
            Refused: The agent may write, and the walls protect its folder or something in it; or its program obeys
                files of the project without asking; or it cannot be told where it works.
        """
        _refuse_untold(driver_for(self.order), worker, cwd)
        walls = walls_of(worker, cwd, os.environ)
        if not self.order.read_only and self.order.driver != COMMAND:
            refuse_behind_walls(worker, cwd, walls)
        refuse_obeyed(driver_for(self.order), cwd)
        # A JSON protocol carries only valid text; a command gets the bytes as they are.
        prompt = self.order.prompt if self.order.driver == COMMAND else as_utf8(self.order.prompt)
        order = self.order._replace(
            prompt=prompt, instance=worker.instance, task_id=worker.task.id, cwd=cwd, walls=walls,
            marks=place_for_marks(),
            own_program=own_program() if driver_for(self.order).resets_path else "",
        )  # fmt: skip
        return with_identity(order, worker)


def _refuse_untold(driver: Driver, worker: WorkerDir, cwd: str) -> None:
    """Refuse folders whose names are not UTF-8: a program that is told of them in JSON would work in others."""
    if driver.name == COMMAND or driver.is_ours:
        return
    for folder, hint in (
        (cwd, Next("another folder")),
        (worker.path, WithArguments("keep the root elsewhere: ", Argument("root"), " names it")),
    ):
        try:
            folder.encode()
        except UnicodeEncodeError:
            what = f"the driver {driver.name} cannot tell its program of {folder}: that name is not UTF-8"
            raise Refused(what, hint=hint) from None


def make_order(task: TaskDir, work: AgentWork, environ: Mapping[bytes, bytes]) -> Ordered:
    """Return the order for some work.

    Raises:
        NotFound: There is no such agent or driver.
        Refused: The definition is not trusted, its program is not installed, or cannot honour a restriction.
    """
    denied = denied_above()
    if work.order is not None:
        return _again(task, order_from(work.order), denied, environ)
    if not work.prompt.strip():
        raise UsageError("the prompt is empty", hint=Next("spawn an agent"))
    spec = work.spec or find_agent_spec(task.root, work.agent)
    path = os.fsdecode(environ.get(b"PATH", os.fsencode(os.defpath)))
    named, of_caller = work.driver or spec.driver, model_of_caller()
    driver = load(PLAIN) if named is None and of_caller else choose(named, section(DRIVER_ORDER), path)
    provider = provider_for(driver, work, spec, environ, of_caller) if driver.is_ours else {}
    order = Order(
        driver=driver.name, program=_program(driver, spec, path), agent=spec.name, prompt=work.prompt,
        instructions=spec.instructions, model=provider_and_model(provider) or work.model or spec.model,
        effort=work.effort or spec.effort,
        tools=list(spec.tools) if spec.tools is not None else None, read_only=spec.read_only,
        max_turns=_least(work.max_turns, spec.max_turns),
        max_budget_usd=_least(work.max_budget_usd, spec.max_budget_usd),
        permissions=policy_of(task, work, spec), disallowed_tools=list(spec.disallowed_tools),
        rules_given=len(given_rules(work)),
        denied_above=_joined(work.denied_above, denied), keep=work.keep, session=str(uuid.uuid4()),
        argv=list(spec.argv) if spec.argv else None, prompt_on_stdin=spec.prompt_on_stdin,
        acp=_facts(driver, spec),
        retry_ceiling_seconds=usable_config(task).limits.retry_ceiling_seconds,
        account=_account(driver, environ, provider), accounts=folder_of_accounts(),
        output_schema=read_schema(work.output_schema), provider=provider,
    )  # fmt: skip
    if "mcpServers" in driver.honours and not order.read_only:  # What a server's tools do is unknown.
        order = order._replace(mcp_servers={name: dict(value) for name, value in work.mcp_servers.items()})
    if order.output_schema and "outputSchema" not in driver.honours:
        order = order._replace(prompt=f"{order.prompt}\n\n{ask_for(order.output_schema)}")
    _check_restrictions(driver, order)
    _check_that_it_asks(driver, order)
    order, warnings = _as_honoured(driver, order)
    order = with_server(task, order, driver, environ)
    running = {**spec.resources, **({"runner": spec.runner} if spec.runner else {})}
    warnings += version_warnings(driver, order)
    return Ordered(order, spec.timeout_seconds, spec.isolation == "worktree", warnings, running)


def _again(task: TaskDir, order: Order, denied: list[Rules], environ: Mapping[bytes, bytes]) -> Ordered:
    """Return an order that was carried out before, now also under the denials of whoever repeats it."""
    check_policy_again(task, order.agent, order.permissions)
    driver = _driver_of_today(order)
    order = order._replace(acp=_facts_again(driver, order))
    joined, account = _joined(order.denied_above, denied), _account(driver, environ, order.provider)
    has_more = len(joined) > len(order.denied_above)
    order = order._replace(denied_above=joined, account=account, accounts=folder_of_accounts())
    if has_more:
        _check_restrictions(driver, order)
    _check_that_it_asks(driver, order)
    return Ordered(order, warnings=version_warnings(driver, order))


def _driver_of_today(order: Order) -> Driver:
    """Return the driver of an order as it is known now: the order may have been made by what is out of date."""
    try:
        return load(order.driver)
    except NotFound:  # A row that the person has removed.
        return driver_for(order)


def _facts_again(driver: Driver, order: Order) -> Mapping[str, Any]:
    return order.acp if driver.name == ANY_ACP else driver.facts


def _joined(kept: Sequence[Rules], more: Sequence[Rules]) -> list[Rules]:
    return [*kept, *(rules for rules in more if rules not in kept)]


def _program(driver: Driver, spec: AgentSpec, path: str) -> str:
    if driver.extra is not None and find_spec(driver.extra) is None:
        from agentctl.adapters.extras import install_command

        what = f"the driver {driver.name} needs a library that is not installed"
        raise Refused(what, hint=install_command(driver.extra))
    if driver.name in (COMMAND, ANY_ACP):
        if not spec.argv:
            raise Refused(
                f"the agent {spec.name} names no command for the driver {driver.name}",
                hint=Next("another driver", spec.source),
            )
        return spec.argv[0]
    program = program_of(driver, path)
    if program is None:
        raise Refused(f"{driver.program} is not installed: it is not in PATH", hint=driver.install)
    return program


def _facts(driver: Driver, spec: AgentSpec) -> Mapping[str, Any]:
    """Return what the running agent has to know of its program; a definition's own command has arguments of its own."""
    return {**driver.facts, "args": list(spec.argv or ())[1:]} if driver.name == ANY_ACP else driver.facts


def _account(driver: Driver, environ: Mapping[bytes, bytes], provider: Mapping[str, Any]) -> str:
    """Return a name for the account that a program uses: the same for all workers that share its rate limits.

    It is a hash of what identifies the account, too short to reveal anything of a key that is part of it.
    """
    import hashlib

    texts = {os.fsdecode(name): os.fsdecode(value) for name, value in environ.items()}
    if provider:
        from agentctl.drivers.llm.providers import login_of  # Only for plain models: it parses addresses.

        parts = login_of(provider, texts)
    elif driver.account is not None:
        parts = list(driver.account(texts, _content))
    else:
        return ""
    login = bytes(1).join(text.encode("utf-8", "surrogatepass") for text in parts)
    return f"{driver.name}-{hashlib.blake2b(login, digest_size=5).hexdigest()}"


def _content(path: str) -> bytes:
    """Return the content of a file; empty where there is none that counts."""
    with storage_errors(path, "read"):
        try:
            return read_bytes(path, _MOST_BYTES)
        except (FileNotFoundError, NotADirectoryError, PermissionError, AgentctlError, ValueError):
            return b""


_Number = TypeVar("_Number", int, float)


def _least(one: _Number | None, other: _Number | None) -> _Number | None:
    """Return the smaller of two limits: a definition's limit can be tightened but not loosened."""
    given = [value for value in (one, other) if value is not None]
    return min(given) if given else None


def _check_restrictions(driver: Driver, order: Order) -> None:
    for field, key in _RESTRICTIONS.items():
        if getattr(order, field) and key not in driver.honours:
            raise Refused(f"the driver {driver.name} cannot honour {key}", hint=_hint_for(driver, key))
    _check_own(driver, order)


def _check_own(driver: Driver, order: Order) -> None:
    """Refuse `own` beside rules that only hold where the program asks: a person's own settings decide what it asks."""
    if order.stance != BY_OWN_SETTINGS or not order.restrictions or _OWN_UNDER_RULES in driver.honours:
        return
    rule = json.dumps(order.restrictions[0])
    others = [name for name in AGENT_DRIVERS if _OWN_UNDER_RULES in load(name).honours]
    raise Refused(
        f"with permissions {OWN}, what {driver.name} asks is up to your own settings of it: {rule} would not hold",
        hint=(
            WithArguments(Argument("permissions", "ask"), " enforces it"),
            f"drivers that enforce rules with {OWN}: {', '.join(others) or 'none'}",
        ),
    )


def _check_that_it_asks(driver: Driver, order: Order) -> None:
    """Raise `Refused` where somebody is to be asked, and nothing shows that the program asks before it acts."""
    if order.stance == ASKING and not driver.is_known_to_ask:
        own = WithArguments("`", Argument("permissions", OWN), "`: your own settings of it decide what it asks")
        raise Refused(
            f"nothing shows that {driver.name} asks before it acts, so nobody could be asked", hint=(own, _ASKING_HINT)
        )


def _hint_for(driver: Driver, key: str) -> str:
    """Return what can be done where a driver cannot honour a restriction."""
    others = [name for name in AGENT_DRIVERS if key in load(name).honours]
    hint = f"drivers that can: {', '.join(others)}" if others else f"leave {key} out"
    if key != "readOnly" or driver.extra is None:
        return hint
    return f"{hint}; or say in its row of acp.yaml (readOnly) what keeps its program from changing anything"


def _as_honoured(driver: Driver, order: Order) -> tuple[Order, tuple[str, ...]]:
    """Return an order without the preferences that a driver cannot honour, and a warning of each."""
    ignored = [name for name in _PREFERENCES if getattr(order, name) and name not in driver.honours]
    warnings = (f"the driver {driver.name} cannot honour {name}: it is left to the program" for name in ignored)
    nothing: dict[str, Any] = dict.fromkeys(ignored)
    return order._replace(**nothing), tuple(warnings)

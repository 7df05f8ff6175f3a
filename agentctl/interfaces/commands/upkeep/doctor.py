"""`doctor`: what is damaged, lost or left over, and what to do about it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from agentctl.domain.text.plaintext import plain
from agentctl.errors import AgentctlError, AtTerminal, ExitCode, UsageError
from agentctl.interfaces.commands.model.command_model import (
    ACCOUNTS,
    ENGINES,
    FAILED_AGENTS,
    FLAG,
    SECONDS,
    TEXT,
    TEXTS,
    Command,
    Parameter,
    Shown,
)
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import IN_TASK
from agentctl.interfaces.commands.parts.printed_step import in_same_place
from agentctl.lean import TYPE_CHECKING, Any
from agentctl.operations.doctor.conclusion import conclusion_on
from agentctl.operations.doctor.examining import examine
from agentctl.operations.where.findings import Finding

if TYPE_CHECKING:
    from agentctl.adapters.taskdir import Root
    from agentctl.domain.documents.machine import ClosedBreaker, FindingRow, FreedAccount

NODES = "Nodes"


def doctor(
    call: Invocation,
    *,
    fix: bool = False,
    close_breaker: str | None = None,
    free_account: str | None = None,
    runner: str | None = None,
    partition: str | None = None,
    runner_arg: list[str] | None = None,
    network: list[str] | None = None,
    timeout_seconds: float | None = None,
) -> Shown[list[FindingRow] | ClosedBreaker | FreedAccount]:
    """Look for damage and leftovers, and repair what is safe to repair.

    It finds damaged files, lost and unsupervised workers, stray processes, missing programs, and a login manager that
    kills processes at logout; and it says which agent programs are installed, and whether their versions are the
    tested ones. Exits with 1 while an error remains.

    With --runner it looks only at the nodes: it starts a probe on one, as it would start a worker, and the probe
    reports what it finds there. A root on a network file system that passes is accepted: commands no longer need
    --force in it. --fix also ends launches whose worker has ended.
    """
    if close_breaker is not None:
        return _close(call, close_breaker)
    if free_account is not None:
        return _free(call, free_account)
    given = {"partition": partition, "args": runner_arg, "network": network, "limit_s": timeout_seconds}
    test = {name: value for name, value in given.items() if value is not None}
    if runner is None and test:
        raise UsageError("these options are for a test of nodes", hint=AtTerminal("add --runner slurm"))
    if runner is not None:
        found = _nodes(call, {**test, "runner": runner, "fix": fix})
        return _shown(call, found, [*found, conclusion_on(found)])
    root = call.root_if_any()
    found = examine(root, fix=fix)
    if fix and root is not None:
        _forget_seen(root)
    return _shown(call, found, found)


def _forget_seen(root: Root) -> None:
    """Forget which ends were looked at in tasks that are gone."""
    from agentctl.operations.discard.archiving import archived_tasks
    from agentctl.operations.fleet.seen import SeenEnds
    from agentctl.operations.where.ownership import has_own_tasks

    with contextlib.suppress(AgentctlError, OSError):  # What is in the way was told.
        if has_own_tasks(root):
            SeenEnds(root).forget_others([*root.task_ids(), *(task.id for task in archived_tasks(root))])


def _shown(call: Invocation, findings: list[Finding], shown: list[Finding]) -> Shown[list[FindingRow]]:
    """Show what was found.

    Args:
        shown: What a person reads of it; the last one is the verdict.
    """
    lines = (line for finding in shown for line in _lines(finding, call.place_words()))
    left = any(finding.is_error_left for finding in findings)
    return Shown([finding.to_json() for finding in findings], lines, code=ExitCode.REFUSED if left else ExitCode.DONE)


def _nodes(call: Invocation, test: dict[str, Any]) -> list[Finding]:
    from agentctl.operations.doctor.nodes import NodeTest, examine_nodes
    from agentctl.operations.where.locating import find_root_to_test

    def tell(line: str) -> None:
        if not call.json:
            call.note(plain(line))

    return examine_nodes(NodeTest(**test), find_root_to_test(call.root_named), tell)


def _close(call: Invocation, agent: str) -> Shown[ClosedBreaker]:
    from agentctl.operations.doctor.gates import close_breaker

    closed = close_breaker(call.task(), agent)
    text = f"{plain(closed.agent)} may be started again; it had failed {closed.failures} times ({closed.reason})"
    return Shown({"agent": closed.agent, "failures": closed.failures, "reason": closed.reason}, [text])


def _free(call: Invocation, name: str) -> Shown[FreedAccount]:
    from agentctl.operations.doctor.gates import free_account

    free_account(name, call.root_if_any())
    return Shown({"account": name}, [f"{plain(name)} may be used again: workers that wait for it start"])


def _lines(finding: Finding, place: list[str]) -> Iterator[str]:
    where = f" ({plain(finding.where)})" if finding.where else ""
    fixed = " [fixed]" if finding.fixed else ""
    yield f"{finding.severity}: {plain(finding.what)}{where}{fixed}"
    if finding.next and not finding.fixed:
        yield f"    {plain(in_same_place(finding.next, place))}"


COMMANDS = (
    Command(
        "doctor",
        doctor,
        IN_TASK,
        """
agentctl doctor
agentctl doctor --fix
agentctl doctor --close-breaker explore
agentctl doctor --runner slurm --network agents
agentctl doctor --runner slurm --partition short --runner-arg=--account=lab --timeout-seconds 600
""",
        (
            Parameter("fix", FLAG, "Repair what can be repaired safely."),
            Parameter(
                "close_breaker",
                TEXT,
                "Let an agent that failed too often be started again in the task's tree.",
                "AGENT",
                completes=FAILED_AGENTS,
            ),
            Parameter(
                "free_account",
                TEXT,
                "Let an account that is on hold be used again.",
                "ACCOUNT",
                completes=ACCOUNTS,
            ),
            Parameter(
                "runner",
                TEXT,
                "Test the nodes of a runner (slurm) by a probe.",
                "RUNNER",
                group=NODES,
                completes=ENGINES,
            ),
            Parameter("partition", TEXT, "The part of the cluster to test.", "PARTITION", group=NODES),
            Parameter("runner_arg", TEXTS, "An option for the engine, as for spawn.", "ARG", group=NODES),
            Parameter(
                "network",
                TEXTS,
                "Have a node connect there; `agents`: to the hosts that the agent programs here need.",
                "HOST:PORT",
                group=NODES,
            ),
            Parameter("timeout_seconds", SECONDS, "How long the probe may take; by default 60.", "N", group=NODES),
        ),
        exits=(ExitCode.NOT_FOUND,),
    ),
)

"""`doctor`: what is damaged, lost or left over, and what to do about it."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from agentctl.cli import options as opt
from agentctl.cli.advice import in_same_place
from agentctl.cli.invocation import Invocation
from agentctl.cli.render import note, plain
from agentctl.cli.verb import module, verb
from agentctl.errors import ExitCode, UsageError
from agentctl.operations.doctor.examining import examine
from agentctl.operations.where.findings import Finding

app = module()
NODES = "Nodes"


@verb(
    app,
    "doctor",
    exits=(ExitCode.NOT_FOUND,),
    examples="""
agentctl doctor
agentctl doctor --fix
agentctl doctor --close-breaker explore
agentctl doctor --runner slurm --network agents
agentctl doctor --runner slurm --partition short --runner-arg=--account=lab --timeout-seconds 600
""",
)
def doctor(
    call: opt.InTask,
    fix: Annotated[bool, typer.Option("--fix", help="Repair what can be repaired safely.")] = False,
    close_breaker: Annotated[
        str | None,
        typer.Option(
            "--close-breaker",
            metavar="AGENT",
            help="Let an agent that failed too often be started again in the task's tree.",
        ),
    ] = None,
    free_account: Annotated[
        str | None,
        typer.Option("--free-account", metavar="ACCOUNT", help="Let an account that is on hold be used again."),
    ] = None,
    runner: Annotated[
        str | None,
        typer.Option(
            "--runner", metavar="RUNNER", help="Test the nodes of a runner (slurm) by a probe.", rich_help_panel=NODES
        ),
    ] = None,
    partition: Annotated[
        str | None,
        typer.Option("--partition", metavar="NAME", help="The part of the cluster to test.", rich_help_panel=NODES),
    ] = None,
    runner_arg: Annotated[
        list[str] | None,
        typer.Option(
            "--runner-arg",
            metavar="ARG",
            help="An option for the engine, as for spawn; repeatable.",
            rich_help_panel=NODES,
        ),
    ] = None,
    network: Annotated[
        list[str] | None,
        typer.Option(
            "--network",
            metavar="HOST:PORT",
            help="Have a node connect there; `agents`: to what the agent programs here need. Repeatable.",
            rich_help_panel=NODES,
        ),
    ] = None,
    timeout_seconds: Annotated[
        float | None,
        typer.Option(
            "--timeout-seconds",
            metavar="N",
            parser=opt.seconds,
            help="How long the probe may take; 60.",
            rich_help_panel=NODES,
        ),
    ] = None,
) -> int:
    """Look for damage and leftovers, and repair what is safe to repair.

    Damaged files, lost and unsupervised workers, stray processes, missing programs, a login manager that
    kills processes at logout; which agent programs are installed, and whether their versions are the tested
    ones. Exits with 1 while an error remains.

    With --runner only the nodes are looked at: a probe is started on one as a worker would be, and tells what it finds
    there. A root on a network file system that passes is accepted: commands need no --force in it any more. --fix also
    ends launches that no worker wants.
    """
    if close_breaker is not None:
        return _close(call, close_breaker)
    if free_account is not None:
        return _free(call, free_account)
    given = {"partition": partition, "args": runner_arg, "network": network, "limit_s": timeout_seconds}
    test = {name: value for name, value in given.items() if value is not None}
    if runner is None and test:
        raise UsageError("these options are for a test of nodes", hint="--runner slurm names whose")
    if runner is not None:
        return _show(call, _nodes(call, {**test, "runner": runner, "fix": fix}))
    return _show(call, examine(call.root_if_any(), fix=fix))


def _show(call: Invocation, findings: list[Finding]) -> int:
    lines = (line for finding in findings for line in _lines(finding, call.place_words()))
    call.show([finding.to_json() for finding in findings], lines)
    left = any(finding.is_error_left for finding in findings)
    return ExitCode.REFUSED if left else ExitCode.DONE


def _nodes(call: Invocation, test: dict[str, Any]) -> list[Finding]:
    from agentctl.operations.doctor.nodes import NodeTest, examine_nodes
    from agentctl.operations.where.locating import find_root_to_test

    def tell(line: str) -> None:
        if not call.json:
            note(plain(line))

    return examine_nodes(NodeTest(**test), find_root_to_test(call.root_named), tell)


def _close(call: Invocation, agent: str) -> int:
    from agentctl.operations.doctor.gates import close_breaker

    closed = close_breaker(call.task(), agent)
    text = f"{plain(closed.agent)} may be started again; it had failed {closed.failures} times ({closed.reason})"
    call.show({"agent": closed.agent, "failures": closed.failures, "reason": closed.reason}, [text])
    return ExitCode.DONE


def _free(call: Invocation, name: str) -> int:
    from agentctl.operations.doctor.gates import free_account

    free_account(name, call.root_if_any())
    call.show({"account": name}, [f"{plain(name)} may be used again: workers that wait for it start"])
    return ExitCode.DONE


def _lines(finding: Finding, place: list[str]) -> Iterator[str]:
    where = f" ({plain(finding.where)})" if finding.where else ""
    fixed = " [fixed]" if finding.fixed else ""
    yield f"{finding.severity}: {plain(finding.what)}{where}{fixed}"
    if finding.next and not finding.fixed:
        yield f"    {plain(in_same_place(finding.next, place))}"

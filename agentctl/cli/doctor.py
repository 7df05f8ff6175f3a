"""`doctor`: what is damaged, lost or left over, and what to do about it."""

from collections.abc import Iterator
from typing import Annotated

import typer

from agentctl.cli import options as opt
from agentctl.cli.invocation import Invocation
from agentctl.cli.render import plain
from agentctl.cli.verb import module, verb
from agentctl.errors import ExitCode
from agentctl.operations.doctor.examining import examine
from agentctl.operations.where.findings import Finding

app = module()


@verb(
    app,
    "doctor",
    exits=(ExitCode.NOT_FOUND,),
    examples="agentctl doctor\nagentctl doctor --fix\nagentctl doctor --json\nagentctl doctor --close-breaker explore",
)
def doctor(
    call: opt.InTask,
    fix: Annotated[bool, typer.Option("--fix", help="Repair what can be repaired safely.")] = False,
    close_breaker: Annotated[
        str | None,
        typer.Option(metavar="AGENT", help="Let an agent that failed too often be started again in the task's tree."),
    ] = None,
    free_account: Annotated[
        str | None,
        typer.Option(metavar="ACCOUNT", help="Let an account that is on hold be used again."),
    ] = None,
) -> int:
    """Look for damage and leftovers, and repair what is safe to repair.

    Damaged files, lost and unsupervised workers, stray processes, missing programs, a login manager that
    kills processes at logout; which agent programs are installed, and whether their versions are the tested
    ones. Exits with 1 while an error remains.
    """
    if close_breaker is not None:
        return _close(call, close_breaker)
    if free_account is not None:
        return _free(call, free_account)
    findings = examine(call.root_if_any(), fix=fix)
    call.show([finding.to_json() for finding in findings], (line for finding in findings for line in _lines(finding)))
    left = any(finding.is_error_left for finding in findings)
    return ExitCode.REFUSED if left else ExitCode.DONE


def _close(call: Invocation, agent: str) -> int:
    from agentctl.operations.doctor.gates import close_breaker

    closed = close_breaker(call.task(), agent)
    text = f"{plain(closed.agent)} may be started again; it had failed {closed.failures} times ({closed.reason})"
    call.show({"agent": closed.agent, "failures": closed.failures, "reason": closed.reason}, [text])
    return ExitCode.DONE


def _free(call: Invocation, name: str) -> int:
    from agentctl.operations.doctor.gates import free_account

    free_account(name)
    call.show({"account": name}, [f"{plain(name)} may be used again: workers that wait for it start"])
    return ExitCode.DONE


def _lines(finding: Finding) -> Iterator[str]:
    where = f" ({plain(finding.where)})" if finding.where else ""
    fixed = " [fixed]" if finding.fixed else ""
    yield f"{finding.severity}: {plain(finding.what)}{where}{fixed}"
    if finding.next and not finding.fixed:
        yield f"    {plain(finding.next)}"

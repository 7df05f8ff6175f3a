"""`doctor`: what is damaged, lost or left over, and what to do about it."""

from typing import Annotated

import typer

from agentctl.adapters.taskdir import TaskDir
from agentctl.cli import options as opt
from agentctl.cli.render import out, out_json, plain
from agentctl.cli.verb import module, verb
from agentctl.errors import ExitCode, NotFound
from agentctl.operations.doctor.examining import examine
from agentctl.operations.where.findings import Finding
from agentctl.operations.where.locating import find_root, find_task

app = module()


@verb(
    app,
    "doctor",
    exits=(ExitCode.NOT_FOUND,),
    examples="agentctl doctor\nagentctl doctor --fix\nagentctl doctor --json\nagentctl doctor --close-breaker explore",
)
def doctor(
    fix: Annotated[bool, typer.Option("--fix", help="Repair what can be repaired safely.")] = False,
    close_breaker: Annotated[
        str | None,
        typer.Option(metavar="AGENT", help="Let an agent that failed too often be started again in the task's tree."),
    ] = None,
    free_account: Annotated[
        str | None,
        typer.Option(metavar="ACCOUNT", help="Let an account be used again that is left alone."),
    ] = None,
    task: opt.Task = None,
    root: opt.Root = None,
    force: opt.Force = False,
    json: opt.Json = False,
) -> int:
    """Look for damage and leftovers, and repair what is safe.

    Damaged files, lost and unsupervised workers, stray processes, missing programs, a login manager that
    kills processes at logout; which agent programs are installed, and whether their versions are the tested
    ones. Exits with 1 while an error is left.
    """
    if close_breaker is not None:
        return _close(find_task(task, root=root, force=force), close_breaker, json)
    if free_account is not None:
        return _free(free_account, json)
    try:
        found = find_root(root, force=force)
    except NotFound:
        if root is not None:
            raise
        found = None  # the machine can be examined without a root
    findings = examine(found, fix=fix)
    if json:
        out_json([finding.to_json() for finding in findings])
    else:
        for finding in findings:
            _show(finding)
    left = any(finding.is_error_left for finding in findings)
    return ExitCode.REFUSED if left else ExitCode.DONE


def _close(place: TaskDir, agent: str, json: bool) -> int:
    from agentctl.operations.doctor.gates import close_breaker

    closed = close_breaker(place, agent)
    if json:
        out_json({"agent": closed.agent, "failures": closed.failures, "reason": closed.reason})
    else:
        out(f"{plain(closed.agent)} may be started again; it had failed {closed.failures} times ({closed.reason})")
    return ExitCode.DONE


def _free(name: str, json: bool) -> int:
    from agentctl.operations.doctor.gates import free_account

    free_account(name)
    if json:
        out_json({"account": name})
    else:
        out(f"nothing is known of {plain(name)} any more: who waits for it starts")
    return ExitCode.DONE


def _show(finding: Finding) -> None:
    where = f" ({plain(finding.where)})" if finding.where else ""
    fixed = " [fixed]" if finding.fixed else ""
    out(f"{finding.severity}: {plain(finding.what)}{where}{fixed}")
    if finding.next and not finding.fixed:
        out(f"    {plain(finding.next)}")

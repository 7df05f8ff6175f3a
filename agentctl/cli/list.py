"""`list`: the workers of a task."""

from agentctl.cli import options as opt
from agentctl.cli.listed import show
from agentctl.cli.verb import module, verb

app = module()


@verb(app, "list", examples="agentctl list\nagentctl list --recursive\nagentctl list --json --task survey-auth")
def list_command(
    recursive: opt.Recursive = False,
    task: opt.Task = None,
    root: opt.Root = None,
    force: opt.Force = False,
    json: opt.Json = False,
) -> None:
    """List the workers of a task and their status.

    To a pipe, a line each: instance, status, reason, seconds, progress, command, with tabs between and `-`
    for nothing; with --recursive the instance stands as task/instance. Starts nothing and waits for nothing.
    """
    show(**locals())

"""`list`, `show`: the workers of a task, and everything about one of them."""

from agentctl.cli import options as opt
from agentctl.cli.listed import print_workers as show_list
from agentctl.cli.listed import show_across as show_list_across
from agentctl.cli.render import outline
from agentctl.cli.verb import module, verb
from agentctl.operations.show.one_worker import show_worker

app = module()
#: How much of a value, such as the arguments of a worker, `show` shows to a person.
_LONGEST = 4000


@verb(
    app,
    "list",
    examples="""
agentctl list
agentctl list --recursive
agentctl list --json --task survey-auth
agentctl list --hosts all
""",
)
def list_command(call: opt.InTask, recursive: opt.Recursive = False, hosts: opt.Hosts = None) -> int:
    """List the workers of a task and their status.

    To a pipe, one line each: instance, status, reason, seconds, progress, command, separated by tabs, with `-` for
    nothing; with --recursive the instance is written as task/instance; with --hosts
    the host stands in front. Starts nothing and waits for nothing.
    """
    if hosts is not None:
        return show_list_across(call, hosts, recursive=recursive)
    return show_list(call, recursive=recursive)


@verb(app, "show", examples="agentctl show explore-1\nagentctl show explore-1 --json")
def show_command(call: opt.InTask, instance: opt.Instance) -> None:
    """Show everything that is known about one worker.

    Its status, what it was started with, its processes, its questions, how it ended, and where its files are.
    Of a long value the beginning is shown; --json has all of it.
    """
    worker = show_worker(call.task_to_show(), instance)
    call.show(worker, outline(worker, longest=_LONGEST))

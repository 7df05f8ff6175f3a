"""`show`: everything that is known of one worker."""

from agentctl.cli import options as opt
from agentctl.cli.render import note_foreign, out, out_json, outline
from agentctl.cli.verb import module, verb
from agentctl.operations.show.listing import show_worker
from agentctl.operations.where.locating import find_task

app = module()


@verb(app, "show", examples="agentctl show explore-1\nagentctl show explore-1 --json")
def show(
    instance: opt.Instance,
    task: opt.Task = None,
    root: opt.Root = None,
    force: opt.Force = False,
    json: opt.Json = False,
) -> None:
    """Show everything that is known of one worker.

    Its status, what it was started with, its processes, its questions, how it ended, and where its files are.
    """
    told = show_worker(note_foreign(find_task(task, root=root, force=force)), instance)
    if json:
        out_json(told)
        return
    for line in outline(told):
        out(line)

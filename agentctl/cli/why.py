"""`why`: why a worker is in its state, and from which files, locks and processes that follows."""

from agentctl.cli import options as opt
from agentctl.cli.verb import module, verb
from agentctl.operations.show.why import why_worker
from agentctl.text.why import why_lines

app = module()


@verb(app, "why", examples="agentctl why explore-1\nagentctl why explore-1 --json")
def why(call: opt.InTask, instance: opt.Instance) -> None:
    """Say why a worker is in its state, from which evidence, and what would change it.

    Below each sentence stand the files, locks, processes and events from which it follows. The first line says since
    when. What cannot be known from here is called unknown. Starts nothing.
    """
    found = why_worker(call.task_to_show(), instance)
    call.show(found.to_json(), why_lines(found))

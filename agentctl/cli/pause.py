"""`pause`, `unpause`: stop a worker's processes and its clock, and let them go on."""

from typing import Any

from agentctl.cli import options as opt
from agentctl.cli.render import out, out_json
from agentctl.cli.verb import module, verb
from agentctl.operations.stop.pausing import pause_worker, unpause_worker
from agentctl.operations.where.locating import find_task

app = module()


@verb(app, "pause", examples="agentctl pause explore-1\nagentctl pause explore-1 --json")
def pause(
    instance: opt.Instance,
    task: opt.Task = None,
    root: opt.Root = None,
    force: opt.Force = False,
    json: opt.Json = False,
) -> None:
    """Stop all processes of a worker, and its clock.

    It keeps its slot. A paused worker can be cancelled.
    """
    _tell(pause_worker(find_task(task, root=root, force=force), instance), "paused", json)


@verb(app, "unpause", examples="agentctl unpause explore-1\nagentctl unpause explore-1 --json")
def unpause(
    instance: opt.Instance,
    task: opt.Task = None,
    root: opt.Root = None,
    force: opt.Force = False,
    json: opt.Json = False,
) -> None:
    """Let a paused worker go on."""
    _tell(unpause_worker(find_task(task, root=root, force=force), instance), "goes on", json)


def _tell(done: dict[str, Any], word: str, json: bool) -> None:
    if json:
        out_json(done)
        return
    below = done.get("withIt")
    out(f"{done['agentInstance']} {word}" + (f", with {', '.join(below)}" if below else ""))

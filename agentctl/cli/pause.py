"""`pause`, `unpause`: stop a worker's processes and its clock, and let them continue."""

from typing import Any

from agentctl.cli import options as opt
from agentctl.cli.invocation import Invocation
from agentctl.cli.verb import module, verb
from agentctl.operations.stop.pausing import pause_worker, unpause_worker

app = module()


@verb(app, "pause", examples="agentctl pause explore-1\nagentctl pause explore-1 --json")
def pause(call: opt.InTask, instance: opt.Instance) -> None:
    """Stop all processes of a worker, and its clock.

    It keeps its slot. A paused worker can be cancelled.
    """
    _show(call, pause_worker(call.task(), instance), "paused")


@verb(app, "unpause", examples="agentctl unpause explore-1\nagentctl unpause explore-1 --json")
def unpause(call: opt.InTask, instance: opt.Instance) -> None:
    """Let a paused worker continue."""
    _show(call, unpause_worker(call.task(), instance), "goes on")


def _show(call: Invocation, result: dict[str, Any], word: str) -> None:
    below = result.get("withIt")
    call.show(result, [f"{result['agentInstance']} {word}" + (f", with {', '.join(below)}" if below else "")])

"""Where a worker is to run: as command, definition, starting worker, task or root says, in this order."""

from __future__ import annotations

from collections.abc import Mapping

from agentctl.domain.placement import (
    LOCAL,
    Placement,
    Resources,
    check_resources,
    check_runner,
    placement_from,
    seconds_of,
)
from agentctl.errors import Argument, Refused, UsageError, WithArguments
from agentctl.lean import TYPE_CHECKING, Any
from agentctl.operations.start.requests import SpawnRequest
from agentctl.operations.where.calling import Caller, is_from_worker
from agentctl.operations.where.personal_config import RUNNERS, section
from agentctl.supervision.worker.spec import read_spec

if TYPE_CHECKING:
    from agentctl.operations.start.agent_order import Ordered
    from agentctl.operations.start.batch_findings import Surroundings


def placement_for(
    request: SpawnRequest, ordered: Ordered | None, parent: Caller | None, around: Surroundings
) -> dict[str, Any] | None:
    """Return how a worker is placed on a node, as its spec keeps it; None if it runs on this machine.

    Raises:
        UsageError, NotFound, Refused: It cannot be placed like this.
    """
    asked = _asked(request)
    defined = dict(ordered.running) if ordered is not None else {}
    of_task = around.running_of_task
    above = _placement_above(parent)
    nearer = asked.get("runner") or defined.get("runner") or above.get("runner") or of_task.get("runner")
    of_root = around.running_of_root if nearer != LOCAL else {}
    runner = str(nearer or of_root.get("runner") or LOCAL)
    if runner == LOCAL:
        if extra := sorted(name for name in asked if name != "runner"):
            what = extra[0].removesuffix("_s").replace("args", "runner_arg")
            raise UsageError(
                WithArguments(Argument(what), " is for a worker on a node"),
                hint=WithArguments(Argument("runner", "slurm"), " places it on one"),
            )
        return None
    _refuse_args_of_agents(asked, parent)
    resources = {**of_root, **of_task, **defined, **asked, "runner": check_runner(runner)}
    settings = {**_settings_above(above, runner), **section(RUNNERS).get(runner, {})}
    placement = Placement(**{**settings, **resources})
    check_resources(placement)
    from agentctl.runners.registry import load

    load(runner).check(placement)
    return placement.to_json()


def _asked(request: SpawnRequest) -> Resources:
    """Return what a request says itself."""
    found: Resources = {
        "runner": request.runner, "cpus": request.cpus, "memory": request.memory, "gpus": request.gpus,
        "time_s": None if request.time is None else seconds_of(request.time), "partition": request.partition,
        "args": list(request.runner_arg) or None,
    }  # fmt: skip
    return {name: value for name, value in found.items() if value is not None}


def asked_again(placement: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the fields of a request that asks for the same as an earlier run, which was placed like this."""
    if placement is None:
        return {}
    placed = placement_from(placement)
    time = None if placed.time_s is None else f"{placed.time_s}s"
    return {
        "runner": placed.runner, "cpus": placed.cpus, "memory": placed.memory, "gpus": placed.gpus, "time": time,
        "partition": placed.partition, "runner_arg": placed.args,
    }  # fmt: skip


def _placement_above(parent: Caller | None) -> Mapping[str, Any]:
    """Return how the starting worker was placed: what it starts runs where it runs itself."""
    return (read_spec(parent.worker.spec).placement or {}) if parent is not None else {}


def _settings_above(above: Mapping[str, Any], runner: str) -> dict[str, Any]:
    """Return how the engine is asked, as for the starting worker: its person's config.yaml may not be where it runs."""
    names = ("poll_s", "silence_s", "folder", "python", "ahead")
    return {name: above[name] for name in names if name in above} if above.get("runner") == runner else {}


def _refuse_args_of_agents(asked: Resources, parent: Caller | None) -> None:
    """Refuse options of the engine from an agent: they can make files, and run what no rule has allowed."""
    if "args" in asked and (parent is not None or is_from_worker()):
        raise Refused(
            "only a person may pass options to the engine: runner-arg",
            hint="leave it out; or leave it to whoever started you",
        )

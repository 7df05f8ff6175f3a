"""What a monitor reads at /metrics, in the text format of Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from agentctl.domain.states import Status
from agentctl.domain.worker.need import Need
from agentctl.interfaces.web.connections import Connections
from agentctl.operations.fleet.glance import Glance


def metrics_of(glance: Glance, connections: Connections) -> str:
    """Return the text."""
    return "\n".join([*_lines(glance, connections), ""])


def _lines(glance: Glance, connections: Connections) -> Iterator[str]:
    rows = [one.row for one in glance.workers.values() if not one.row.get("observed")]
    by_status, by_need = Counter(row["status"] for row in rows), Counter(one.need for one in glance.workers.values())
    yield from _family("agentctl_workers", "gauge", "Workers by status.",
                       {f'{{status="{status}"}}': by_status[status] for status in Status})  # fmt: skip
    yield from _family("agentctl_needs", "gauge", "Workers by what a person has to do about them.",
                       {f'{{need="{need.name.lower()}"}}': by_need[need] for need in Need})  # fmt: skip
    yield from _family("agentctl_questions_open", "gauge", "Questions that wait for an answer.",
                       {"": sum(len(one.questions) for one in glance.workers.values())})  # fmt: skip
    yield from _family("agentctl_tasks", "gauge", "Tasks of the root.", {"": len(glance.tasks)})
    tops = [task.totals for task in glance.tasks.values() if task.parent is None]
    yield from _family("agentctl_tokens", "gauge", "Tokens that the workers have used, without cached ones.",
                       {"": sum(totals.tokens for totals in tops)})  # fmt: skip
    yield from _family("agentctl_cost_usd", "gauge", "What they cost, as far as that is known.",
                       {"": sum(totals.cost_usd or 0 for totals in tops)})  # fmt: skip
    yield from _family("agentctl_connections_open", "gauge", "Connections that are open.", {"": connections.open})
    for name, number in (("accepted", connections.accepted), ("refused", connections.refused),
                         ("displaced", connections.displaced), ("timed_out", connections.timed_out)):  # fmt: skip
        yield from _family(f"agentctl_connections_{name}_total", "counter", f"Connections {name}.", {"": number})


def _family(name: str, kind: str, help_: str, values: Mapping[str, float]) -> Iterator[str]:
    yield f"# HELP {name} {help_}"
    yield f"# TYPE {name} {kind}"
    for labels, value in values.items():
        yield f"{name}{labels} {value}"

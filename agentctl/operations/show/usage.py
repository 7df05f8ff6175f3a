"""What the workers of a tree of tasks have used, and how much its limits leave."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from agentctl.adapters.clock import iso_of
from agentctl.adapters.taskdir import TaskDir
from agentctl.adapters.treedir import tree_of
from agentctl.domain.tree.breaker import breakers
from agentctl.domain.tree.budget import Spent, total
from agentctl.domain.tree.limits import KEYS
from agentctl.domain.worker.projection import WorkerView
from agentctl.domain.worker.worktime import time_at_work
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.show.current_state import read_task
from agentctl.operations.where.task_config import usable_config
from agentctl.supervision.account.accounts import all_accounts, folder_of_accounts, model_of
from agentctl.supervision.account.holds import held_now, windows_of
from agentctl.supervision.account.ledger import Ledger
from agentctl.supervision.worker.failures import failed_ago

if TYPE_CHECKING:
    from agentctl.domain.documents.views import (
        AccountUsage,
        AccountWindow,
        TreeUsageReport,
        UsageFigures,
        WorkerUsage,
    )

T = TypeVar("T")

_TREE_LIMITS = ("max_tokens", "max_cost_usd", "max_workers", "max_wall_seconds")


class _Row:
    """A worker and what it has used."""

    def __init__(self, ledger: Ledger, task_id: str, worker: WorkerView) -> None:
        self.task_id, self.worker = task_id, worker
        worker_dir = ledger.tree.sibling(task_id).worker(worker.instance)
        self.spent = ledger.spent_by(worker_dir) if worker.driver is not None else Spent()
        self.model = model_of(worker_dir) if worker.driver is not None else None
        self.wall_s = time_at_work([ledger.times.of(worker_dir)])

    def to_json(self) -> WorkerUsage:
        """Return the row that `usage --json` prints."""
        return {
            "taskId": self.task_id, "agentInstance": self.worker.instance, "agent": self.worker.agent,
            "status": self.worker.status, **_figures([self]), "wallSeconds": round(self.wall_s, 3),
        }  # fmt: skip


def read_usage(task: TaskDir, *, recursive: bool = True) -> TreeUsageReport:
    """Return the usage of the tree of tasks that a task belongs to; without `recursive`, rows of that task only."""
    ledger = Ledger(tree_of(task))
    for name in list(ledger.update().facts.views):
        read_task(ledger.tree.sibling(name))  # Records proven ends: a lost worker is not at work.
    facts = ledger.update().facts
    names = [name for name in facts.views if recursive or name == task.id]
    rows_of = {name: [_Row(ledger, name, one) for one in facts.views[name].workers.values()] for name in names}
    rows = [row for name in names for row in rows_of[name]]
    limits, account = usable_config(ledger.tree).limits, ledger.account()._replace(wall_s=ledger.wall_s())
    return {
        "rootTaskId": ledger.tree.id,
        "workers": [row.to_json() for row in rows],
        "agents": [{"agent": agent, **_figures(of)} for agent, of in _grouped(rows, lambda row: row.worker.agent)],
        "models": [
            {"model": model, **_figures(of)}
            for model, of in _grouped([row for row in rows if row.worker.driver is not None], lambda row: row.model)
        ],
        "tasks": [
            {"taskId": name, **_figures(rows_of[name]),
             "wallSeconds": round(ledger.wall_of(name), 3)}
            for name in names
        ],
        "total": {**account.spent.figures(), "workers": account.workers,
                  "wallSeconds": round(account.wall_s, 3)},
        "limits": {KEYS[field]: getattr(limits, field) for field in _TREE_LIMITS if getattr(limits, field)},
        "left": {key: round(value, 6) for key, value in account.left(limits).items()},
        "reservedUsd": account.reserved_usd,
        "accounts": _accounts(),
        "breakers": [
            {"agent": one.agent, "failures": one.failures, "reason": one.reason,
             "open": one.left(limits, failed_ago(ledger.tree, one.agent)) > 0}
            for one in breakers(facts.ends()).values()
        ],
    }  # fmt: skip


def _accounts() -> list[AccountUsage]:
    """Return the usage windows of this user's accounts, as last reported."""
    found: list[AccountUsage] = []
    for account in all_accounts(folder_of_accounts()):
        hold = held_now(account, any_model=True)
        windows: list[AccountWindow] = [
            {
                "window": one.name,
                "usedPercent": one.used_percent,
                "resetsAt": None if one.resets_at is None else iso_of(one.resets_at),
                "isRejected": one.is_rejected,
            }
            for one in windows_of(account)
        ]
        if windows or hold:
            found.append({"account": account.name, "windows": windows, "held": hold.to_json() if hold else None})
    return found


def _grouped(rows: Iterable[_Row], key: Callable[[_Row], T]) -> Iterable[tuple[T, list[_Row]]]:
    found: dict[T, list[_Row]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found.items()


def _figures(rows: Iterable[_Row]) -> UsageFigures:
    rows = list(rows)
    return {**total(row.spent for row in rows).figures(), "workers": len(rows)}

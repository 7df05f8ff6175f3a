"""What a person writes who has had a client generated from the description of the interface: with typed answers.

`python client_script.py URL TOKEN`, in an environment with `agentctl_client`. It prints what it has been told.
"""

from __future__ import annotations

import sys
import time
from typing import TypeVar

from agentctl_client import AuthenticatedClient
from agentctl_client.api.default import (
    cancel_one,
    interact_list,
    interact_respond,
    new,
    result,
    spawn,
    spawn_batch,
    wait,
)
from agentctl_client.models import (
    CancelledTree,
    CancelledWorker,
    CancelOneBody,
    ChosenTask,
    EndedWorker,
    InteractRespondBody,
    NewBody,
    Problem,
    RecordedAnswer,
    SpawnBatchBody,
    SpawnBatchBodyWorkersItem,
    SpawnBody,
    SpawnedWorker,
    TimedOutWait,
    WaitBody,
    WorkerResult,
)

T = TypeVar("T")


def told(answer: object, kind: type[T]) -> T:
    """Return an answer that has to be of a type."""
    if isinstance(answer, Problem):
        raise SystemExit(f"{answer.detail} ({answer.hint})")
    if not isinstance(answer, kind):
        raise SystemExit(f"this is not a {kind.__name__}: {answer!r}")
    return answer


def main(url: str, token: str) -> None:
    """Make a task, start workers, answer one, stop one, and read what the other has left."""
    client = AuthenticatedClient(base_url=url, token=token, timeout=None)
    task = told(new.sync(client=client, body=NewBody(title="Typed", id="typed")), ChosenTask)

    asks = SpawnBody(argv=["agentctl", "interact", "ask", "--kind", "confirm", "Go on?"], name="asks")
    asking = told(spawn.sync(task.task_id, client=client, body=asks), SpawnedWorker)
    sleeps = SpawnBody(argv=["sleep", "600"], name="sleeps")
    sleeping = told(spawn.sync(task.task_id, client=client, body=sleeps), SpawnedWorker)

    few = SpawnBatchBody(workers=[SpawnBatchBodyWorkersItem(argv=["true"], timeout_seconds=60) for _ in range(2)])
    both = spawn_batch.sync(task.task_id, client=client, body=few)
    if not isinstance(both, list):
        raise SystemExit(f"not started: {both!r}")
    names: list[str] = [one.agent_instance for one in both]
    told(wait.sync(task.task_id, names[0], client=client, body=WaitBody()), EndedWorker)
    too_soon = WaitBody(timeout_seconds=0)
    late = told(wait.sync(task.task_id, asking.agent_instance, client=client, body=too_soon), TimedOutWait)
    assert [row.agent_instance for row in late.workers] == [asking.agent_instance]

    while not (questions := interact_list.sync(task.task_id, client=client)):
        time.sleep(0.05)
    if isinstance(questions, Problem):
        raise SystemExit(questions.detail)
    (question,) = questions
    answered = told(
        interact_respond.sync(
            task.task_id, question.agent_instance, question.id, client=client, body=InteractRespondBody(answer="yes")
        ),
        RecordedAnswer,
    )
    ended = told(wait.sync(task.task_id, asking.agent_instance, client=client, body=WaitBody()), EndedWorker)
    left = told(result.sync(task.task_id, asking.agent_instance, client=client), WorkerResult)
    stopped = cancel_one.sync(task.task_id, sleeping.agent_instance, client=client, body=CancelOneBody())
    if not isinstance(stopped, CancelledWorker | CancelledTree):
        raise SystemExit(f"not cancelled: {stopped!r}")
    code: int | None = ended.exit_code
    print(answered.answer, ended.status.value, code, left.text.strip(), stopped.status, sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

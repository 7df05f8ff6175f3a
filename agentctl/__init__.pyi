from agentctl.api.answering import OnQuestion as OnQuestion
from agentctl.api.executor import TaskExecutor as TaskExecutor
from agentctl.api.options import SpawnOptions as SpawnOptions
from agentctl.api.questions import Question as Question
from agentctl.api.task import Task as Task
from agentctl.api.verbs import cancel as cancel
from agentctl.api.verbs import respond as respond
from agentctl.api.verbs import spawn as spawn
from agentctl.api.verbs import wait_any as wait_any
from agentctl.domain.states import EndStatus as EndStatus
from agentctl.domain.states import Status as Status
from agentctl.domain.worker_row import WorkerRow as WorkerRow
from agentctl.errors import AgentctlError as AgentctlError
from agentctl.errors import NoFreeSlot as NoFreeSlot
from agentctl.errors import NotFound as NotFound
from agentctl.errors import NothingLeft as NothingLeft
from agentctl.errors import Refused as Refused
from agentctl.errors import UsageError as UsageError
from agentctl.errors import WaitStopped as WaitStopped
from agentctl.errors import WaitTimedOut as WaitTimedOut
from agentctl.operations.delegate.delegating import TaskResult as TaskResult
from agentctl.operations.delegate.delegating import TaskStatus as TaskStatus
from agentctl.operations.show.subtask_answer import SubtaskEnd as SubtaskEnd
from agentctl.operations.start.requests import Spawned as Spawned
from agentctl.operations.stop.cancelling import Cancelled as Cancelled
from agentctl.operations.wait.waiting import WaitedEnd as WaitedEnd

__version__: str

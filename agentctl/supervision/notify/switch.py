"""Has a sender started when there may be something to tell; kept by the shim of an armed tree, or by a wait.

The switch of a tree is a file in memory, beside the environments of the queue, which neither a clone nor a sandbox can
write. It holds all that a sender needs (`armed`), and is made by commands of the person, who alone define targets. A
shim that does not find it loads nothing of this wing.
"""

from __future__ import annotations

from agentctl.adapters.clock import monotonic
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import TaskDir, TreeDir
from agentctl.supervision.notify.sender_start import AGAIN_S, has_news, is_long_ago, see_to_sender
from agentctl.supervision.worker.environment import switch_of


class Switch:
    """The switch of a tree of tasks, looked at again and again.

    Args:
        folder: Where the environments of queued workers wait.
    """

    def __init__(self, tree: TreeDir, folder: FilePath) -> None:
        self._tree, self._folder = tree, folder
        self._file = switch_of(folder, tree.nonce())
        self._read: dict[str, int] = {}
        #: When it starts a sender without news again: the files say when one came last, and a worker may change them.
        self._again = 0.0

    @property
    def is_there(self) -> bool:
        """Return whether anybody is to be told of this tree."""
        return self._file.exists()

    def look(self, task: TaskDir) -> int | None:
        """Have a sender look if one is due by the log of a task of the tree; for about once a second.

        Returns the pid of the sender that was started.
        """
        return self.start() if self.is_due(task) else None

    def is_due(self, task: TaskDir) -> bool:
        """Return whether a sender is due: by what was added to the log of a task since the last look, or by time."""
        if not self._file.exists():
            return False
        is_due = has_news(task, self._read)
        if monotonic() >= self._again and is_long_ago(self._tree):
            is_due, self._again = True, monotonic() + AGAIN_S
        return is_due

    def start(self) -> int | None:
        """Start a sender, unless the tree has one; return its pid."""
        return see_to_sender(self._tree, self._folder)

    def tell(self) -> None:
        """Have a sender look: something has just ended."""
        if self._file.exists():
            see_to_sender(self._tree, self._folder)

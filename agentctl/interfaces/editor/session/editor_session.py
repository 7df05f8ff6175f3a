"""A session of a client: what was chosen for it, its worker once it has one, and the turn that is under way."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection
from dataclasses import dataclass, field

from agentctl.adapters.taskdir import WorkerDir
from agentctl.interfaces.editor.session.client_servers import ClientServers
from agentctl.interfaces.editor.session.held_workers import hold_worker
from agentctl.interfaces.editor.session.prompt_keys import PromptKeys
from agentctl.interfaces.editor.session.session_options import Choices
from agentctl.interfaces.editor.session.session_view import EditorConversation, EditorQuestion


class Turn:
    """A prompt that is not answered yet.

    Args:
        request: The id of the client's request.
    """

    def __init__(self, request: object = None) -> None:
        self.request = request
        #: The client wants it to end.
        self.is_cancelled = False
        #: The run that has the prompt; None until it is started.
        self.worker: WorkerDir | None = None
        #: The questions that the client shows, or was told of, by their names.
        self.dialogs: dict[str, asyncio.Task[None]] = {}
        #: The dialogs that are being withdrawn.
        self.closing: list[asyncio.Task[None]] = []
        #: Questions that the client has only as texts, by their names: the next prompt answers the first one.
        self.in_words: dict[str, EditorQuestion] = {}

    def withdraw(self, names: Collection[str] | None = None) -> None:
        """Begin to withdraw dialogs, or all of them: where their questions are open later, they are shown anew."""
        for name in [*self.dialogs] if names is None else names:
            dialog = self.dialogs.pop(name)
            dialog.cancel()
            self.closing.append(dialog)


@dataclass
class EditorSession:
    """One session."""

    id: str
    cwd: str
    choices: Choices
    #: The newest run of its agent; None before the first prompt.
    worker: WorkerDir | None = None
    #: Holds that run as this process's (`held_workers`); None if it does not.
    held: int | None = None
    conversation: EditorConversation = field(default_factory=EditorConversation)
    turn: Turn | None = None
    #: What the next prompt answers, while it is open.
    asks: EditorQuestion | None = None
    #: The client's own MCP servers.
    servers: ClientServers = field(default_factory=lambda: ClientServers({}, {}))
    #: What its user should know with the next prompt.
    notes: tuple[str, ...] = ()
    #: The client has closed it: whatever run it still gets is cancelled, and not held.
    is_closed: bool = False
    keys: PromptKeys = field(init=False)

    def __post_init__(self) -> None:
        """Have keys for its prompts."""
        self.keys = PromptKeys(self.id)

    def go_on_with(self, worker: WorkerDir) -> None:
        """Note the run that has the newest prompt, and hold it."""
        if self.worker is None or self.worker.path != worker.path:
            self.let_go()
        self.worker = worker
        if self.held is None and not self.is_closed:
            self.held = hold_worker(worker)

    def let_go(self) -> None:
        """Hold its worker no longer."""
        if self.held is not None:
            os.close(self.held)
            self.held = None

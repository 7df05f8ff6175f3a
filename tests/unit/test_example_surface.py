"""At stake: a further surface is one file: it reads the rows of commands and carries them out, with no rule of its own.

The surface here is a box of letters: a letter names a command and its values, the reply has the documents that it
shows, the notes, and the exit code.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from agentctl.domain.question import offered, question_in, question_within
from agentctl.errors import AgentctlError, ExitCode
from agentctl.interfaces.commands.model.catalogue import command_by_words
from agentctl.interfaces.commands.model.command_model import Raw, Screenful, Shown, take_each
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import JSON
from agentctl.interfaces.commands.model.surface import Unseen
from tests.commands import all_commands
from tests.support import wait_until, worker


class Reply(NamedTuple):
    """What comes back."""

    documents: list[Any]
    notes: list[str]
    code: int


class Letterbox(Unseen):
    """The surface: it takes letters, and keeps what a command notes beside its documents."""

    def __init__(self, root: Path) -> None:
        self._root, self._notes = str(root), list[str]()

    def send(self, words: str, task: str | None = None, /, **values: Any) -> Reply:
        """Have a command carried out."""
        command, documents, self._notes = command_by_words(words), list[Any](), []
        needs = {one.name for one in command.needs}
        place: dict[str, Any] = {"task": task, "root": self._root, JSON.name: True}
        call = Invocation(self, **{name: value for name, value in place.items() if name in needs})

        def take(item: Shown[Any] | Raw | Screenful) -> None:
            if isinstance(item, Shown):
                documents.append(list(item.value) if isinstance(item.value, Iterator) else item.value)

        try:
            code = take_each(command.carry_out(call, **values), take)
        except AgentctlError as error:
            self.note(error.message)
            code = error.exit_code
        return Reply(documents, self._notes, code)

    def note(self, line: str) -> None:
        """Keep what a command tells beside its documents."""
        self._notes.append(line)


def test_letters_make_a_task_start_a_worker_and_have_its_result(root: Path) -> None:
    box = Letterbox(root)
    made = box.send("new", title="Letters", task_id="letters")
    assert (made.documents[0]["taskId"], made.code) == ("letters", 0)
    started = box.send("spawn", "letters", command=worker("exits", 3), name="a")
    assert (started.documents[0]["agentInstance"], started.code) == ("a", 0)
    waited = box.send("wait", "letters", instances=["a"], timeout_seconds=30.0)
    assert (waited.documents[0]["exitCode"], waited.code) == (3, ExitCode.UNSUCCESSFUL)
    assert [row["status"] for row in box.send("list", "letters").documents[0]] == ["failed"]
    assert box.send("result", "letters", instances=["a"]).code == ExitCode.UNSUCCESSFUL
    refused = box.send("why", "letters", instances=["nobody"])
    assert (refused.documents, refused.code, bool(refused.notes)) == ([], ExitCode.NOT_FOUND, True)


def test_a_question_is_answered_with_what_may_be_offered(root: Path) -> None:
    box = Letterbox(root)
    box.send("new", title="Letters", task_id="letters")
    box.send("spawn", "letters", command=worker("asks", "--kind", "confirm", "Go on?"), name="a")
    (row,) = wait_until(lambda: box.send("interact list", "letters").documents[0], what="the question")
    question = question_in(row["id"], row)
    assert question is not None
    choices = [one.id for one in offered(question, question_within(question, 200))]
    answered = box.send("interact respond", "letters", words=["a", choices[0]], question_id=question.id)
    assert (answered.documents[0]["answer"], answered.code) == (choices[0], 0)
    assert box.send("wait", "letters", instances=["a"], timeout_seconds=30.0).code == 0


def test_a_surface_lists_all_commands_with_their_parameters() -> None:
    listed = {words: [one.key for one in command.parameters] for words, command in all_commands().items()}
    assert len(listed) > 50
    assert listed["interact respond"] == ["words", "id", "reason", "hosts"]

"""`--hosts`: what several hosts answer to one command, in one list that says of each row where it is from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from agentctl.domain.names import first_of
from agentctl.domain.question import question_in
from agentctl.domain.text.plaintext import plain
from agentctl.errors import AtTerminal, ExitCode, NotFound, Refused, UsageError
from agentctl.interfaces.commands.model.command_model import Raw, Showing, Shown, Table
from agentctl.interfaces.commands.model.far_line import far_line
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.parts.question_lines import TypedAnswer, confirm
from agentctl.interfaces.hosts.host_names import hosts_named
from agentctl.interfaces.hosts.hosts_asked import HostAnswer, ask_all, ask_host, rows_in
from agentctl.interfaces.words.outline import fields
from agentctl.lean import TYPE_CHECKING, Any, Generic, TypeVar
from agentctl.operations.talk.interacting import OpenQuestion
from agentctl.operations.where.lineage import shown_caller

if TYPE_CHECKING:
    from agentctl.domain.documents.hosts import FailedHost

Row = dict[str, Any]
#: A row as this version shows it; what `form` takes of a row of a host is of this form, whatever else is in it.
R = TypeVar("R", bound=Mapping[str, object], default=Any)
#: What goes wrong where a row is not of the form that it has here.
_MISFORMED = (KeyError, TypeError, ValueError, AttributeError, IndexError)


def ask_hosts(words: str, argv: Sequence[str]) -> list[HostAnswer]:
    """Return what the hosts that `--hosts` names answer."""
    return ask_all(hosts_named(words), argv, is_worker=shown_caller() is not None)


class Merged(Generic[R]):
    """The rows of all hosts that have answered, and what became of the others.

    Args:
        form: Makes of a row what is shown of it; a row that it cannot be made of is not one of ours.
        shows: Whether a row is shown.
    """

    def __init__(
        self,
        answers: Iterable[HostAnswer],
        form: Callable[[R], Any],
        shows: Callable[[R], bool] = lambda _: True,
    ) -> None:
        self.rows: list[R] = []
        self.shown: list[Any] = []
        self.failed: list[HostAnswer] = []
        self._notes: list[str] = []
        for answer in answers:
            self._take(answer, form, shows)

    def _take(self, answer: HostAnswer, form: Callable[[R], Any], shows: Callable[[R], bool]) -> None:
        name = plain(answer.host.name)
        if answer.problem is not None:
            self.failed.append(answer)
            if not (answer.is_refusal and answer.out.strip()):  # What it could read, it has answered all the same.
                return
        try:
            rows = rows_in(answer)
            shown = [form(row) for row in rows if shows(row)]
        except _MISFORMED as error:
            problem = f"{name} does not answer as agentctl does ({type(error).__name__})"
            self.failed.append(answer._replace(code=ExitCode.REFUSED, problem=problem))
            return
        self.rows += rows
        self.shown += shown
        self._notes += [f"{name}: {line}" for line in answer.notes()]

    def document(self) -> list[R | FailedHost]:
        """Return the rows, and one for each host that has not answered."""
        return [*self.rows, *(answer.to_json() for answer in self.failed)]

    def report(self, call: Invocation) -> ExitCode:
        """Say what is missing; return the exit code."""
        call.note_all(self._notes)
        report_failed(call, self.failed)
        return ExitCode.REFUSED if self.failed else ExitCode.DONE


def report_failed(call: Invocation, failed: Iterable[HostAnswer]) -> None:
    """Say which hosts have not answered, and what helps."""
    for answer in failed:
        name = plain(answer.host.name)
        call.note(f"error: {f'{name}: ' * answer.is_refusal}{plain(answer.problem or '')}")
        if answer.hint:
            call.note(f"hint: {plain(answer.hint)}")


def show_merged(
    call: Invocation,
    answers: Iterable[HostAnswer],
    heads: Sequence[str],
    cells: Callable[[R], Sequence[object]],
    line: Callable[[R], str],
    wide: str,
    kept: Sequence[str],
    *,
    shows: Callable[[R], bool] = lambda _: True,
    gives_way: Sequence[str] = (),
    below: Sequence[str] = (),
) -> Showing[list[R | FailedHost]]:
    """Show the rows of several hosts as a table, as lines or as JSON."""
    merged = Merged[R](answers, (lambda row: (row["host"], *cells(row))) if call.draws else _with_host(line), shows)
    table = Table(("host", *heads), merged.shown, wide, kept, gives_way, below)
    yield Shown(merged.document(), merged.shown, lambda: table if merged.shown else [])
    return merged.report(call)


def _with_host(line: Callable[[R], str]) -> Callable[[R], str]:
    return lambda row: f"{fields(row['host'])}\t{line(row)}"


# -- questions ---------------------------------------------------------------------------------------------------------


def asked_there(row: Mapping[str, Any]) -> OpenQuestion:
    """Return the question in a row of a host's `interact list --json`.

    Raises:
        ValueError: The row holds no question.
    """
    question = question_in(str(row["id"]), row)
    if question is None:
        raise ValueError("not a question")
    return OpenQuestion(str(row["taskId"]), str(row["agentInstance"]), question, bool(row.get("waiting", True)))


def respond_across(call: Invocation, words: str, given: TypedAnswer) -> Showing:
    """Answer the question that is open on one of several hosts, once somebody has seen which; return the exit code.

    Raises:
        NotFound: It is on none of them.
        UsageError: Several may be meant, or nobody has said that it is this one.
        Refused: A host does not answer, and it may be there.
    """
    answers = ask_hosts(words, far_line("interact list", call, json=True))
    merged = Merged(answers, lambda row: (str(row["host"]), asked_there(row)))
    if merged.failed:
        report_failed(call, merged.failed)
        names = first_of([plain(answer.host.name) for answer in merged.failed])
        hint = AtTerminal("name the host: agentctl --host HOST answer ...")
        raise Refused(f"{names} cannot be asked, and may have the question: nothing was answered", hint=hint)
    found = [
        (host, one)
        for host, one in merged.shown
        if given.instance in (None, one.task_id, one.instance) and given.question_id in (None, one.question.id)
    ]
    if len(found) != 1:
        raise _unclear(found)
    host, asked = found[0]
    confirm(call, asked, given.answer, host)
    argv = far_line(
        "interact respond", call, task=asked.task_id, words=[asked.instance, given.answer],
        question_id=asked.question.id, reason=given.reason, json=call.json,
    )  # fmt: skip
    hosts = {answer.host.name: answer.host for answer in answers}
    answer = ask_host(hosts[host], argv, is_worker=shown_caller() is not None)
    yield Raw(_told(call, answer))
    for line in answer.notes() if answer.problem is None else ():
        call.note(f"{plain(answer.host.name)}: {line}")
    report_failed(call, [answer] if answer.problem is not None else [])
    return answer.code


def _unclear(found: Sequence[tuple[str, OpenQuestion]]) -> NotFound | UsageError:
    if not found:
        return NotFound(
            "no such question is open on any of the hosts", hint=AtTerminal("agentctl interact list --hosts all")
        )
    names = [plain(f"{one.question.id} of {one.instance} (task {one.task_id} on {host})") for host, one in found]
    hint = AtTerminal("say which: agentctl --host HOST answer INSTANCE --id ID ANSWER")
    return UsageError(f"{len(found)} questions are open: {first_of(names)}", hint=hint)


def _told(call: Invocation, answer: HostAnswer) -> str:
    """Return what the host has printed about the answer, as one line of ours."""
    text = answer.out.decode("utf-8", "replace")
    if call.json:
        return plain(text, keep="\n") if call.is_terminal("stdout") else text
    return "".join(f"{line} on {plain(answer.host.name)}\n" for line in map(plain, text.splitlines()))

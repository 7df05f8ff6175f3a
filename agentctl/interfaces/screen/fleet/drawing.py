"""How one line of the list is drawn: columns that fit the width, each piece with the role that gives it a style."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from rich.cells import cell_len, set_cell_size

from agentctl.domain.activity.row import RowType
from agentctl.domain.activity.view import RUNNING, Node
from agentctl.domain.names import WorkerId
from agentctl.domain.question import in_one_line
from agentctl.domain.states import HELD, STRANDED, TERMINAL, Status, task_status
from agentctl.domain.text.plaintext import plain, shortened_inside, whole
from agentctl.domain.worker.ends import end_in_words, said_at_end
from agentctl.domain.worker.need import Need
from agentctl.interfaces.screen.fleet.filtering import NEEDS, scope_of
from agentctl.interfaces.screen.fleet.lines import ListLine, counts, failed_among
from agentctl.interfaces.words.activity import node_parts, one_line, said_line
from agentctl.interfaces.words.value_words import LEAST, duration, short_number
from agentctl.interfaces.words.worker import agent_words, elapsed, full_standing, progress_words
from agentctl.lean import TYPE_CHECKING, NamedTuple
from agentctl.operations.fleet.glance import Doing, FleetTask, FleetWorker, Glance, TaskTotals

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import WorkerRow

#: A piece of a line: its text and its role, a component class of the list.
Piece = tuple[str, str]

#: What stands before a worker's name: its state by shape, for screens without colours, and by role.
_GLYPHS = {
    Status.QUEUED: ("·", "queued"), Status.RUNNING: ("●", "running"), Status.BLOCKED: ("?", "blocked"),
    Status.COMPLETED: ("✓", "completed"), Status.FAILED: ("✗", "failed"), Status.CANCELLED: ("-", "cancelled"),
}  # fmt: skip
_UNPROVEN_HEALTHS = frozenset({"unsupervised", "unfollowed", "elsewhere", "unknown", STRANDED})
_PAUSED, _IDLE, _UNPROVEN = ("‖", "blocked"), ("○", "completed"), ("~", "blocked")
#: The role of the state of a task.
_STATES = {
    "running": "running", "blocked": "blocked", "completed": "completed", "failed": "failed",
    "cancelled": "cancelled", STRANDED: "blocked", HELD: "blocked",
}  # fmt: skip
_OPEN, _FOLDED, _NONE = "▾ ", "▸ ", "  "
_STEP = "  "
#: A deeper line is not indented further than this part of the width.
_MOST_INDENT = 3
#: The columns on the right, the most useful last, and how wide the screen has to be for each.
_CALLS, _TOKENS, _COST, _TIME = 10, 13, 9, 8
_NARROW, _WIDE, _WIDER, _WIDEST = 60, 90, 104, 118
#: What a row says has so much room, whatever the length of a name, which has so much at the least and at the most.
_LEAST_SAID, _LEAST_NAME, _MOST_NAME = 45, 16, 34


class Totals(NamedTuple):
    """What a worker has done so far, for the columns on the right."""

    calls: int = 0
    tokens: int = 0
    cost_usd: float | None = None
    #: Whether these two are the least that it was.
    lacks_tokens: bool = False
    lacks_cost: bool = False


def draw_line(glance: Glance, line: ListLine, width: int, now: datetime) -> list[Piece]:
    """Return the pieces of a line, as wide as `width` together; a line whose subject has gone is blank."""
    if isinstance(line.key, Need):
        pieces = _heading(line.key, line, width)
    elif line.node is not None:
        pieces = _node(line.node, line, width)
    elif isinstance(line.key, WorkerId):
        worker = glance.workers.get(line.key)
        pieces = [] if worker is None else _worker(glance, worker, line, width, now)
    else:
        task = glance.tasks.get(str(line.key))
        pieces = [] if task is None else _task(glance, task, line, width, now)
    return fit(pieces, width)


def fit(pieces: Iterable[Piece], width: int) -> list[Piece]:
    """Return the pieces cut or filled up to a width in cells."""
    found: list[Piece] = []
    left = width
    for text, role in pieces:
        if left <= 0:
            break
        shown = whole(text)
        if cell_len(shown) > left:
            shown = _column(shown.rstrip(), left)
        found.append((shown, role))
        left -= cell_len(shown)
    return [*found, (" " * left, "text")] if left > 0 else found


def _cut(text: str, width: int) -> str:
    return set_cell_size(text, width) if width < 2 else set_cell_size(text, width - 1).rstrip() + "…"


def _column(text: str, width: int) -> str:
    """Return a text as a column: cut, or filled up on its right."""
    cells = cell_len(text)
    if cells <= width:
        return text + " " * (width - cells)
    shown = _cut(text, width)
    return shown + " " * (width - cell_len(shown))


def _mark(line: ListLine, width: int) -> str:
    indent = _STEP * min(line.depth, max(0, width // _MOST_INDENT // len(_STEP)))
    return indent + (_NONE if line.is_folded is None else _FOLDED if line.is_folded else _OPEN)


def counted_words(workers: Collection[FleetWorker]) -> Iterator[Piece]:
    """Yield how many workers have each need, and how many of those that were looked at have failed; with the styles."""
    found = counts(workers)
    seen_failed = failed_among(one for one in workers if one.need is Need.DONE)
    is_first = True
    for need in (one for one in Need if found[one] and one is not Need.EARLIER):
        words = "need you" if need is Need.NEEDS_YOU and found[need] > 1 else NEEDS[need]
        yield ("" if is_first else ", ", "")
        yield (f"{found[need]} {words}", _COUNT_STYLES.get(need, ""))
        is_first = False
    if seen_failed:
        yield (" (", "")
        yield (f"{seen_failed} failed", _FAILED_STYLE)
        yield (")", "")


_FAILED_STYLE = "bold red"
_COUNT_STYLES = {Need.NEEDS_YOU: "bold yellow", Need.FAILED: _FAILED_STYLE}
#: The headings that are not drawn as others are.
_HEADINGS = {Need.NEEDS_YOU: "heading-needs", Need.FAILED: "heading-failed"}


def _heading(need: Need, line: ListLine, width: int) -> list[Piece]:
    role = _HEADINGS.get(need, "heading")
    failed = f", {line.failed} failed" if line.failed and need is not Need.FAILED else ""
    counted = (str(line.size), "failed" if need is Need.FAILED else "dim")
    return [(_mark(line, width), "dim"), (f"{NEEDS[need]} ", role), counted, (failed, "failed")]


def _task(glance: Glance, task: FleetTask, line: ListLine, width: int, now: datetime) -> list[Piece]:
    """Return the row of a task: its state and title, how many workers, their last words; and what they come to."""
    totals = task.totals
    counted = [
        _counted(totals.workers, str(totals.workers), "worker") or "no workers",
        f"{totals.live} live" if totals.live else "",
        f"{totals.asking} blocked" if totals.asking else "",
    ]
    failed = f"{totals.failed} failed  " if totals.failed else ""
    known = known_below(glance, task.task.id)
    # Only if what all of them do is known: a part of the calls would look like all.
    calls = sum(totals_shown(glance, one).calls for one in known) if len(known) == totals.workers else 0
    used = Totals(calls, totals.tokens, totals.cost_usd, totals.lacks_tokens, totals.lacks_cost)
    right = _right(used, _task_time(totals, now), width)
    pieces = [
        (_mark(line, width), "dim"),
        (f"{task.task.id} ", "heading"),
        (f"{task_status(task.state)} ", _STATES.get(task_status(task.state), "dim")),
        ("" if task.is_own else "foreign ", "blocked"),
        ("held " if task.hold is not None and task.state != HELD else "", "blocked"),
        (f"{one_line(task.title)}  " if task.title != task.task.id else "", "text"),
        (", ".join(part for part in counted if part) + (", " if failed else _STEP), "dim"),
        (failed, "failed"),
        (row_words(glance, max(known, key=_started)) if known else "", "text"),
    ]
    return [*fit(pieces, width - cells_of_pieces(right)), *right]


def known_below(glance: Glance, task_id: str) -> list[FleetWorker]:
    """Return the workers of a task and of those below it of which it is known what they do."""
    has = scope_of(task_id)
    return [one for key in glance.doings if (one := glance.workers.get(key)) is not None and has(glance, one)]


def _started(worker: FleetWorker) -> str:
    return worker.row["startedAt"] or ""


def _task_time(totals: TaskTotals, now: datetime) -> str:
    """Return how long the workers of a task took, from the first start to the last end, or until now."""
    until = now
    if not totals.live and totals.ended is not None:
        try:
            until = datetime.fromisoformat(totals.ended).astimezone(UTC)
        except (ValueError, OverflowError):
            return "-"
    return since(totals.began, until)


def _node(node: Node, line: ListLine, width: int) -> list[Piece]:
    role = {RUNNING: "running", "failed": "failed", "denied": "failed", "interrupted": "cancelled"}.get(
        node.status or "", "node"
    )
    first, *rest = node_parts(node) or [""]
    said = said_line(node.text) if node.type == RowType.AGENT and node.name and node.text else ""
    return [
        (_mark(line, width), "dim"),
        (whole(first), role),
        (_STEP + whole(_STEP.join(rest)) if rest else "", "dim"),
        (_STEP + said if said else "", "text"),
    ]


# -- workers -----------------------------------------------------------------------------------------------------------


def _worker(glance: Glance, worker: FleetWorker, line: ListLine, width: int, now: datetime) -> list[Piece]:
    glyph, role = glyph_of(worker)
    mark = _mark(line, width)
    right = _right(totals_shown(glance, worker), waited_or_worked(worker, now), width)
    room = width - cell_len(mark) - 2 - cells_of_pieces(right)
    name_width = max(min(_LEAST_NAME, room // 2), min(_MOST_NAME, room * 2 // 5, room - _LEAST_SAID))
    while right and not right[0][0].strip():
        room += cell_len(right.pop(0)[0])  # No column of this row: its words go on there.
    name = worker.row["agentInstance"]
    where = f" {worker.task.id}" if line.depth == 0 and len(glance.tasks) > 1 else ""
    name_cells = min(cell_len(name), name_width)
    says = said_of(glance, worker)
    return [
        (mark, "dim"),
        (f"{glyph} ", role),
        (
            _column(shortened_inside(name, name_cells), name_cells),
            "name" if worker.need in (Need.NEEDS_YOU, Need.REVIEW) else "text",
        ),
        (_column(where, name_width - name_cells) + " ", "dim"),
        *fit(says, room - name_width - 1),
        *right,
    ]


def glyph_of(worker: FleetWorker) -> Piece:
    """Return the sign of a worker's state, and its role."""
    row = worker.row
    if worker.idle is not None:
        return _IDLE
    if row["paused"] or (row["health"] == HELD and row["status"] not in TERMINAL):
        return _PAUSED
    if row["health"] in _UNPROVEN_HEALTHS and row["status"] not in TERMINAL:
        return _UNPROVEN
    return _GLYPHS.get(Status(row["status"]), ("·", "dim")) if row["status"] in _STATUSES else ("·", "dim")


_STATUSES = frozenset(Status)
#: An agent's name is cut for a row: how it ended stands behind it.
_LONGEST_AGENT = 16
#: What keeps a worker in the queue, with what ends that.
_WAYS_OUT = {STRANDED: "stranded: agentctl resume --lost", HELD: "held in the queue: why says by whom"}


def said_of(glance: Glance, worker: FleetWorker) -> list[Piece]:
    """Return what a row says of a worker: its question, what is unusual, its agent, and its last words."""
    row = worker.row
    if worker.questions:
        first = worker.questions[0]
        more = f" (+{len(worker.questions) - 1})" if len(worker.questions) > 1 else ""
        return [(in_one_line(first).text + more, "blocked" if first.is_permission else "text")]
    task = glance.tasks.get(worker.task.id)
    agent = "" if row["agent"] == "command" else f"{shortened_inside(agent_words(row), _LONGEST_AGENT)} "
    ended = row["status"] in TERMINAL
    unusual = "" if row["reason"] else full_standing(row) or ""
    if worker.idle is not None:
        state: Piece = ("waits for a message  ", "completed")
    elif ended and row["status"] != Status.COMPLETED:
        words = end_in_words(row["status"], row["reason"], row["exitCode"], row["signal"])
        state = (f"{words}  ", _GLYPHS[Status(row["status"])][1] if row["status"] in _STATUSES else "text")
    else:
        unusual = _WAYS_OUT.get(unusual, unusual)
        state = (f"{plain(unusual)}  " if unusual else "", "blocked")
    changed = _counted(worker.changed_files, str(worker.changed_files), "changed file")
    return [
        ("" if task is None or task.is_own else "foreign ", "agent"),
        (f"{said}  " if (said := _said_at_end(row)) else "", "text"),  # Why it failed, before how it stands.
        (plain(agent), "agent"),
        state,
        (f"{changed}  " if changed else "", "review"),
        (_words_or_command(glance, worker), "dim" if ended else "text"),
    ]


def row_words(glance: Glance, worker: FleetWorker) -> str:
    """Return what a worker says or does, in one line: why it failed, its last words, what it calls now, its command."""
    return _STEP.join(part for part in (_said_at_end(worker.row), _words_or_command(glance, worker)) if part)


def _said_at_end(row: WorkerRow) -> str:
    return _STEP.join(plain(" ".join(said.split())) for said in said_at_end(row["message"], row["lastLine"]))


def _words_or_command(glance: Glance, worker: FleetWorker) -> str:
    row, doing = worker.row, glance.doings.get(worker.id)
    parts = [one_line(progress_words(row["progress"]) or "") if row["status"] not in TERMINAL else ""]
    if doing is not None and doing.last_words and row["driver"] is not None:
        parts.append(said_line(doing.last_words))
    elif doing is not None and row["status"] not in TERMINAL and (running := _running(doing)) is not None:
        parts.append(whole(_STEP.join(node_parts(running)[:2])))
    elif row["command"]:
        parts.append(one_line(row["command"]))
    return _STEP.join(part for part in parts if part)


def _running(doing: Doing) -> Node | None:
    """Return the last of what a worker calls now. An ended one is not searched: its nodes may be thousands."""
    return next((node for node in reversed(doing.nodes[1:]) if node.status == RUNNING), None)


def totals_shown(glance: Glance, worker: FleetWorker) -> Totals:
    """Return what a worker has done so far, with its sub-agents."""
    doing = glance.doings.get(worker.id)
    usage: Mapping[str, object] = worker.row["usage"] or {}
    own = doing.nodes[0] if doing is not None and doing.nodes else None
    tokens = sum(_number(usage.get(key)) for key in ("input", "output"))
    if own is not None and own.tokens is not None:
        tokens = max(tokens, own.tokens["input"] + own.tokens["output"])
    cost = usage.get("costUsd")
    return Totals(own.calls if own is not None else 0, int(tokens), cost if isinstance(cost, int | float) else None)


def _number(value: object) -> float:
    return value if isinstance(value, int | float) else 0


def _right(totals: Totals, time: str, width: int) -> list[Piece]:
    """Return the columns on the right, as far as the screen is wide enough for them."""
    found: list[Piece] = []
    if width >= _WIDEST:
        found.append((_counted(totals.calls, f"{totals.calls}", "call").rjust(_CALLS), "dim"))
    if width >= _WIDER:
        least = LEAST * totals.lacks_tokens
        found.append((_counted(totals.tokens, least + short_number(totals.tokens), "token").rjust(_TOKENS), "dim"))
    if width >= _WIDE:
        cost = "" if not totals.cost_usd else f"{LEAST * totals.lacks_cost}${totals.cost_usd:.2f}"
        found.append((cost.rjust(_COST), "dim"))
    return [*found, (time.rjust(_TIME), "text")] if width >= _NARROW else found


def _counted(number: int, shown: str, what: str) -> str:
    return f"{shown} {what}{'' if number == 1 else 's'}" if number else ""


def waited_or_worked(worker: FleetWorker, now: datetime) -> str:
    """Return how long a worker has waited for a person, for a slot, or has worked."""
    row = worker.row
    if worker.questions:
        return since(worker.questions[0].asked_at, now)
    if row["status"] == Status.QUEUED:
        return since(row["queuedAt"], now)
    return _rounded(elapsed(row))


def since(at: object, now: datetime) -> str:
    """Return how long ago a time was; `-` for what is not a time."""
    try:
        return _rounded(max(0.0, (now - datetime.fromisoformat(str(at)).astimezone(UTC)).total_seconds()))
    except (ValueError, OverflowError):
        return "-"


def _rounded(seconds: float | None) -> str:
    """Return a time without tenths once it is longer than ten seconds: they would only flicker."""
    return duration(seconds) if seconds is None or seconds < 10 or seconds >= 60 else f"{int(seconds)}s"


def cells_of_pieces(pieces: Sequence[Piece]) -> int:
    """Return how many cells some pieces take."""
    return sum(cell_len(text) for text, _ in pieces)

"""What cannot be read is not taken for what is not there: no look at a file swallows every error of the system."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.support import REPOSITORY

PACKAGE = REPOSITORY / "agentctl"
#: They only show: what they leave out is shown by the next look, and nothing is decided by it.
SHOWING = (
    "interfaces/words",
    "interfaces/screen",
    "interfaces/editor",
    "operations/show",
    "operations/fleet",
    "operations/doctor",
)
#: Not files of ours: what an agent's tools look at, other hosts and their terminals.
ELSEWHERE = ("worker_programs/plain_model", "interfaces/hosts", "interfaces/web")
READS = frozenset(
    {
        "read_bytes", "read_text", "read_json", "read_known", "read_tail", "text_in", "open_plain", "names_in",
        "exists", "is_dir", "store_folder", "file_version", "stat", "lstat", "listdir", "scandir", "readlink",
        "samefile", "realpath", "open", "is_alive_held", "access",
    }
)  # fmt: skip
WRITES = frozenset({"write_whole", "create_whole", "write_in_place", "write_all", "set_aside", "eventlog"})
#: The functions in which an error of a look may mean "nothing", and why it does no harm there.
HARMLESS = {
    "adapters/activitylog.py:last_lines": "shown",
    "adapters/lockholders.py:_is_locked": "a holder that cannot be seen is not named: it refuses all the same",
    "adapters/lockholders.py:_names_in": "a holder that cannot be seen is not named: it refuses all the same",
    "adapters/lockholders.py:lock_holders": "a holder that cannot be seen is not named: it refuses all the same",
    "adapters/locks.py:_holder_of": "who has the lock is not named; that it is locked is told in any case",
    "adapters/opening.py:kind_of": "words for an error that is told in any case",
    "adapters/origin.py:can_be_marked": "the marks go to the next place, where they are looked for, too",
    "adapters/peers.py:_descriptors_of": "who cannot be looked into does not count as a person",
    "adapters/peers.py:_leads": "who cannot be looked into does not count as a person",
    "adapters/processes.py:switches_of": "None says that it is not known",
    "adapters/realpath.py:_resolved": "a path that leads nowhere known is allowed nothing",
    "adapters/taskdir.py:has_no_request": "False: each file is looked at, which tells",
    "adapters/taskdir.py:is_at": "a path that cannot be followed proves nothing; equal ones are not looked at",
    "adapters/taskyaml/roster.py:_parsed_head": "task.yaml is parsed again",
    "adapters/taskyaml/roster.py:was_just_written": "it is written at once",
    "adapters/uvtool.py:read_receipt": "it cannot be said how agentctl was installed",
    "adapters/versions.py:version_of": "the version is not known",
    "worker_programs/agent_host/host_questions.py:_read": "no answer yet: it is looked for again",
    "supervision/worker/output_at_end.py:_tail": "shown; an end is not kept back by what else it could say",
    "tools/prepared_offer.py:prepared": "the server prepares it itself",
    "operations/delegate/delegating.py:_tail": "shown",
    "operations/notify/terminal_notices.py:has_left": "what is not told here is told by the sender",
    "operations/notify/terminal_notices.py:tell": "what is not told here is told by the sender",
    "operations/talk/asking.py:put_again": "the next look restores it",
    "operations/where/moved.py:_is_same": "a place that cannot be compared is not led anywhere",
    "operations/where/odd_files.py:_names": "doctor shows it; the look itself tells of an unreadable folder",
    "operations/where/odd_files.py:_problem": "doctor shows it",
    "operations/where/odd_files.py:_repair": "doctor says that it is not mended",
    "operations/where/odd_files.py:_end_of": "doctor shows it",
    "worker_programs/on_node/lookout.py:_look_out": "the next look tries again",
    "worker_programs/on_node/lookout.py:_read": "the next look tries again",
    "worker_programs/on_node/lookout.py:leave": "the next look tries again",
    "worker_programs/on_node/node_probe.py:_folder": "shown",
    "worker_programs/on_node/verdicts.py:_tail_of": "shown",
    "worker_programs/on_node/exchange/written_state.py:_count": "what is not seen is waited for",
    "worker_programs/on_node/exchange/written_state.py:_mark_of": "what is not seen is waited for",
    "worker_programs/on_node/exchange/written_state.py:_size_of": "what is not seen is waited for",
    "worker_programs/on_node/exchange/written_state.py:_state_of": "what is not seen is waited for",
    "shim/waiting.py:_file_of": "a process that cannot be looked into counts as at work",
    "shim/watching.py:_size_of": "the next look, a second later, measures it again",
    "shim/watching.py:_version_of": "the next look, a second later, sees it again",
    "supervision/dispatch/succession.py:_taken": "the whole queue is looked at instead",
    "supervision/notify/links.py:_question": "the notice has no link to answer by",
    "supervision/notify/switch.py:_has_news": "what was not read is looked at again",
    "supervision/worker/deferred.py:are_any": "where memory has no place for it, nothing waits there",
    "supervision/worker/deferred.py:request": "where memory has no place for it, nothing waits there",
    "supervision/worker/deferred.py:standing": "where memory has no place for it, nothing waits there",
    "supervision/worker/engine_answers.py:answer_for": "shown",
    "supervision/worker/engine_answers.py:answered_at": "the engine is asked again",
    "supervision/worker/whereabouts.py:_are_in_place": "False: each folder is looked at",
    "supervision/worker/whereabouts.py:_is_removed": "a folder counts as lost only where that is proven",
    "supervision/worker/whereabouts.py:lost": "a folder counts as lost only where that is proven",
    "supervision/worker/whereabouts.py:place": "a folder counts as lost only where that is proven",
}


def names_in(node: ast.AST | None) -> set[str]:
    """Return the last parts of all names in a piece of code."""
    walked = list(ast.walk(node)) if node is not None else []
    return {one.id for one in walked if isinstance(one, ast.Name)} | {
        one.attr for one in walked if isinstance(one, ast.Attribute)
    }


def is_empty(value: ast.expr | None) -> bool:
    text = "None" if value is None else ast.unparse(value)
    return text in {"None", "False", "''", "b''", "0", "0.0", "{}", "[]", "()", "frozenset()", "set()"}


def looks(body: list[ast.stmt]) -> bool:
    calls = (call for one in body for call in ast.walk(one) if isinstance(call, ast.Call))
    return any(names_in(call.func) & READS for call in calls)


def swallows(code: ast.AST) -> bool:
    """Return whether a statement takes any error of a look at files for nothing."""
    if isinstance(code, ast.Try):
        return looks(code.body) and any(
            "OSError" in names_in(handler.type)
            and len(handler.body) == 1
            and isinstance(handler.body[0], ast.Return)
            and is_empty(handler.body[0].value)
            for handler in code.handlers
        )
    if isinstance(code, ast.With):
        is_suppressed = any(
            isinstance(item.context_expr, ast.Call)
            and "suppress" in names_in(item.context_expr.func)
            and "OSError" in names_in(item.context_expr)
            for item in code.items
        )
        return is_suppressed and looks(code.body) and any(isinstance(one, ast.Return) for one in ast.walk(code))
    return False


def functions(folder: Path, *left_out: str) -> Iterator[tuple[str, ast.AST]]:
    for file in sorted(folder.rglob("*.py")):
        place = str(file.relative_to(folder))
        if not place.startswith(tuple(f"{one}/" for one in left_out)):
            for code in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(code, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield f"{place}:{code.name}", code


def test_no_look_takes_an_error_for_nothing() -> None:
    found = {
        name for name, code in functions(PACKAGE, *SHOWING, *ELSEWHERE) if any(swallows(one) for one in ast.walk(code))
    }
    assert found - HARMLESS.keys() == set(), "let it tell (`storage_errors`), or say why it does no harm"
    assert HARMLESS.keys() - found == set(), "these are no more"


def test_what_is_left_out_is_only_shown() -> None:
    """Of a file that cannot be read, `read_to_show` says nothing: no module that may write has it."""
    users = [file for file in PACKAGE.rglob("*.py") if "read_to_show" in file.read_text(encoding="utf-8")]
    users.remove(PACKAGE / "adapters" / "files.py")
    assert users
    for file in users:
        assert str(file.relative_to(PACKAGE)).startswith(tuple(f"{one}/" for one in SHOWING)), file
        assert not names_in(ast.parse(file.read_text(encoding="utf-8"))) & WRITES, file


def test_the_check_meets_what_it_is_for() -> None:
    code = """
def one():
    try:
        return current.read_text()
    except (OSError, ValueError):
        return None
def two():
    with contextlib.suppress(OSError):
        return os.stat(path).st_size
    return 0
def three():
    try:
        return read_json(path)
    except FileNotFoundError:
        return None
"""
    found = [any(swallows(part) for part in ast.walk(one)) for one in ast.parse(code).body]
    assert found == [True, True, False]

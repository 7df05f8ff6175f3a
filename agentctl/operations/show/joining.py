"""One report on the results of several workers: each part attributed, limited in size, in the order of the roster."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import make_folders, read_known, storage_errors, to_json, write_whole
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.domain.text.plaintext import plain
from agentctl.domain.tree.limits import RESULT_BYTES
from agentctl.domain.worker.ends import end_in_words, said_at_end
from agentctl.lean import TYPE_CHECKING, Any, NamedTuple
from agentctl.operations.show.listing import list_workers
from agentctl.operations.show.results import result_by_row
from agentctl.operations.where.locating import find_worker
from agentctl.operations.where.ownership import check_own
from agentctl.supervision.worker.endings import decision_of
from agentctl.supervision.worker.questions import read_question

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.ends import ReportedQuestion, ReportedWords, ReportedWorker, ResultsReport
    from agentctl.domain.documents.workers.worker import CutText, WorkerResult, WorkerRow

#: Limits per worker: how many files and how many questions are listed, and how many characters of a question.
_MOST_ITEMS, _LONGEST_QUESTION = 100, 1000


class Joined(NamedTuple):
    """A report, and the paths of its two files."""

    report: ResultsReport
    text_path: str
    data_path: str


def join_results(
    task: TaskDir,
    instances: Sequence[str] = (),
    *,
    out: str | None = None,
    max_bytes: int = RESULT_BYTES,
    at: TaskDir | None = None,
) -> Joined:
    """Write `report.md` and `report.json` about workers (the newest of each work of the task, if none is named).

    Args:
        out: The folder for both files; None means the task directory.
        max_bytes: The most bytes of each worker's text.
        at: Where the task is about to be moved: the report names places there.

    Raises:
        NotFound: A named instance is not a worker of the task.
    """
    check_own(task)
    chosen = frozenset(instances)
    for name in chosen:
        find_worker(task, name)
    rows = [
        row
        for row in list_workers(task)[0]
        if (row["agentInstance"] in chosen if chosen else row.get("supersededBy") is None)
    ]
    report: ResultsReport = {
        "taskId": task.id, "at": now_iso(), "workers": [_part(task, row, max_bytes) for row in rows],
    }  # fmt: skip
    if at is not None:
        report["workers"] = [_led(part, task.path, at.path) for part in report["workers"]]
    text, data = task.report_text, task.report_data
    if out is not None:
        folder = FilePath(os.path.realpath(out))
        with storage_errors(folder, "make the folder"):
            make_folders(folder)
        text, data = folder / text.name, folder / data.name
    write_whole(data, to_json(report))
    write_whole(text, "".join(f"{line}\n" for line in _lines(report)).encode("utf-8", "backslashreplace"))
    return Joined(report, text, data)


def _part(task: TaskDir, row: WorkerRow, max_bytes: int) -> ReportedWorker:
    worker = task.worker(row["agentInstance"])
    result = result_by_row(worker, row, max_bytes=max_bytes)
    questions = _questions(worker)
    return {
        "agentInstance": row["agentInstance"], "agent": row["agent"], "status": row["status"],
        "reason": row["reason"], "exitCode": row["exitCode"], "signal": row["signal"], "parent": row["parent"],
        "startedAt": row["startedAt"], "endedAt": row["endedAt"], "durationSeconds": row["durationSeconds"],
        **_words(result),
        "error": decision.message if row["status"] == "failed" and (decision := decision_of(worker)) else None,
        "lastLine": row["lastLine"],
        "questions": questions[:_MOST_ITEMS],
        "files": result["files"][:_MOST_ITEMS],
        "leftOut": max(0, len(questions) - _MOST_ITEMS) + max(0, len(result["files"]) - _MOST_ITEMS),
        "folder": str(worker.path),
    }  # fmt: skip


def _led(value: Any, old: str, new: str) -> Any:
    """Return a part of a report with the paths below one folder as they are below another."""
    if isinstance(value, list):
        return [_led(one, old, new) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: new + one.removeprefix(old)
        if key in _PLACES and isinstance(one, str) and one.startswith(f"{old}/")
        else _led(one, old, new)
        for key, one in value.items()
    }


#: The keys of a report that name files.
_PLACES = frozenset({"folder", "path", "wrapped"})


def _words(result: WorkerResult) -> ReportedWords:
    """Return what a report takes of a result."""
    words: ReportedWords = {
        "source": result["source"], "summary": result["summary"], "text": result["text"],
        "truncated": result["truncated"], "size": result["size"], "sha256": result["sha256"], "path": result["path"],
    }  # fmt: skip
    if "summaryCut" in result:
        words["summaryCut"] = result["summaryCut"]
    if "wrapped" in result:
        words["wrapped"] = result["wrapped"]
    if "turnsUsed" in result:
        words["turnsUsed"] = result["turnsUsed"]
    if "usage" in result:
        words["usage"] = result["usage"]
    if "costUsd" in result:
        words["costUsd"] = result["costUsd"]
    if "model" in result:
        words["model"] = result["model"]
    return words


def _questions(worker: WorkerDir) -> list[ReportedQuestion]:
    found: list[ReportedQuestion] = []
    for name in worker.question_ids():
        question, answer = read_question(worker, name), read_known(worker.answer(name))
        if question is not None and not question.idle:
            text = question.text[:_LONGEST_QUESTION]
            found.append({
                "id": name, "question": text, "askedBy": question.asked_by,
                "answer": answer.get("answer"), "by": answer.get("by"),
            })  # fmt: skip
    return found


# -- for people --------------------------------------------------------------------------------------------------------


def _lines(report: ResultsReport) -> Iterator[str]:
    """Yield the lines of the report. Text from workers is quoted, so that none can forge the part of another."""
    yield f"# {plain(report['taskId'])}"
    yield ""
    for part in report["workers"]:
        end = end_in_words(part["status"], part["reason"], part["exitCode"], part["signal"])
        yield f"- {plain(part['agentInstance'])} ({plain(part['agent'])}): {end}"
    for part in report["workers"]:
        yield ""
        yield f"## {plain(part['agentInstance'])}"
        yield ""
        yield from _part_lines(part)


def _part_lines(part: ReportedWorker) -> Iterator[str]:
    seconds = part["durationSeconds"]
    end = end_in_words(part["status"], part["reason"], part["exitCode"], part["signal"])
    yield f"{end}{f', {seconds:.1f} s' if seconds is not None else ''}"
    for said in said_at_end(part["error"], part["lastLine"]):
        yield from ["", *_quoted(said)]
    if part["summary"] and part["summary"] != part["text"]:
        yield from ["", *_quoted(part["summary"]), *_cut_lines(part.get("summaryCut"))]
    if part["text"]:
        yield from ["", *_quoted(part["text"])]
    yield from _cut_lines(part if part["truncated"] else None)
    for question in part["questions"]:
        yield from ["", f"Asked ({plain(question['id'])}):", "", *_quoted(question["question"])]
        answer = question["answer"]
        yield from (
            ["", f"Answered by {plain(question['by'])}:", "", *_quoted(answer)] if answer else ["", "Not answered."]
        )
    if part["files"]:
        yield from ["", "Files:", ""]
        yield from (f"- {plain(file['path'])} ({file.get('size')} bytes)" for file in part["files"])
    if part["leftOut"]:
        yield from ["", f"{part['leftOut']} more are in {plain(part['folder'])}"]


def _cut_lines(cut: CutText | None) -> Iterator[str]:
    if cut is not None:
        where = f", in {plain(cut['path'])}" if cut["path"] else ""
        yield from ["", f"Cut: the full text has {cut['size']} bytes, sha256 {cut['sha256']}{where}"]


def _quoted(text: object) -> Iterator[str]:
    return (f"> {line}".rstrip() for line in plain(text, keep="\n\t").split("\n"))

"""At stake: who types no command, or the name that another program has for it, finds what there is and what to type."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from agentctl.adapters.taskdir import Root
from agentctl.domain.names import WorkerId
from agentctl.interfaces.cli.typer_commands import program
from agentctl.interfaces.commands.model.catalogue import (
    ALIASES,
    CLOSE_LINES,
    DAY,
    GROUPS,
    OLDER_NAMES,
    VERBS,
    command_by_words,
    listed_below,
)
from agentctl.operations.fleet.seen import SeenEnds
from tests.advice import follow
from tests.agent_steps import claude_in
from tests.inside import call
from tests.repositories import new_repository
from tests.snapshots import snapshot
from tests.steps import held, kill, new_task, row, spawn, spawn_batch
from tests.support import PROGRAM, run, wait_until, worker
from tests.terminal import Terminal, on_a_terminal

# -- help --------------------------------------------------------------------------------------------------------------


def test_the_first_page_has_the_most_wanted_commands_and_fits_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    page = call(capsys, "--help")
    lines = page.out.splitlines()
    assert (page.code, len(lines) < 30, max(map(len, lines)) <= 80) == (0, True, True)
    shown = lines[lines.index(f"{DAY}:") + 1 : lines.index("More:") - 1]
    assert [line.split()[0] for line in shown] == list(listed_below(DAY))
    assert len(shown) <= 14
    assert "agentctl help all" in page.out
    for line in (["-h"], ["help"], ["help", "--help"]):
        assert call(capsys, *line).out == page.out


def test_all_commands_stand_below_five_headings(capsys: pytest.CaptureFixture[str]) -> None:
    page = call(capsys, "help", "all")
    assert call(capsys, "help", "more").out == page.out
    for group in GROUPS:
        section = page.out.partition(f"\n{group}:\n")[2].partition("\n\n")[0]
        assert re.findall(r"^  ([a-z][a-z-]*) ", section, flags=re.MULTILINE) == list(listed_below(group))
    listed = [name for group in GROUPS for name in listed_below(group)]
    assert {*listed, *OLDER_NAMES} >= VERBS.keys()
    assert all(name in page.out for name in OLDER_NAMES)


@pytest.mark.parametrize("words", [["interact", "ask"], ["wait"], ["kill"]])
def test_the_help_of_a_command_is_its_own_page(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert call(capsys, "help", *words).out == call(capsys, *words, "--help").out


# -- other names -------------------------------------------------------------------------------------------------------


def test_other_names_stand_for_commands_and_are_none_themselves() -> None:
    others = [*ALIASES, *CLOSE_LINES]
    assert not VERBS.keys() & set(others)
    assert len(set(others)) == len(others)
    assert VERBS.keys() >= set(ALIASES.values())
    for words in OLDER_NAMES:
        command_by_words(words)


@pytest.mark.parametrize("name", CLOSE_LINES)
def test_a_line_that_is_pointed_to_can_be_typed(root: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    told = call(capsys, name, "x")
    assert (told.code, f"hint: agentctl {CLOSE_LINES[name]}\n" in told.err) == (2, True)
    group, words = program(), shlex.split(CLOSE_LINES[name])
    context = group.make_context("agentctl", list(words), resilient_parsing=True)
    if words[0] in VERBS:
        _, command, rest = group.resolve_command(context, words)
        command.make_context(words[0], list(rest), parent=context)


def test_an_alias_is_understood_and_not_offered(root: Path) -> None:
    new_task()
    run("run", "--name", "a", "--", *worker("sleeps", 60))
    assert run("ps", "--json").json[0]["agentInstance"] == "a"
    assert run("kill", "a").out == "a cancelled\n"
    offered = run(
        env={"_AGENTCTL_COMPLETE": "complete_bash", "COMP_WORDS": "agentctl ", "COMP_CWORD": "1"}, check=False
    )
    assert {"spawn", "answer", "help"} <= set(offered.out.split())
    assert not set(offered.out.split()) & {*ALIASES, *CLOSE_LINES, "resume-queue"}


# -- agentctl alone ----------------------------------------------------------------------------------------------------


@pytest.mark.follows("interfaces/commands/watch/status._beginning: agentctl spawn")
@pytest.mark.follows("interfaces/commands/watch/status._beginning: agentctl watch")
def test_alone_in_a_new_folder_it_has_lines_that_work_there(root: Path, tmp_path: Path) -> None:
    told = run()
    assert not root.exists()
    assert [line.strip() for line in told.out.splitlines()[1:]] == [
        "agentctl spawn -- du -sh .", "agentctl watch", "agentctl help",
    ]  # fmt: skip
    assert follow(told, "agentctl watch", check=False).code == 6
    assert follow(told, "agentctl help").out == run("--help").out
    follow(told, "agentctl spawn -- du -sh .", cwd=tmp_path)
    run("wait-all")
    assert run().out == "Done: 1\n"


@pytest.mark.slow
@pytest.mark.follows("interfaces/commands/watch/status._beginning: agentctl spawn --driver")
def test_alone_it_offers_an_agent_whose_program_is_installed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claude_in(tmp_path, monkeypatch)
    follow(run(), 'agentctl spawn --driver claude "Say what is in this folder"')
    run("wait-all", check=False)
    assert run().out.startswith(("Ready for review: 1\n", "Failed: 1\n"))


@pytest.mark.slow
def test_alone_below_a_root_above_the_repository_it_says_what_to_type(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGENTCTL_ROOT")
    run("new", "Of all", cwd=tmp_path)
    repository = new_repository(tmp_path / "repository")
    told = run(cwd=repository)
    assert f"{root} lies above the repository {repository}" in told.out
    follow(told, 'agentctl new "TITLE"', cwd=repository)
    assert run(cwd=repository).out.startswith("Nothing was started here yet")


def test_alone_it_says_who_asks_what_failed_and_what_runs(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=2)
    spawn(worker("exits", 3), "--wait", name="broken", check=False)
    spawn(worker("exits", 4), "--wait", name="looked-at", check=False)
    SeenEnds(Root(str(root))).note({WorkerId("t1", "looked-at"): row("looked-at")["endedAt"]})
    spawn(worker("asks", "--kind", "confirm", "Go on?"), name="q")
    task.has("agent.blocked", "q")
    spawn_batch([held(tmp_path / "gate", name) for name in ("r", "w")])
    before = snapshot(root)
    told = run()
    assert (told.err, snapshot(root) == before) == ("", True)
    lines = told.out.splitlines()
    assert lines[0] == "Needs you: 1"
    assert lines[1].startswith("q of t1 needs you: Go on? agentctl ")
    assert lines[2:] == [
        "Failed: 1",
        "broken of t1 failed (exit_code 3)",
        "t1: 1 running, 1 queued",
        "Done: 1 (1 failed)",
    ]
    assert run("status", "--task", "t1").out == told.out
    assert on_a_terminal([*PROGRAM])[1].decode().splitlines() == lines
    (tmp_path / "gate").touch()
    run("cancel", "q")
    task.ended("r", "w")


@pytest.mark.slow
def test_alone_it_stays_short(root: Path) -> None:
    new_task(cap=8)
    spawn_batch([{"argv": worker("exits", 1), "name": f"f{number}"} for number in range(8)])
    run("wait-all", check=False)
    assert run().out.splitlines()[0::6] == ["Failed: 8", "and 3 more"]
    assert len(run().out.splitlines()) == 7


@pytest.mark.slow
def test_alone_it_says_that_a_queue_stands_still_and_what_moves_it(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    spawn_batch([held(tmp_path / "gate", name) for name in ("r", "w")])
    task.has("agent.started", "r")
    kill(task.shim_of("r"))
    kill(*[row("r")["pid"]] * bool(row("r")["pid"]))
    told = wait_until(run, accept=lambda told: "stranded" in told.out, what="the standstill")
    (tmp_path / "gate").touch()
    follow(told, "agentctl resume --lost")
    task.ended("w")


@pytest.mark.slow
@pytest.mark.follows("interfaces/commands/watch/status._lines: agentctl doctor")
def test_alone_it_says_which_task_cannot_be_read(root: Path) -> None:
    new_task()
    spawn(worker("exits", 0), "--wait", name="a")
    events = root / "tasks" / "t1" / "events.jsonl"
    events.unlink()
    events.mkdir()
    told = run()
    assert told.out == "Unknown, as they cannot be read: t1; agentctl doctor says why\n"
    assert "events.jsonl" in follow(told, "agentctl doctor", check=False).out


# -- answer ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def asked(root: Path) -> None:
    """Have two workers ask, one of them in another task too."""
    for name, workers in (("one", ("a",)), ("two", ("a", "b"))):
        run("new", name, "--id", name)
        for instance in workers:
            spawn(worker("asks", "--kind", "confirm", f"{instance} of {name}?"), name=instance)
    wait_until(lambda: run("interact", "list", "--json").json, accept=lambda rows: len(rows) == 3, what="all questions")


@pytest.mark.follows("operations/talk/interacting.only_question: agentctl answer")
def test_answer_lists_shows_reads_and_gives_answers(root: Path, asked: None) -> None:
    assert run("answer").out == run("interact").out == run("interact", "list").out
    shown = on_a_terminal([*PROGRAM, "answer"])[1].decode()
    assert [line[:3] for line in shown.splitlines() if " asks: " in line] == ["1. ", "2. ", "3. "]
    assert run("answer", "b").out == run("interact", "list").out.splitlines(keepends=True)[-1]
    assert [one["agentInstance"] for one in run("answer", "b", "--json").json] == ["b"]

    for words in (["a"], ["a", "--json"]):
        unclear = run("answer", *words, check=False)
        assert (unclear.code, unclear.out) == (2, "")
        assert "2 questions of a are open" in unclear.err
        assert all(f"a --task {task} --id q1 ANSWER" in unclear.err for task in ("one", "two"))
    for word in ("yes", "one-more"):
        nobody = run("answer", word, check=False)
        assert (nobody.code, nobody.out, f"no worker or sub-task '{word}'" in nobody.err) == (3, "", True)
        assert "b --task two --id q1 ANSWER (ANSWER: yes, no)" in nobody.err
    assert run("answer", "b", "yes", check=False).code == 2, "nobody has shown which question this is"

    terminal = Terminal([*PROGRAM, "answer", "b"])
    terminal.until("your answer: ")
    assert b"b in two asks: b of two?" in terminal.sent
    terminal.write(b"perhaps\n")
    assert (terminal.end(), b"is neither yes nor no" in terminal.sent) == (2, True)
    terminal = Terminal([*PROGRAM, "answer", "b"])
    terminal.until("your answer: ")
    terminal.write(b"\n")
    assert (terminal.end(), b"nothing was answered" in terminal.sent) == (1, True)
    terminal = Terminal([*PROGRAM, "answer", "b"])
    terminal.until("your answer: ")
    terminal.write(b"yes\n")
    assert (terminal.end(), b"answered q1 of b in two: yes" in terminal.sent) == (0, True)

    several = run("interact", "respond", "yes", check=False)
    place = {"INSTANCE": "a", "TASK": "one", "ID": "q1", "ANSWER": "no"}
    answered = follow(several, "agentctl answer INSTANCE --task TASK --id ID ANSWER", put=place)
    assert answered.out == "answered q1 of a in one: no\n"
    assert run("answer", "a", "--id", "q1", "yes").out == "answered q1 of a in two: yes\n"
    assert run("answer").out == ""


def test_what_was_typed_before_the_question_is_shown_answers_nothing(root: Path) -> None:
    task = new_task()
    spawn(worker("asks", "--kind", "confirm", "Go on?"), name="a")
    task.has("agent.blocked", "a")
    terminal = Terminal([*PROGRAM, "answer", "a"])
    terminal.write(b"yes\n")
    terminal.until("your answer: ")
    terminal.write(b"no\n")
    assert terminal.end() == 0
    task.ended("a")
    assert [event["payload"]["answer"] for event in task.events("interaction.responded")] == ["no"]


# -- one command for several -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_wait_waits_for_all_or_any(root: Path) -> None:
    new_task()
    spawn(worker("exits", 0), "--wait", name="a")
    spawn(worker("exits", 3), "--wait", name="b", check=False)
    every = run("wait", "--all", check=False)
    assert (every.code, every.out) == (7, run("wait-all", check=False).out)
    assert run("wait", "--any").out == "a completed\n"
    assert run("wait", "--any", "b", "--json").json["agentInstance"] == "b"
    assert run("wait-any", check=False).code == 6, "the same consumer was given both"


@pytest.mark.slow
def test_diff_is_that_of_worktrees(root: Path, tmp_path: Path) -> None:
    repository = new_repository(tmp_path / "repository")
    new_task()
    run("spawn", "--worktree", "--wait", "--name", "a", "--", "sh", "-c", "echo new > new", cwd=repository)
    assert "+new" in run("diff", "a").out
    assert run("diff", "a").out == run("worktrees", "diff", "a").out
    assert run("diff", "a", "--stat").out == "1\t0\tadded\tnew\n"

"""Agents that speak ACP with bad manners: each ends with the right reason, nothing lives on, and every byte is kept."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from agentctl.adapters.taskdir import Root
from agentctl.errors import ExitCode
from agentctl.interfaces.editor.session import prompt_delivery
from agentctl.interfaces.editor.session.prompt_keys import PromptKey
from tests.agent_steps import activity, blocked, ends, rebuilds_the_same
from tests.processes import has_ended, variables_of
from tests.steps import Task, new_task
from tests.support import WORKERS, Completed, is_alive, run, wait_for_text, wait_until

MANNERS = (
    "polite", "floods", "forks", "deaf", "unknown", "huge", "chatty", "unannounced", "ids", "twice", "takes_back",
    "quits", "dies", "gives_up", "declines", "overflows", "goes_round", "broke", "works", "spends", "rises", "nests",
    "mute", "nonsense", "v2", "locked", "forgets", "renames", "loose", "drifts",
)  # fmt: skip


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """A task, and a person's own rows: one program for each manner."""
    programs = tmp_path / "bin"
    programs.mkdir()
    program = programs / "acp-agent"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {WORKERS / "acp_agent.py"} "$@"\n', encoding="utf-8")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    made = new_task(cap=3, grace=1)
    row = {"program": "acp-agent", "usage": "turn", "reportsCost": True}
    rows = {manner: {**row, "args": [manner], "asking": {}} for manner in MANNERS}
    (Path.home() / ".config" / "agentctl" / "acp.yaml").write_text(yaml.safe_dump(rows), encoding="utf-8")
    return made


def spawn(manner: str, *options: str, name: str = "a", prompt: str = "do it", check: bool = True) -> Completed:
    return run("spawn", "--agent", "general", "--driver", manner, "--name", name, *options, prompt, check=check)


def notes(task: Task, name: str = "a") -> str:
    return "\n".join(row["text"] for row in activity(task, name) if row["type"] == "note")


def said(task: Task, name: str = "a") -> list[dict[str, Any]]:
    """Return the messages that were sent to the program, in order."""
    lines = (task.agent(name) / "dialogue.jsonl").read_bytes().splitlines()
    data = "".join(row["data"] for row in map(json.loads, lines) if row.get("what") == "said")
    return [json.loads(line) for line in data.splitlines()]


def nothing_lives(task: Task) -> None:
    """Wait until no process of the task is alive."""
    mark = os.environ["AGENTCTL_TEST_ID"]

    def left() -> list[int]:
        ours = [one for one in psutil.process_iter() if variables_of(one).get("AGENTCTL_TEST_ID") == mark]
        return [one.pid for one in ours if one.pid != os.getpid() and not has_ended(one)]

    wait_until(left, what="nothing to be alive", accept=lambda pids: not pids)


def test_a_turn_with_the_role_before_the_prompt(task: Task) -> None:
    spawn("polite", prompt="/compact is text")
    end = ends()
    assert end["status"] == "completed"
    role, _, answer = end["result"]["finalMessage"].partition("\n")
    assert role.startswith("Done: ")
    assert answer.endswith("/compact is text")
    methods = [message.get("method") for message in said(task)]
    assert methods == ["initialize", "session/new", "session/prompt"]
    rebuilds_the_same(task)
    nothing_lives(task)


@pytest.mark.parametrize(
    ("manner", "reason", "words"),
    [
        ("quits", "truncated", "in the middle of its turn, with exit code 0"),
        ("dies", "signal", "signal 9 ended the program"),
        ("gives_up", "signal", "nobody had cancelled it"),
        ("declines", "refused", "declined"),
        ("overflows", "truncated", "limit of output"),
        ("goes_round", "max_turns", "own limit"),
        ("broke", "billing", "429 insufficient_quota: no money"),
        ("v2", "not_started", "speaks version 2 of the protocol, but agentctl speaks 1"),
        ("locked", "auth", "log in first"),
    ],
)
def test_an_end_that_is_none_is_told_with_its_reason(task: Task, manner: str, reason: str, words: str) -> None:
    spawn(manner)
    end = ends()
    assert (end["status"], end["reason"]) == ("failed", reason), end
    assert words in end["message"]
    nothing_lives(task)


def test_one_that_never_greets_is_stopped(task: Task) -> None:
    file = task.path / "task.yaml"
    text = file.read_text(encoding="utf-8").replace("config: {", "config: {retryCeilingSeconds: 1, ", 1)
    file.write_text(text, encoding="utf-8")
    spawn("mute")
    end = ends()
    assert (end["status"], end["reason"]) == ("failed", "not_started"), end
    assert "opened no session within 1 s" in end["message"]
    nothing_lives(task)


def test_a_flood_on_stderr_holds_nothing_up(task: Task) -> None:
    spawn("floods")
    assert ends()["status"] == "completed"
    assert (task.agent("a") / "stderr.log").read_bytes().count(b"noise") == 100_000


def test_what_it_forked_does_not_outlive_it(task: Task) -> None:
    spawn("forks")
    assert ends()["result"]["finalMessage"] == "forked"
    assert not is_alive(int(Path("forked").read_text()))
    nothing_lives(task)


def test_one_that_is_deaf_to_a_cancel_is_killed_with_all_its_processes(task: Task) -> None:
    spawn("deaf")
    child = int(wait_for_text("forked"))
    wait_for_text(task.agent("a") / "activity.jsonl", "long")
    told = run("cancel", "--json", "a").json
    assert (told["status"], told["survivors"]) == ("cancelled", [])
    assert not is_alive(child)
    assert "session/cancel" in [message.get("method") for message in said(task)]
    nothing_lives(task)


def test_what_is_unknown_is_counted_answered_and_kept(task: Task) -> None:
    spawn("unknown")
    assert ends()["result"]["finalMessage"] == "known"
    told = notes(task)
    for what in ("of_next_year", "fs/read_text_file, refused", "terminal/create, refused", "invalid"):
        assert what in told
    refused = [message for message in said(task) if message.get("error", {}).get("code") == -32601]
    assert [message["id"] for message in refused] == ["q", 0, 1]
    assert b"of_next_year" in (task.agent("a") / "stdout.log").read_bytes()


def test_a_line_of_eight_megabytes(task: Task) -> None:
    spawn("huge")
    assert ends()["result"]["finalMessage"] == "small"
    assert (task.agent("a") / "stdout.log").stat().st_size > 8 << 20
    row = next(row for row in activity(task) if row["id"] == "big" and row["phase"] == "end")
    assert len(row["text"]) < 100_000


def test_lines_that_are_no_messages_are_survived_and_kept(task: Task) -> None:
    spawn("chatty")
    assert ends()["result"]["finalMessage"] == "quiet"
    assert "line that is not a JSON object (4)" in notes(task)
    assert b"\xff\xfe not even text\n" in (task.agent("a") / "stdout.log").read_bytes()


def test_a_permission_without_a_call_before_it(task: Task) -> None:
    spawn("unannounced")
    question = blocked()
    assert question["tool"] == "Bash"
    assert "rm -rf build" in question["question"]
    assert [option["id"] for option in question["options"]] == ["allow", "allow_always", "deny"]
    run("interact", "respond", "a", "--id", "q1", "allow")
    assert '"optionId": "o-yes"' in ends()["result"]["finalMessage"]
    rebuilds_the_same(task)


def test_a_denial_chooses_the_option_that_rejects(task: Task) -> None:
    spawn("unannounced")
    blocked()
    run("interact", "respond", "a", "--id", "q1", "deny")
    assert '"optionId": "o-no"' in ends()["result"]["finalMessage"]


def test_ids_are_answered_as_they_came(task: Task) -> None:
    spawn("ids", "--permissions", "allow")
    assert ends()["status"] == "completed"
    answered = [message["id"] for message in said(task) if message.get("result", {}).get("outcome")]
    assert answered == [0, "0", -5, 2**53, "é", ""]


def test_answers_that_come_twice_are_counted(task: Task) -> None:
    spawn("twice")
    end = ends()
    assert (end["status"], end["result"]["finalMessage"]) == ("completed", "once")
    assert "response to an unknown call" in notes(task)


def test_a_question_that_is_taken_back(task: Task) -> None:
    spawn("takes_back")
    blocked()
    Path("asked").touch()
    assert "-32800" in ends()["result"]["finalMessage"]
    assert run("interact", "list", "--json").json == []


def test_a_cancel_answers_what_is_open_as_cancelled(task: Task) -> None:
    spawn("unannounced")
    blocked()
    assert run("cancel", "--json", "a").json["status"] == "cancelled"
    outcomes = [message["result"] for message in said(task) if "result" in message]
    assert outcomes == [{"outcome": {"outcome": "cancelled"}}]
    nothing_lives(task)


def test_max_turns_is_a_reason_and_no_success(task: Task) -> None:
    spawn("works", "--max-turns", "3", "--permissions", "allow")
    end = ends()
    assert (end["reason"], end["result"]["turnsUsed"]) == ("max_turns", 3)


def test_tokens_and_money_are_those_of_all_turns(task: Task) -> None:
    spawn("spends", "--keep")
    blocked()
    run("send", "a", "again", "--close")
    result = ends()["result"]
    assert result["usage"] == {"input": 200, "output": 100, "cached": 20}
    assert result["costUsd"] == 0.5


def test_what_a_program_does_not_tell_is_no_figure_and_makes_each_sum_the_least_that_it_was(task: Task) -> None:
    spawn("twice", name="silent")
    result = ends("silent")["result"]
    none = dict.fromkeys(("input", "output", "cached"))
    assert (result["usage"], result["costUsd"]) == (none, None)
    assert run("list", "--json").json[0]["usage"] == {**none, "costUsd": None}
    assert run("tree", "--json").json["workers"][0]["tokens"] == none
    silent = run("usage", "--json").json
    for row in (silent["workers"][0], silent["agents"][0], silent["tasks"][0], silent["total"]):
        assert (row["tokens"], row["costUsd"]) == (None, None)
    assert [line.split("\t")[3:7] for line in run("usage").out.splitlines()] == [["-"] * 4] * 4
    spawn("spends", name="telling")
    ends("telling")
    used = run("usage", "--json").json
    assert "atLeast" not in used["workers"][1]
    for row in (used["agents"][0], used["tasks"][0], used["total"], run("timeline", "--json").json["total"]):
        assert (row["tokens"], row["costUsd"], row["atLeast"]) == (150, 0.25, ["tokens", "costUsd"])
    assert "≥150 tokens" in run("timeline", "--html", "t.html").out + Path("t.html").read_text(encoding="utf-8")


def test_a_turn_that_it_begins_by_itself_is_seen_and_ended(task: Task) -> None:
    spawn("rises", "--keep")
    blocked()
    Path("rise").touch()
    assert wait_for_text("risen", "cancelled") == "cancelled"
    run("send", "a", "--close")
    assert ends()["status"] == "completed"
    assert "it began a turn by itself" in notes(task)


def test_sub_agents_by_the_programs_own_fields_and_by_sessions_of_their_own(task: Task) -> None:
    spawn("nests")
    assert ends()["result"]["finalMessage"] == "nested"
    rows = {row["id"]: row for row in activity(task)}
    assert (rows["a"]["type"], rows["a"]["agentType"], rows["a"]["status"]) == ("agent", "explorer", "completed")
    assert rows["b"]["parent"] == "a"
    assert any(row.get("parent") == "child-1" and row["type"] == "message" for row in rows.values())


def test_a_resumed_session_may_have_another_id_and_its_history_is_no_new_work(task: Task) -> None:
    spawn("renames")
    assert ends()["status"] == "completed"
    resumed = run("resume", "--json", "a", "go on").json["agentInstance"]
    end = ends(resumed)
    assert (end["status"], end["result"]["turnsUsed"]) == ("completed", 0)
    assert end["result"]["sessionId"] == "session-2"
    assert "replayed: 3 updates" in notes(task, resumed)
    loaded = next(message for message in said(task, resumed) if message["method"] == "session/load")
    assert loaded["params"]["sessionId"] == "session-1"
    assert "the old answer" not in json.dumps(activity(task, resumed))
    again = run("resume", "--json", resumed, "once more").json["agentInstance"]
    ends(again)
    loaded = next(message for message in said(task, again) if message["method"] == "session/load")
    assert loaded["params"]["sessionId"] == "session-2"


def test_one_that_cannot_continue_a_session_says_so(task: Task) -> None:
    spawn("forgets")
    ends()
    told = run("resume", "a", "go on", check=False)
    assert told.code == ExitCode.NOT_FOUND
    assert "runs forgets, which cannot continue sessions" in told.err
    assert "agentctl retry a" in told.err
    assert "agentctl resume" not in run("why", "a").out
    again = run("retry", "--json", "a").json["agentInstance"]
    assert ends(again)["status"] == "completed"


def test_in_an_editor_one_that_cannot_continue_begins_anew_with_all_that_it_has_not_read(
    task: Task, root: Path
) -> None:
    spawn("forgets")
    ends()
    inbox = task.agent("a") / "inbox"
    (inbox / "000001.json").write_text(json.dumps({"id": "m1", "text": "the first"}), encoding="utf-8")
    ended = Root(str(root)).task(task.path.name).worker("a")
    given = prompt_delivery.prompt_again(ended, "a", "the second", PromptKey("k"))
    assert "runs forgets, which cannot continue sessions: the agent begins anew" in given.notes[0]
    answer = ends(given.worker.instance)["result"]["finalMessage"]
    assert "the first\n\nthe second" in answer
    again = prompt_delivery.take_up_messages(ended).worker.instance
    assert ends(again)["result"]["finalMessage"].endswith("the first")


def test_who_may_only_read_is_refused_where_nothing_enforces_that(task: Task) -> None:
    told = run("spawn", "--agent", "explore", "--driver", "polite", "look", check=False)
    assert told.code == 1
    assert "cannot honour readOnly" in told.err
    assert "say in its row of acp.yaml (readOnly)" in told.err


def test_a_preference_that_it_cannot_honour_is_left_out_as_the_warning_says(task: Task) -> None:
    row = {"program": "acp-agent", "args": ["polite"], "asking": {}, "cannot": ["model", "effort"]}
    (Path.home() / ".config" / "agentctl" / "acp.yaml").write_text(yaml.safe_dump({"polite": row}), encoding="utf-8")
    told = spawn("polite", "--model", "x", "--effort", "low")
    for name in ("model", "effort"):
        assert f"the driver polite cannot honour {name}: it is left to the program" in told.err
    assert ends()["status"] == "completed"
    assert {"model", "effort"}.isdisjoint(json.loads((task.agent("a") / "spec.json").read_bytes())["order"])


def test_one_that_begins_in_a_mode_that_nobody_ordered_gets_no_prompt(task: Task) -> None:
    for name, options in (("a", ("--permissions", "deny")), ("b", ())):
        spawn("loose", *options, name=name)
        end = ends(name)
        assert (end["status"], end["reason"]) == ("failed", "not_started"), end
        assert "loose is in the mode auto, about which its row says nothing" in end["message"]
        assert "session/prompt" not in [message["method"] for message in said(task, name)]
    nothing_lives(task)


@pytest.mark.parametrize("beginning", ["new", "kept", "resumed"])
def test_one_that_leaves_its_mode_is_stopped_however_it_was_begun(task: Task, beginning: str) -> None:
    order_ask()
    agent = "a"
    if beginning == "new":
        spawn("drifts", prompt="again")
    elif beginning == "kept":
        spawn("drifts", "--keep")
        blocked()
        run("send", "a", "again")
    else:
        spawn("drifts")
        assert ends()["status"] == "completed"
        agent = run("resume", "--json", "a", "again").json["agentInstance"]
    end = ends(agent)
    assert (end["status"], end["reason"]) == ("failed", "permission_denied"), end
    assert "drifts is in the mode auto, but ask was ordered" in end["message"]
    nothing_lives(task)


def test_one_whose_mode_ones_own_settings_decide_is_let_alone(task: Task) -> None:
    order_ask()
    spawn("drifts", "--permissions", "own", prompt="again")
    wait_for_text(task.agent("a") / "stdout.log", "current_mode_update")
    assert run("cancel", "--json", "a").json["status"] == "cancelled"


def test_the_name_of_an_agent_of_ours_is_another_one_at_each_start_and_known_to_who_rebuilds(task: Task) -> None:
    asking = {"mode": "{name}", "environ": {"OURS": "{name}"}}
    rows = {"polite": {"program": "acp-agent", "args": ["polite"], "asking": asking}}
    (Path.home() / ".config" / "agentctl" / "acp.yaml").write_text(yaml.safe_dump(rows), encoding="utf-8")
    spawn("polite")
    assert ends()["status"] == "completed"
    rebuilds_the_same(task)
    again = run("resume", "--json", "a", "again").json["agentInstance"]
    assert ends(again)["status"] == "completed"
    names = {
        json.loads((task.agent(one) / "dialogue.jsonl").read_bytes().splitlines()[0])["nonce"] for one in ("a", again)
    }
    assert len(names) == 2
    assert not any(name in (task.agent(one) / "spec.json").read_text() for name in names for one in ("a", again))


def order_ask() -> None:
    """Write the person's row of one that leaves its mode at the prompt `again`."""
    rows = {"drifts": {"program": "acp-agent", "args": ["drifts"], "asking": {"modes": ["ask"]}}}
    (Path.home() / ".config" / "agentctl" / "acp.yaml").write_text(yaml.safe_dump(rows), encoding="utf-8")


def test_one_of_which_nothing_shows_that_it_asks_is_refused_where_somebody_is_asked(task: Task) -> None:
    rows = {"polite": {"program": "acp-agent", "args": ["polite"]}}
    (Path.home() / ".config" / "agentctl" / "acp.yaml").write_text(yaml.safe_dump(rows), encoding="utf-8")
    for options in (), ("--permissions", "deny"), ("--permissions", '[{"tool": "Bash", "answer": "allow"}]'):
        told = spawn("polite", *options, check=False)
        assert told.code == 1
        assert "nothing shows that polite asks before it acts" in told.err
        assert "`--permissions own`" in told.err
        assert "`asking`" in told.err
    for number, policy in enumerate(("own", "allow")):
        spawn("polite", "--permissions", policy, name=f"a{number}")
        assert ends(f"a{number}")["status"] == "completed"


def test_one_that_is_busy_with_another_start_of_it_is_started_again(task: Task) -> None:
    row = {"program": "acp-agent", "args": ["locks"], "asking": {}, "busy": ["is locked"]}
    (Path.home() / ".config" / "agentctl" / "acp.yaml").write_text(yaml.safe_dump({"locks": row}), encoding="utf-8")
    Path("locked").write_text("2", encoding="utf-8")
    spawn("locks")
    end = ends()
    assert end["status"] == "completed", end
    assert end["result"]["finalMessage"].endswith("do it")
    assert notes(task).count("it was started once more") == 2
    rebuilds_the_same(task)
    nothing_lives(task)


def test_any_program_by_a_definition(task: Task, root: Path) -> None:
    head = json.dumps({"name": "own", "description": "x", "driver": "acp", "argv": ["acp-agent", "polite"]})
    file = root / "agents" / "own.md"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"---\n{head}\n---\nYou are polite.\n", encoding="utf-8")
    assert "not trusted" in run("spawn", "--agent", "own", "hello", check=False).err
    run("trust", file)
    told = run("spawn", "--agent", "own", "hello", check=False)
    assert told.code == 1
    assert "nothing shows that acp asks before it acts" in told.err
    assert "`--permissions own`" in told.err
    run("spawn", "--agent", "own", "--permissions", "own", "--name", "a", "hello")
    assert ends()["result"]["finalMessage"] == "Done: You are polite.\nhello"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x: {program: 5}", "acp.yaml:1: x: program must be text, not 5: quote it"),
        ("x:\n  program: x\n  argz: []", "acp.yaml:3: x: unknown key 'argz'"),
        ("x:\n  args: [acp]", "acp.yaml:1: x names no program"),
        ("x: {program: x, args: [a, 5]}", "x: item 2 of args must be text, not 5: quote it"),
        ("x: {program: x, environ: {MODE: on}}", "x: MODE must be text, not True: quote it"),
        ("claude: {program: x}", "acp.yaml:1: claude is the name of a driver that is part of agentctl"),
        ("x: {program: x, environ: {'A=B': c}}", "cannot be the name of a variable"),
        ("x: [", "acp.yaml:1:"),
    ],
)
def test_a_bad_row_is_an_error_with_file_and_line(task: Task, text: str, words: str) -> None:
    (Path.home() / ".config" / "agentctl" / "acp.yaml").write_text(text, encoding="utf-8")
    told = spawn("x", check=False)
    assert told.code == 2
    assert words in told.err
    examined = run("doctor", "--json", check=False)
    (found,) = [row for row in examined.json if words in row["what"]]
    assert (found["severity"], examined.code) == ("error", 1)
    assert [row for row in examined.json if row["what"].startswith("claude: ")], "the others are examined all the same"


def test_rows_that_others_can_write_are_not_believed(task: Task) -> None:
    file = Path.home() / ".config" / "agentctl" / "acp.yaml"
    file.chmod(0o666)
    told = spawn("polite", check=False)
    assert told.code == 2
    assert "acp.yaml says which programs are run, and others can write it" in told.err
    assert f"chmod go-w {file}" in told.err


def test_one_that_does_not_speak_acp_is_told_with_its_arguments(task: Task) -> None:
    spawn("nonsense")
    end = ends()
    assert (end["status"], end["reason"]) == ("failed", "not_started"), end
    assert end["message"].startswith("out of luck; ")
    assert "exit code 3 (it may not speak ACP, or may need other arguments" in end["message"]
    assert "args of its row: nonsense" in end["message"]


def test_it_is_not_started_where_a_project_has_what_its_program_obeys(task: Task) -> None:
    file = Path.home() / ".config" / "agentctl" / "acp.yaml"
    row = {"program": "acp-agent", "args": ["polite"], "asking": {}, "obeys": [".hooks", "agent.json: plugin"]}
    file.write_text(yaml.safe_dump({"polite": row}), encoding="utf-8")
    harmless = Path("agent.json")
    harmless.write_text('{"model": "x"}')
    spawn("polite")
    assert ends()["status"] == "completed"
    for hostile in ('{"plugin": ["x"]}', '{"\\u0070lugin": ["x"]}'):
        harmless.write_text(hostile)
        told = spawn("polite", name="b", check=False)
        assert told.code == 1
        assert "would obey" in told.err
    harmless.unlink()
    below = Path("src")
    below.mkdir()
    Path(".hooks").symlink_to("nowhere")
    told = spawn("polite", "--cwd", str(below), name="c", check=False)
    assert str(Path(".hooks").absolute()) in told.err

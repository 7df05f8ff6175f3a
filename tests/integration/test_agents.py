"""At stake: an agent is a worker like any other, and its questions, messages, ends and sessions work too."""

from __future__ import annotations

import json
import os
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.agent_steps import agent, agent_world, blocked, ends
from tests.life import known, living, read, set_config
from tests.steps import Task, new_task, row, statuses
from tests.support import PROGRAM, alike, run, start, wait_for_text, wait_until
from tests.terminal import on_a_terminal


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    return agent_world(tmp_path, monkeypatch)


def test_an_answer_is_a_result_with_its_usage_and_session(task: Task) -> None:
    agent("say all is well")
    end = ends()
    assert end["status"] == "completed"
    result = end["result"]
    assert (result["finalMessage"], result["success"], result["turnsUsed"]) == ("all is well", True, 0)
    assert result["usage"]["output"] == 5
    assert result["sessionId"] == read(task.agent("a") / "session.json")["session"]
    assert run("result", "a").out == "all is well\n"
    rows = [json.loads(line) for line in (task.agent("a") / "activity.jsonl").read_bytes().splitlines()]
    assert [one["text"] for one in rows if one["type"] == "message"] == ["say all is well", "all is well"]


def test_a_permission_is_answered_from_another_terminal(task: Task) -> None:
    agent("permit touch it")
    asked = blocked()
    assert (asked["tool"], asked["arguments"]["command"]) == ("Bash", "touch it")
    assert statuses() == {"a": "blocked"}
    run("interact", "respond", "a", "--id", "q1", "deny")
    assert ends()["result"]["finalMessage"] == "denied"


@pytest.mark.slow
def test_a_policy_answers_what_it_covers_and_leaves_the_rest_to_a_person(task: Task) -> None:
    rules = json.dumps([{"tool": "Bash", "pattern": "git status*", "answer": "allow"}])
    agent("permit git status --short", "--permissions", rules)
    assert ends()["result"]["finalMessage"] == "allowed"
    run("spawn", "--agent", "general", "--name", "b", "--permissions", rules, "permit git push")
    assert blocked("b")["arguments"]["command"] == "git push"
    run("interact", "respond", "b", "--id", "q1", "allow")
    assert ends("b")["result"]["finalMessage"] == "allowed"


@pytest.mark.slow
def test_an_agent_allows_its_child_no_more_than_it_may_itself(task: Task) -> None:
    agent("say x", "--keep")
    blocked()
    inside = {"AGENTCTL_TASK": "t1", "AGENTCTL_INSTANCE": "a", "AGENTCTL_AGENT_DIR": str(task.agent("a"))}
    refused = run("spawn", "--agent", "explore", "--permissions", "allow", "say x", env=inside, check=False)
    assert "not allowed itself" in refused.err
    run("cancel", "a")


@pytest.mark.slow
def test_a_question_is_answered_with_an_option_or_in_other_words(task: Task) -> None:
    agent("question")
    asked = blocked()
    assert [option["label"] for option in asked["options"]] == ["red: warm", "blue: cold"]
    run("interact", "respond", "a", "--id", "q1", "blue")
    assert ends()["result"]["finalMessage"] == "blue"


def test_a_kept_agent_takes_messages_and_lends_its_slot(task: Task) -> None:
    task.set_cap(1)
    agent("say one", "--keep")
    blocked()
    assert run("result", "a", check=False).out == "one\n"
    run("spawn", "--name", "b", "--", "true")
    run("wait", "b")
    run("send", "a", "say two")
    wait_until(lambda: read(task.agent("a") / "result.json")["finalMessage"] == "two", what="the second answer")
    run("send", "a", "--close")
    end = ends()
    assert (end["status"], end["result"]["finalMessage"]) == ("completed", "two")


@pytest.mark.slow
def test_a_kept_agent_goes_on_only_when_its_slot_is_its_own_again(task: Task, tmp_path: Path) -> None:
    task.set_cap(1)
    agent("say one", "--keep")
    blocked()
    guest = ["/bin/sh", "-c", f"while ! [ -e {tmp_path / 'gate'} ]; do sleep 0.02; done"]
    run("spawn", "--name", "b", "--", *guest)
    run("send", "a", "say two")
    assert run("spawn", "--", "true", check=False).code == 5
    assert read(task.agent("a") / "result.json")["finalMessage"] == "one"
    (tmp_path / "gate").touch()
    wait_until(lambda: read(task.agent("a") / "result.json")["finalMessage"] == "two", what="the second answer")
    run("cancel", "a")
    assert task.events("agent.completed", of="b")[0]["ts"] < read(task.agent("a") / "result.json")["at"]


@pytest.mark.slow
def test_an_answer_to_what_next_is_a_message(task: Task) -> None:
    agent("say one", "--keep")
    blocked()
    run("interact", "respond", "a", "--id", "q1", "say three")
    wait_until(lambda: read(task.agent("a") / "result.json")["finalMessage"] == "three", what="the answer")
    run("cancel", "a")
    assert statuses() == {"a": "cancelled"}


def test_an_ended_agent_is_continued_from_its_session(task: Task) -> None:
    agent("say one", "--model", "big")
    first = ends()
    told = run("resume", "a", "argv", "--json").json
    second = ends(told["agentInstance"])
    argv = json.loads(second["result"]["finalMessage"])
    assert first["result"]["sessionId"] in " ".join(argv)
    assert "big" in " ".join(argv)
    assert read(task.agent(told["agentInstance"]) / "spec.json")["agentId"] == "a"
    third = run("resume", "a", "say more", "--json").json
    assert ends(third["agentInstance"])["result"]["sessionId"] == first["result"]["sessionId"]


@pytest.mark.slow
def test_what_cannot_be_continued_says_so(task: Task) -> None:
    run("spawn", "--name", "c", "--", "true")
    run("wait", "c")
    assert "is a command" in run("resume", "c", "more", check=False).err
    agent("hang")
    assert "has not ended" in run("resume", "a", "more", check=False).err
    run("cancel", "a")


@pytest.mark.slow
def test_lost_agents_are_continued(task: Task) -> None:
    agent("hang")
    wait_for_text(task.agent("a") / "activity.jsonl", "working")
    leader = known(read(task.agent("a") / "worker.json")["pid"])
    os.kill(task.shim_of("a"), signal.SIGKILL)
    os.killpg(leader.pid, signal.SIGKILL)
    wait_until(lambda: row("a")["status"], what="its loss", accept=lambda status: status == "failed")
    assert row("a")["reason"] in ("lost", "signal")
    told = run("resume", "--lost", "--json").json
    assert [one["status"] for one in told] == ["running"]
    assert ends(told[0]["agentInstance"])["status"] == "completed"
    assert run("resume", "--lost", "--json").json == []


@pytest.mark.slow
@pytest.mark.parametrize("is_chosen", [True, False])
def test_an_agent_that_was_lost_days_ago_is_left_alone_and_named(task: Task, is_chosen: bool) -> None:
    """Whoever wanted it back could have had it by then; at boot nobody is asked."""
    agent("hang")
    wait_for_text(task.agent("a") / "activity.jsonl", "working")
    leader = known(read(task.agent("a") / "worker.json")["pid"])
    os.kill(task.shim_of("a"), signal.SIGKILL)
    os.killpg(leader.pid, signal.SIGKILL)
    wait_until(lambda: row("a")["reason"], what="its loss", accept=lambda reason: reason == "lost")
    log = task.path / "events.jsonl"
    *before, end = log.read_text(encoding="utf-8").splitlines()
    assert '"type":"agent.failed"' in end
    two_days_ago = (datetime.now(UTC) - timedelta(days=2)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    event = {**json.loads(end), "ts": two_days_ago}
    log.write_text("".join(f"{line}\n" for line in (*before, json.dumps(event, separators=(",", ":")))), "utf-8")
    if not is_chosen:
        run("new", "Another", "--id", "another")
    quiet = run("resume", "--lost")
    assert (quiet.out, quiet.err) == ("", ""), "cron would send it by mail at each boot"
    _, shown = on_a_terminal([*PROGRAM, "resume", "--lost"])
    command = f"agentctl resume --lost --task {task.path.name}"
    assert f"a of {task.path.name}; to continue: {command}" in shown.decode()
    told = run(*command.split()[1:], "--json").json
    assert [one["message"] for one in told] == [f"continues a, lost since {two_days_ago}"]
    run("use", task.path.name)
    assert ends(told[0]["agentInstance"])["status"] == "completed"


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [("cut", "truncated"), *alike(("crash", "truncated"), ("retry 401", "auth"), ("retry 529", "overloaded"))],
)
def test_no_ending_is_a_success_that_was_none(task: Task, prompt: str, reason: str) -> None:
    set_config(task, retryCeilingSeconds=0.3, cooldownSeconds=0)
    agent(prompt)
    end = ends()
    assert (end["status"], end["reason"]) == ("failed", reason)
    assert end["result"]["success"] is False


@pytest.mark.slow
def test_a_rate_limit_is_tried_again_in_the_same_session(task: Task, tmp_path: Path) -> None:
    set_config(task, cooldownSeconds=0)
    agent(f"once 429 {tmp_path / 'tried'}", "--retries", "2", "--retry-delay-seconds", "0.05")
    end = ends()
    assert (end["status"], end["attempt"]) == ("completed", 2)
    assert read(task.agent("a") / "exit.1.json")["reason"] == "rate_limited"


@pytest.mark.slow
def test_a_cancel_interrupts_by_the_protocol_and_answers_what_is_open(task: Task) -> None:
    agent("permit rm -rf build")
    blocked()
    run("cancel", "a")
    end = ends()
    assert (end["status"], end.get("signal")) == ("cancelled", None)
    assert run("interact", "list", "--json").json == []
    assert "is being stopped" in json.dumps(read(task.agent("a") / "interactions" / "q1.answer.json"))


@pytest.mark.slow
def test_a_deaf_agent_is_cancelled_with_all_its_processes(task: Task, tmp_path: Path) -> None:
    agent(f"deaf {tmp_path / 'pids'}", "--grace-seconds", "0.2")
    pids = [known(int(pid)) for pid in wait_for_text(tmp_path / "pids").split()]
    run("cancel", "a")
    assert living(pids) == []
    assert statuses() == {"a": "cancelled"}


def test_a_killed_driver_completes_nothing(task: Task) -> None:
    agent("hang")
    wait_until((task.agent("a") / "session.json").exists, what="the session")
    os.kill(read(task.agent("a") / "worker.json")["pid"], signal.SIGKILL)
    end = ends()
    assert (end["status"], end["reason"], end["signal"]) == ("failed", "signal", "SIGKILL")


@pytest.mark.slow
def test_lines_of_many_megabytes_pass_and_unknown_ones_are_counted(task: Task) -> None:
    agent("large 5")
    assert ends()["status"] == "completed"
    assert Path(run("result", "a", "--json").json["path"]).read_text(encoding="ascii").endswith("xit was large")
    assert (task.agent("a") / "stdout.log").stat().st_size > 5 << 20
    run("spawn", "--agent", "general", "--name", "b", "odd")
    assert ends("b")["status"] == "completed"
    assert b"from_the_future" in (task.agent("b") / "activity.jsonl").read_bytes()


@pytest.mark.slow
def test_the_activity_is_made_again_from_the_raw_output(task: Task) -> None:
    agent("permit touch it")
    blocked()
    run("interact", "respond", "a", "--id", "q1", "allow")
    ends()
    file = task.agent("a") / "activity.jsonl"
    before = file.read_bytes()
    file.write_bytes(b"")
    run("activity", "a", "--rebuild")
    assert file.read_bytes() == before


@pytest.mark.slow
def test_the_environment_reaches_the_program_but_no_value_a_file(task: Task) -> None:
    agent("show SECRET", "--env", "SECRET=hunter2")
    assert ends()["result"]["finalMessage"] == "hunter2"
    spec = (task.agent("a") / "spec.json").read_text(encoding="utf-8")
    assert "hunter2" not in spec
    run("spawn", "--agent", "general", "--name", "b", "show TRACEPARENT")
    assert ends("b")["result"]["finalMessage"].startswith("00-")
    run("spawn", "--agent", "general", "--name", "c", "--env", "CLAUDECODE=1", "show CLAUDECODE")
    assert ends("c")["result"]["finalMessage"] == "unset"


@pytest.mark.slow
def test_what_cannot_be_honoured_is_refused_before_anything_is_made(task: Task) -> None:
    wrong = {
        ("--driver", "nobody"): "no driver 'nobody'",
        ("--agent", "exploer"): "Unknown agent type: exploer",
        ("--max-turns", "0"): "--max-turns must be at least 1",
        ("--max-budget-usd", "0"): "--max-budget-usd must be more than 0",
        ("--effort", "huge"): "effort must be one of",
        ("--permissions", "perhaps"): "perhaps",
    }
    for options, message in wrong.items():
        done = run(
            "spawn", *(("--agent", "general") if "--agent" not in options else ()), *options, "say x", check=False
        )
        assert done.code in (1, 2, 3), done
        assert message in done.err, done
    assert statuses() == {}


def test_a_program_that_is_not_there_is_named_with_the_way_to_get_it(root: Path) -> None:
    new_task()
    done = run("spawn", "--agent", "explore", "look", env={"PATH": "/usr/bin:/bin"}, check=False)
    assert done.code == 1
    assert "npm install" in done.err


@pytest.mark.slow
def test_a_stalled_worker_is_told_of_and_goes_on(task: Task, tmp_path: Path) -> None:
    config = task.path / "task.yaml"
    config.write_text(config.read_text(encoding="utf-8").replace("config: {", "config: {stallSeconds: 0.2, "))
    waiting = start("wait-any", "--for", "stalled", "--json", "--timeout-seconds", "20")
    wait_until(lambda: waiting.poll() is not None or True, what="the waiter")
    line = f"while ! [ -e {tmp_path / 'gate'} ]; do sleep 0.05; done"
    run("spawn", "--name", "s", "--shell", line)
    told = run("wait-any", "s", "--for", "stalled", "--json", "--consumer", "me", "--timeout-seconds", "20").json
    assert (told["agentInstance"], told["status"]) == ("s", "stalled")
    assert row("s")["stalled"] is True
    (tmp_path / "gate").touch()
    run("wait", "s")
    assert row("s")["stalled"] is False
    out, _ = waiting.communicate(timeout=20)
    assert "stalled" in out or waiting.returncode == 6


@pytest.mark.parametrize("prompt", ["- first\n- say second", *alike("--- say a = b", "-x\tsay it")])
def test_a_prompt_may_begin_with_a_dash(task: Task, prompt: str) -> None:
    agent(prompt)
    end = ends()
    assert end["status"] == "completed"
    assert read(task.agent("a") / "spec.json")["order"]["prompt"] == prompt


@pytest.mark.parametrize(
    "words", [["--driver", "claude", "say"], *alike(["--model=m", "say"], ["say", "--permissions", "deny"])]
)
def test_one_word_is_a_prompt_where_an_option_of_agents_is_given(task: Task, words: list[str]) -> None:
    run("spawn", "--name", "a", *words)
    ends()
    assert read(task.agent("a") / "spec.json")["order"]["prompt"] == "say"


def test_one_word_alone_is_neither_a_prompt_nor_a_command(task: Task) -> None:
    refused = run("spawn", "--name", "c", "--wait", "crash", check=False)
    assert refused.code == 2
    assert "'crash' is one word: --agent makes it a prompt" in refused.err
    assert "agentctl spawn --agent general crash; agentctl spawn -- crash" in refused.err
    refused = run("spawn", "make", "--name", "c", check=False)
    assert (refused.code, "a command follows --, and a prompt is one text, in quotes" in refused.err) == (2, True)


@pytest.mark.parametrize(
    "words", [["say it", "--name=a"], *alike(["argv", "--agent", "general", "--name", "a", "--model=m"])]
)
def test_options_may_stand_behind_a_prompt(task: Task, words: list[str]) -> None:
    run("spawn", *words)
    assert ends()["status"] == "completed"
    assert read(task.agent("a") / "spec.json")["order"]["prompt"] == words[0]
    wanting = run("spawn", "say it", "--name", check=False)
    assert (wanting.code, "requires an argument" in wanting.err) == (2, True)
    more = run("spawn", "say it", "--name", "b", "twice", check=False)
    assert (more.code, "a prompt is one text, in quotes" in more.err) == (2, True)


@pytest.mark.slow
def test_bytes_that_are_no_text_are_replaced_for_an_agent(task: Task) -> None:
    agent("say caf\udce9", "--keep")
    blocked()
    assert "caf\ufffd" in run("result", "a", check=False).out
    run("send", "a", "say th\udce9", "--close")
    assert ends()["result"]["finalMessage"] == "th\ufffd"
    agent("question", name="b")
    blocked("b")
    run("interact", "respond", "b", "--id", "q1", "gr\udce9n")
    assert ends("b")["result"]["finalMessage"] == "gr\ufffdn"

"""At stake: a result is bounded and says so: how much was cut, the whole size, its hash and its path."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from pathlib import Path

import pytest

from agentctl.adapters.taskdir import TaskDir
from agentctl.interfaces.screen.worker.worker_texts import ResultText
from agentctl.operations.delegate.delegating import delegated_result as task_result_of
from agentctl.operations.show.subtask_answer import answer_of
from agentctl.tools.listing import last_message
from agentctl.tools.results import result_of
from tests.agent_steps import agent, agent_world, blocked, ends, plays
from tests.steps import Task, held, new_task, spawn, spawn_batch
from tests.support import PROGRAM, alike, run, wait_until, worker
from tests.terminal import on_a_terminal


def test_the_tail_of_stdout_stands_in_for_a_result_and_the_cut_is_marked(root: Path) -> None:
    task = new_task()
    spawn(["sh", "-c", "seq 1 5000; echo to stderr >&2"], name="a")
    run("wait", "a")
    whole = (task.agent("a") / "stdout.log").read_bytes()
    told = run("result", "a", "--json").json
    assert (told["source"], told["truncated"], told["size"]) == ("stdout", True, len(whole))
    assert told["sha256"] == hashlib.sha256(whole).hexdigest()
    assert told["path"] == str(task.agent("a") / "stdout.log")
    assert told["text"].encode() == whole[-4000:]
    plain = run("result", "a")
    assert plain.out.encode() == whole[-4000:]
    assert plain.err == f"[cut: 4000 of {len(whole)} bytes; whole: {told['path']}]\n"
    assert run("result", "a", "--max-bytes", "1000000").out.encode() == whole
    assert run("result", "a", "--max-bytes", "0", "--json").json["text"] == ""


@pytest.mark.parametrize(
    ("printed", "limit"), [(r"\303\251" * 30, 31), *alike((r"\377" * 3, 2), (r"\360\237\220\215" * 30, 30))]
)
def test_binary_and_cut_characters_stay_within_the_bound(root: Path, printed: str, limit: int) -> None:
    new_task()
    spawn(["sh", "-c", f"printf '{printed}'"], name="a")
    run("wait", "a")
    told = run("result", "a", "--max-bytes", str(limit), "--json").json
    assert len(told["text"].encode()) <= limit
    assert told["truncated"] is True


@pytest.mark.slow
def test_a_long_declared_summary_is_cut_marked_and_found_whole(root: Path, tmp_path: Path) -> None:
    new_task()
    file = tmp_path / "report.md"
    file.write_text("short")
    spawn(worker("reports", "--summary", "\u00e9" * 5000, "--file", file), name="a")
    run("wait", "a")
    told = run("result", "a", "--json").json
    assert (told["truncated"], told["size"]) == (True, 10_000)
    assert told["summary"] == "\u00e9" * 2000
    assert Path(told["path"]).read_bytes() == ("\u00e9" * 5000).encode()
    assert told["sha256"] == hashlib.sha256(("\u00e9" * 5000).encode()).hexdigest()
    assert told["summaryCut"] == {key: told[key] for key in ("truncated", "size", "sha256", "path", "wrapped")}
    assert f"[cut: 4000 of 10000 bytes; whole: {told['path']}]" in run("result", "a").err


@pytest.mark.slow
def test_the_exit_code_tells_of_the_worker(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn_batch(
        [
            {"name": "good", "argv": ["echo", "fine"]},
            {"name": "bad", "argv": ["sh", "-c", "echo half; exit 3"]},
            {"name": "silent", "argv": ["true"]},
            held(tmp_path / "gate", "late"),
        ]
    )
    task.ended("good", "bad", "silent")
    assert (run("result", "good").out, run("result", "silent").out) == ("fine\n", "")
    bad = run("result", "bad", check=False)
    assert (bad.code, bad.out) == (7, "half\n")
    late = run("result", "late", check=False)
    assert late.code == 1
    assert "late is running" in late.err
    assert run("result", "nobody", check=False).code == 3
    assert run("result", "silent", "--json").json["source"] == "none"
    (tmp_path / "gate").touch()
    task.ended("late")


# -- what agents said last ---------------------------------------------------------------------------------------------


@pytest.fixture
def agents(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    return agent_world(tmp_path, monkeypatch)


def everywhere(task: Task, name: str = "a", status: str = "completed") -> list[str | None]:
    """Return an agent's last words from `result`, `join`, the tools of agents and the answer of a sub-task."""
    folder = TaskDir(str(task.path)).worker(name)
    joined = run("join", "--json").json["workers"]
    return [
        run("result", name, "--json", check=False).json["text"],
        next(one["text"] for one in joined if one["agentInstance"] == name),
        result_of(folder, status)["output"],
        answer_of(folder, "general").final_message or "",
    ]


@pytest.mark.slow
def test_the_last_words_of_an_agent_are_never_its_protocol(agents: Task) -> None:
    agent("question")
    blocked()
    assert everywhere(agents, status="blocked") == [""] * 4
    os.kill(run("show", "a", "--json").json["worker"]["pid"], signal.SIGKILL)
    assert ends()["status"] == "failed"
    assert everywhere(agents, status="failed") == [""] * 4
    agent("hang", name="b")
    wait_until(lambda: everywhere(agents, "b", "running") == ["working"] * 4)
    os.kill(run("show", "b", "--json").json["worker"]["pid"], signal.SIGKILL)
    assert ends("b")["status"] == "failed"
    assert everywhere(agents, "b", "failed") == ["working"] * 4


@pytest.mark.slow
def test_a_declared_summary_stands_beside_the_last_words(agents: Task, tmp_path: Path) -> None:
    report = "import subprocess, sys\nsubprocess.run([sys.executable, '-m', 'agentctl', 'report', 'result',"
    agent(plays(tmp_path, f"{report} '--summary', 'the summary'], check=True)\nme.answer('my last words')"))
    ends()
    assert everywhere(agents) == ["my last words"] * 4
    folder = TaskDir(str(agents.path)).worker("a")
    assert result_of(folder, "completed")["summary"] == "the summary"
    assert answer_of(folder, "general").summary == "the summary"
    assert run("result", "a").out == "the summary\nmy last words\n"


@pytest.mark.slow
def test_a_cut_text_is_whole_in_a_file_that_can_be_paged(agents: Task) -> None:
    text = f"{'word ' * 1500}\u00e9{'x' * 2500}"
    agent(f"say {text}")
    ends()
    told = result_of(TaskDir(str(agents.path)).worker("a"), "completed")
    data = Path(told["path"]).read_bytes()
    assert data.decode() == text.strip()
    assert (told["size"], told["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
    lines = Path(told["wrapped"]).read_text(encoding="utf-8").split("\n")
    assert max(map(len, lines)) <= 1000
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    Path(told["path"]).write_text("no longer so", encoding="ascii")
    assert Path(run("result", "a", "--json").json["path"]).read_bytes() == data
    short = result_of(TaskDir(str(agents.path)).worker("a"), "completed", 100_000)
    assert not {"truncated", "path", "wrapped"} & set(short)


def test_no_file_is_made_behind_a_link(agents: Task, tmp_path: Path) -> None:
    agent(f"say {'x' * 5000}")
    ends()
    (agents.agent("a") / "texts").symlink_to(tmp_path)
    before = sorted(tmp_path.iterdir())
    told = run("result", "a", "--json").json
    assert (told["truncated"], told["path"], sorted(tmp_path.iterdir())) == (True, None, before)
    assert "whole: agentctl result a --max-bytes 5000]" in run("result", "a").err


def test_why_it_failed_is_told_in_the_words_of_the_program(agents: Task) -> None:
    agent("crash")
    message = ends()["message"]
    assert message
    assert run("result", "a", "--json", check=False).json["message"] == message
    assert run("list", "--json").json[0]["message"] == message
    assert f": {message}" in run("wait", "a", check=False).out
    assert run("wait", "a", "--json", check=False).json["message"] == message
    assert json.loads(run("wait-any", "--json").out)["message"] == message
    assert message in run("result", "a", check=False).err


# -- what is long, and what came after an answer -----------------------------------------------------------------------


@pytest.mark.slow
def test_a_summary_that_is_cut_is_told_as_that_everywhere(agents: Task, tmp_path: Path) -> None:
    report = "import subprocess, sys\nsubprocess.run([sys.executable, '-m', 'agentctl', 'report', 'result',"
    agent(plays(tmp_path, f"{report} '--summary', 's' * 5000], check=True)\nme.answer('my last words')"))
    ends()
    folder = TaskDir(str(agents.path)).worker("a")
    cut = result_of(folder, "completed")["summaryCut"]
    assert Path(cut["path"]).read_text(encoding="ascii") == "s" * 5000
    assert dict(answer_of(folder, "general").to_json())["summaryCut"] == cut
    delegated = task_result_of(folder, max_bytes=4000).to_json()
    assert (delegated["summary"], delegated["summaryCut"]) == ("s" * 4000, cut)
    assert f"[summary cut: 4000 of 5000 bytes; whole: {cut['path']}]" in run("result", "a").err
    joined = run("join", "--json").json
    assert joined["workers"][0]["summaryCut"]["path"] == cut["path"]
    assert f"sha256 {cut['sha256']}, in {cut['path']}" in Path(joined["report"]).read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_final_message_that_no_json_should_hold_is_whole_in_its_file(agents: Task, tmp_path: Path) -> None:
    agent(plays(tmp_path, r"me.answer('\x1b[31mw\u00f6rd \ud83d ' * 110_000)"))
    ends()
    whole = ("\x1b[31mw\u00f6rd \ufffd " * 110_000).encode()
    assert len(run("show", "a", "--json").json["result"]["finalMessage"]) == 1_000_000
    told = run("result", "a", "--json").json
    assert (told["source"], told["truncated"]) == ("agent", True)
    assert (told["size"], told["sha256"]) == (len(whole), hashlib.sha256(whole).hexdigest())
    assert Path(told["path"]).read_bytes() == whole
    assert max(map(len, Path(told["wrapped"]).read_text(encoding="utf-8").split("\n"))) <= 1000
    Path(told["path"]).write_text("no longer so", encoding="ascii")
    assert run("result", "a", "--json").json["path"] is None


def test_a_summary_that_no_json_should_hold_is_refused(agents: Task, tmp_path: Path) -> None:
    imports = "from agentctl.operations.talk.reporting import report_result"
    declares = f"{imports}\ntry:\n    report_result('s' * 1_000_001, None)"
    agent(plays(tmp_path, f"{declares}\nexcept Exception as error:\n    me.answer(str(error))"))
    assert "a report is at most 1000000 characters long" in ends()["result"]["finalMessage"]


@pytest.mark.slow
def test_long_last_words_are_whole_also_where_nobody_wrote_a_result(agents: Task, tmp_path: Path) -> None:
    agent(plays(tmp_path, "me.assistant({'type': 'text', 'text': 'word ' * 20000})\nimport time; time.sleep(600)"))
    wait_until(lambda: run("result", "a", "--json", check=False).json["truncated"])
    os.kill(run("show", "a", "--json").json["worker"]["pid"], signal.SIGKILL)
    ends()
    told = run("result", "a", "--json", check=False).json
    assert (told["source"], told["size"]) == ("activity", 100_000)
    assert Path(told["path"]).read_text(encoding="ascii") == "word " * 20000


LATER = """
if me.turns == 1:
    me.answer('the first answer')
else:
    me.assistant({'type': 'text', 'text': 'later words'})
    import time; time.sleep(600)
"""


@pytest.mark.slow
def test_what_was_said_after_an_answer_is_the_last_word(agents: Task, tmp_path: Path) -> None:
    play = plays(tmp_path, LATER)
    agent(play, "--keep")
    wait_until(lambda: run("list", "--json").json[0]["status"] == "blocked")
    assert everywhere(agents, status="blocked") == ["the first answer"] * 4
    run("send", "a", play)
    wait_until(lambda: everywhere(agents, status="running") == ["later words"] * 4)
    os.kill(run("show", "a", "--json").json["worker"]["pid"], signal.SIGKILL)
    assert ends()["status"] == "failed"
    assert everywhere(agents, status="failed") == ["later words"] * 4
    told, used = (run(*verb, "--json", check=False).json for verb in (("result", "a"), ("usage",)))
    assert told["success"] is False
    assert told["usage"]["input"] == used["workers"][0]["input"] > 10


@pytest.mark.slow
def test_the_last_message_in_a_list_is_the_last_word(agents: Task) -> None:
    agent("hang")
    folder = TaskDir(str(agents.path)).worker("a")
    wait_until(lambda: last_message(folder) == "working")
    os.kill(run("show", "a", "--json").json["worker"]["pid"], signal.SIGKILL)
    ends()
    assert last_message(folder) == "working"


def test_the_long_lines_of_a_command_can_be_paged_too(root: Path) -> None:
    new_task()
    spawn(["sh", "-c", r"printf '%09000d\nend' 7"], name="a")
    run("wait", "a")
    told = run("result", "a", "--json").json
    assert (told["source"], told["truncated"]) == ("stdout", True)
    lines = Path(told["wrapped"]).read_text(encoding="utf-8").split("\n")
    assert (max(map(len, lines)), "".join(lines)) == (1000, f"{'0' * 8999}7end")


_LINE = "\x1b[32mlink\x1b[0m ok"


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize("byte", range(1, 5))
def test_of_a_sequence_that_was_cut_nothing_is_shown_at_a_terminal(byte: int) -> None:
    new_task()
    spawn(["printf", "%s", f"{_LINE}\n" * 100], "--wait", name="a")
    size = len(f"{_LINE}\n") * 20 - byte
    _, sent = on_a_terminal([*PROGRAM, "result", "a", "--max-bytes", str(size)])
    assert sent.decode().partition("[cut: ")[0] == f"{_LINE}\r\n" * 19


def test_of_a_sequence_that_was_cut_nothing_is_shown_on_the_screen(root: Path) -> None:
    task = new_task()
    spawn(["sh", "-c", f"yes '{_LINE}' | head -n 70000"], "--wait", name="a")
    shown = ResultText(TaskDir(str(task.path)), "a", is_source=False)
    shown.grow()
    assert {line.text for number in range(2, len(shown) - 1) for line in shown.paragraph(number)} == {"link ok"}

"""What a person finds out from the program itself: help, examples, completions; and what that may load."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentctl.errors import ExitCode
from agentctl.interfaces.cli.typer_commands import EXIT_WORDS, program
from agentctl.interfaces.commands.model.catalogue import VERBS
from agentctl.operations.start.options import GROUPS, OPTIONS
from tests.inside import call
from tests.steps import new_task, spawn
from tests.support import REPOSITORY, run, worker

FAMILIES = {
    "agents": ("list", "show"),
    "interact": ("ask", "list", "respond"),
    "report": ("progress", "message", "result"),
    "worktrees": ("list", "show", "remove"),
}
PAGES = [("all",), *((name,) for name in VERBS), *((name, sub) for name, subs in FAMILIES.items() for sub in subs)]
IDS = [" ".join(page) for page in PAGES]

#: Slow to load, and not needed to list, to wait or to cancel.
SLOW = {
    "yaml",
    "psutil",
    "filelock",
    "asyncio",
    "pydantic",
    "rich",
    "agentctl.interfaces.commands.parts.tables",
    "agentctl.adapters.yamldoc",
}


@pytest.fixture(scope="module")
def group() -> Any:
    """The program as one command, in this process."""
    return program()


def sections(help_page: str) -> dict[str, list[str]]:
    """The lines below each heading of a help page."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in help_page.splitlines():
        if re.fullmatch(r"[A-Z][a-z ]+:", line):
            lines = found.setdefault(line[:-1], [])
        elif line.strip():
            lines.append(line.strip())
    return found


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_help_ends_with_examples_and_exit_codes(
    root: Path, capsys: pytest.CaptureFixture[str], page: tuple[str, ...]
) -> None:
    shown = call(capsys, "help", *page)

    assert (shown.code, shown.err) == (0, "")
    found = sections(shown.out)
    assert 1 <= len(found["Examples"]) <= 5
    assert all("agentctl " in line for line in found["Examples"])
    codes = [int(line.split()[0]) for line in found["Exit codes"]]
    assert codes == sorted(codes)
    assert {0, 1, 2, 130} <= set(codes) <= {code.value for code in ExitCode}
    assert list(found)[-2:] == ["Examples", "Exit codes"]
    assert not root.exists()


def test_the_help_of_spawn_is_in_groups(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = sections(call(capsys, "spawn", "--help").out)

    assert list(found) == ["Arguments", *GROUPS, "Examples", "Exit codes"]
    flag = re.compile(r"(?:-\w, )?(--[a-z-]+)(?=  | [A-Z]| /|$)")
    shown = {group: {match[1] for line in found[group] if (match := flag.match(line))} for group in GROUPS}
    assert {"--shell", "--batch", "--each", "--name"} <= shown["What to run"]
    assert {"--agent", "--driver", "--model"} <= shown["Agent"]
    assert {"--timeout-seconds", "--retries", "--max-turns"} <= shown["Limits"]
    assert shown["Queue"] == {"--queue", "--priority", "--after", "--after-any"}
    assert shown["Place"] == {"--cwd", "--worktree", "--task", "--root", "--force"}
    assert shown["Output"] == {"--wait", "--json", "--help"}
    assert {f"--{option.name.replace('_', '-')}" for option in OPTIONS} <= set().union(*shown.values())


@pytest.mark.parametrize("flag", ["--roster", "--resume-queue"])
def test_a_flag_that_became_a_command_is_hidden(capsys: pytest.CaptureFixture[str], flag: str) -> None:
    assert flag not in call(capsys, "spawn", "--help").out


#: Which commands look for a task, or for a root alone; every other one is called anywhere.
IN_ROOT = {"install", "serve", "new", "use", "tasks", "archive", "templates", "trust", "agents list", "agents show"}
ANYWHERE = {
    *(
        "agents",
        "interact",
        "notify",
        "report",
        "worktrees",
        "demo",
        "hook",
        "acp",
        "mcp",
        "inbox",
    ),
    *("interact ask", "report progress", "report message", "report result"),
}


@pytest.mark.parametrize("page", PAGES[1:], ids=IDS[1:])
def test_a_command_has_the_options_of_its_place(group: Any, page: tuple[str, ...]) -> None:
    command = group
    for name in page:
        command = command.get_command(None, name)
    flags = [flag for parameter in command.params for flag in parameter.opts if parameter.param_type_name == "option"]
    name = " ".join(page)
    wanted = {"--json"} if name not in {"report", "demo", "hook", "acp", "mcp", "watch", "status"} else set()
    wanted |= {"--root", "--force"} if name not in ANYWHERE else set()
    wanted |= {"--task", "-t"} if name not in ANYWHERE | IN_ROOT else set()
    wanted |= {"--task", "-t", "--root"} if name in {"acp", "mcp"} else set()

    assert {flag for flag in flags if flag in {"--task", "-t", "--root", "--force", "--json"}} == wanted
    assert len(flags) == len(set(flags))


def test_a_command_finds_its_place_by_its_options(root: Path, tmp_path: Path) -> None:
    run("new", "One", "--id", "one")
    run("new", "Two", "--id", "two")

    for place in (["--task", "one"], ["-t", "one", "--root", str(root), "--force"]):
        assert run("tree", *place, "--json").json["taskId"] == "one"
        assert run("spawn", "--wait", *place, "--json", "--", *worker("exits", 0)).json["taskId"] == "one"
    assert run("use", "one", "--root", str(root), "--json").json["taskId"] == "one"
    assert run("tasks", "--root", str(tmp_path / "nowhere"), check=False).code == 3


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_every_example_can_be_parsed(group: Any, page: tuple[str, ...]) -> None:
    with group.make_context("agentctl", [*page, "--help"], resilient_parsing=True) as context:
        command = group
        for name in page if page != PAGES[0] else ():
            command = command.get_command(context, name)

    for example in commands_in("\n".join(sections(command.epilog)["Examples"])):
        parse(group, example)


def commands_in(text: str) -> list[list[str]]:
    """The calls of agentctl in lines of shell."""
    found: list[list[str]] = []
    for line in text.splitlines():
        words = shlex.shlex(line.replace("$(", " ; ").replace(")", " ; "), posix=True, punctuation_chars=True)
        words.whitespace_split = True
        call: list[str] | None = None
        for word in words:
            if word == "agentctl" and call is None:
                found.append(call := [])
            elif set(word) <= set("|&;<>"):
                call = None
            elif call is not None:
                call.append(word)
    assert found, text
    return found


def parse(group: Any, args: list[str]) -> None:
    """Parse a call down to its last word; a wrong option or word raises."""
    context = group.make_context("agentctl", list(args))
    command, rest = group, args
    while hasattr(command, "get_command") and (rest or not command.invoke_without_command):
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, list(rest), parent=context)


def test_the_list_of_commands_says_what_each_says_itself(group: Any) -> None:
    for name, listed in VERBS.items():
        command = group.get_command(None, name)
        assert command.help.splitlines()[0] == listed.help, name


def test_every_exit_code_has_words_and_is_documented() -> None:
    text = (REPOSITORY / "docs" / "exit-codes.md").read_text(encoding="utf-8")
    for code in ExitCode:
        assert EXIT_WORDS[code]
        assert f"| {code.value} | `{code.name}` |" in text


def test_the_json_of_every_command_is_documented() -> None:
    text = (REPOSITORY / "docs" / "json.md").read_text(encoding="utf-8")
    for page in PAGES[1:]:
        if page[0] not in FAMILIES or len(page) == 2:
            assert f"`{' '.join(page)}`" in text, page


# -- what is loaded ------------------------------------------------------------------------------------------


def loaded_by(*args: str) -> set[str]:
    """The modules that a command has loaded when it is over."""
    code = (
        "import sys; from agentctl.interfaces.cli.app import main; code = main(sys.argv[1:]);"
        "print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, check=False)
    assert "agentctl.interfaces.cli.app" in done.stderr, done.stderr
    return set(done.stderr.split())


@pytest.mark.parametrize("line", [["--help"], ["help", "all"]])
def test_help_loads_no_command(root: Path, line: list[str]) -> None:
    loaded = loaded_by(*line)

    assert ("typer" in loaded) == (line != ["--help"])
    assert not {name for name in loaded if name.startswith("agentctl.operations")}
    assert not loaded & {f"agentctl.interfaces.commands.{listed.module}" for listed in VERBS.values()}
    assert not loaded & SLOW


def test_the_frequent_commands_load_nothing_slow(root: Path) -> None:
    run("spawn", "--wait", "--name", "a1", "--", *worker("exits", 0))

    for args in (["list"], ["wait-any"], ["wait-any", "--json", "--consumer", "c"], ["cancel", "--all"]):
        assert not loaded_by(*args) & SLOW, args


# -- completion ----------------------------------------------------------------------------------------------


def completed(line: str, shell: str = "bash") -> list[str]:
    """What the program offers for the end of a line."""
    words = line.split(" ")
    return run(
        env={
            "_AGENTCTL_COMPLETE": f"complete_{shell}",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) - 1),
            "_TYPER_COMPLETE_ARGS": line,
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        },
        check=False,
    ).out.split("\n")[:-1]


@pytest.mark.slow
def test_completion_offers_the_names_on_disk(root: Path) -> None:
    run("new", "First one", "--id", "first")
    run("spawn", "--wait", "--name", "alpha", "--", *worker("exits", 0))
    run("new", "Second one", "--id", "second")
    run("spawn", "--wait", "--name", "beta", "--", *worker("exits", 0))

    assert completed("agentctl wa") == ["watch", "wait", "wait-any", "wait-all"]
    assert completed("agentctl interact r") == ["respond"]
    assert completed("agentctl show ") == ["beta"]
    assert completed("agentctl show --task first ") == ["alpha"]
    assert completed("agentctl list --task ") == ["first", "second"]
    assert completed("agentctl use s") == ["second"]
    assert completed("agentctl new --template ") == ["survey"]
    assert completed("agentctl cancel --gr") == ["--grace-seconds"]
    assert completed("agentctl show b", shell="fish") == ["beta"]
    assert completed("agentctl cancel b", shell="zsh") == ["_arguments '*: :((\"beta\"))'"]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("agentctl spawn --effort ", ["low", "medium", "high"]),
        ("agentctl spawn --agent ex", ["explore"]),
        ("agentctl subtask plan Title --permissions de", ["deny"]),
        ("agentctl wait-any --for failed,b", ["failed,blocked"]),
        ("agentctl mcp --tools s", ["subtask"]),
    ],
)
def test_completion_offers_what_an_option_takes(root: Path, line: str, offered: list[str]) -> None:
    assert completed(line) == offered
    assert not root.exists()


@pytest.mark.slow
def test_completion_offers_who_asks_and_what_may_be_answered(root: Path) -> None:
    task = new_task()
    spawn(worker("asks", "--option", "api=Backend", "--option", "web=Frontend", "Which?"), name="a")
    spawn(worker("asks", "--kind", "confirm", "Go on?"), name="b")
    spawn(worker("exits", 0), "--wait", name="c")
    for name in "ab":
        task.has("agent.blocked", name)

    assert completed("agentctl interact respond ") == ["a", "b"]
    assert completed("agentctl interact respond a ") == ["api", "web"]
    assert completed("agentctl interact respond a --id q1 w") == ["web"]
    assert completed("agentctl interact respond b ") == ["yes", "no"]
    assert completed("agentctl interact respond b --id ") == ["q1"]
    assert completed("agentctl interact respond a api ") in ([], [""])
    assert completed("agentctl interact respond c ") in ([], [""])
    assert completed("agentctl tree --expand a --expand ") == ["all", "b", "c"]
    for name, answer in {"a": "api", "b": "yes"}.items():
        run("interact", "respond", name, "--id", "q1", answer)
        task.ended(name)
    assert completed("agentctl interact respond ") in ([], [""])
    run("wait-any", "--consumer", "mine")
    assert completed("agentctl wait-any --consumer ") == ["mine"]


@pytest.mark.parametrize("line", ["agentctl show ", "agentctl list --task ", "agentctl show --root /nope x"])
def test_completion_says_nothing_where_there_is_nothing(root: Path, line: str) -> None:
    assert completed(line) in ([], [""])
    assert not root.exists()


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_completes_with_the_script_it_is_given(root: Path, tmp_path: Path) -> None:
    run("spawn", "--wait", "--name", "alpha", "--", *worker("exits", 0))
    program_file = tmp_path / "bin" / "agentctl"
    program_file.parent.mkdir()
    program_file.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m agentctl "$@"\n')
    program_file.chmod(0o700)
    script = run(env={"_AGENTCTL_COMPLETE": "source_bash"}).out
    ask = 'COMP_WORDS=(agentctl show al); COMP_CWORD=2; _agentctl_completion agentctl; echo "${COMPREPLY[@]}"'

    path = f"{program_file.parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", f"{script}\n{ask}"],
        env={**os.environ, "PATH": path, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert done.stdout.split() == ["alpha"]

"""At stake: a line starts what the person meant or nothing, and its history cannot be made to hurt who opens it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentctl.errors import Refused, UsageError
from agentctl.interfaces.screen.start.line_completion import completions
from agentctl.interfaces.screen.start.line_editor import edited, editor_argv
from agentctl.interfaces.screen.start.line_history import LineHistory
from agentctl.interfaces.screen.start.start_line import KnownNames, StartLine, parse_start_line
from agentctl.operations.start.requests import SpawnRequest

KNOWN = KnownNames(["explore", "general"], ["auth", "t-2"])
#: Texts that are made of what the line knows, so that many of them are nearly right.
PIECES = st.sampled_from(
    ["@auth ", "@", "in:", "in:'a b' ", "name:x ", "name:", "explore ", "!", "'", '"', "\\", "~/", "\n", " "]
)
LINES = st.lists(PIECES | st.text(max_size=4), max_size=8).map("".join)
FOLDERS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1).filter(
    lambda text: not text.startswith("~")
)


def request_of(line: str) -> SpawnRequest:
    return parse_start_line(line, KNOWN).request


def quoted(text: str) -> str:
    """Return a text as a person would quote it for a shell, without the help of Python's shlex."""
    return "'" + text.replace("'", "'\\''") + "'"


@given(LINES)
@example("in:\\")
@example("! \x0b\x1c")
@example("name:" + "x" * 65 + " ! true")
def test_any_text_is_a_request_or_an_error_with_words(line: str) -> None:
    try:
        found = parse_start_line(line, KNOWN)
    except UsageError:
        return
    assert isinstance(found, StartLine)
    assert bool(found.request.argv) != (found.request.work is not None)
    assert found.title == " ".join(found.title.split()) != ""


@given(FOLDERS)
def test_a_quoted_folder_is_taken_as_it_is(folder: str) -> None:
    assert request_of(f"in:{quoted(folder)} ! true").cwd == folder
    assert request_of("in:" + "".join(f"\\{one}" for one in folder) + " explore it").cwd == folder


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1), min_size=1))
def test_the_words_of_a_command_are_those_that_a_shell_would_pass(words: list[str]) -> None:
    """What a shell would act on is left to one; anything else is split here, and must be split alike."""
    argv = request_of("! " + " ".join(quoted(word) for word in ["printf", r"%s\0", *words])).argv
    if argv[0] != "/bin/sh":
        assert argv == ["printf", r"%s\0", *words]
    shown = subprocess.run(argv, capture_output=True, check=True).stdout
    assert shown == b"".join(os.fsencode(word) + b"\0" for word in words)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: text.strip() == text != ""))
def test_a_prompt_is_taken_with_its_quotes_and_lines(prompt: str) -> None:
    found = request_of(f"@auth name:a explore {prompt}").work
    assert found is not None
    assert (found.agent, found.prompt) == ("explore", prompt)


@pytest.mark.parametrize(
    ("command", "argv"),
    [
        ("make test", ["make", "test"]),
        ("grep 'a b' \"c d\"", ["grep", "a b", "c d"]),
        ("ls | wc -l", None),
        ("echo $HOME", None),
        ("A=1 make", None),
        ("make CC=gcc", ["make", "CC=gcc"]),
        ("cd sub\nmake", None),
        ("ls ~", None),
    ],
)
def test_a_shell_is_asked_only_where_it_has_something_to_do(command: str, argv: list[str] | None) -> None:
    assert request_of(f"!{command}").argv == (argv or ["/bin/sh", "-c", command])


def test_the_words_in_front_stand_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    for line in ("@t-2 in:~/x name:n ! true", "name:n  in:~/x\t@t-2 !true"):
        found = parse_start_line(line, KNOWN, "auth")
        assert (found.task, found.request.cwd, found.request.name) == ("t-2", "/home/me/x", "n")
    assert parse_start_line("! true", KNOWN, "auth").task == "auth"
    assert request_of("in:./~ ! true").cwd == "./~"


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("expolre it", "'expolre' is not an agent", "explore, general"),
        ("Explore it", "'Explore' is not an agent", "explore, general"),
        ("explore", "there is no prompt for explore", "explore WHAT TO DO"),
        ("!", "there is no command behind the !", "! make test"),
        ("@nope ! true", "there is no task 'nope' here", "known: auth, t-2"),
        ("@auth @t-2 ! true", "@ is given twice", "a line has one"),
        ("in: ! true", "in: names nothing", "without a space"),
        ("name:a/b ! true", "the name 'a/b' is not a name", "A-Z"),
        ("in:'a ! true", "a quote is not closed", "in:"),
        ("! echo 'a", "a quote in the command is not closed", ""),
        ("@auth", "there is nothing to start", "AGENT PROMPT"),
    ],
)
def test_what_is_wrong_is_said_with_the_next_step(line: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_start_line(line, KNOWN)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


# -- completion --------------------------------------------------------------------------------------------------------


def test_agents_tasks_and_folders_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("src", "sub dir", ".git", "sr\x1b[31m"):
        (tmp_path / name).mkdir()
    (tmp_path / "srfile").touch()
    (tmp_path / "sub dir" / "deep").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert completions("ex", KNOWN) == ["explore "]
    assert completions("@auth name:x g", KNOWN) == ["@auth name:x general "]
    assert completions("@", KNOWN) == ["@auth ", "@t-2 "]
    assert completions("in:s", KNOWN) == ["in:src/", "in:sub\\ dir/"]
    assert completions("in:sub\\ dir/", KNOWN) == ["in:sub\\ dir/deep/"]
    assert completions("in:~/sr", KNOWN) == ["in:~/src/"]
    assert completions("in:.", KNOWN) == ["in:.git/"]
    assert request_of("in:sub\\ dir/deep/ ! true").cwd == "sub dir/deep/"
    for line in ("", "explore ex", "! ex", "name:x", "in:nowhere/x"):
        assert completions(line, KNOWN) == []


@given(LINES)
def test_a_completion_only_adds(line: str) -> None:
    assert all(found.startswith(line) for found in completions(line, KNOWN))


# -- history -----------------------------------------------------------------------------------------------------------


def state(folder: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(folder)}


def entered(folder: Path) -> list[str]:
    """Return what a new history goes back to, newest first."""
    history, found = LineHistory(state(folder)), []
    while (line := history.older("")) is not None:
        found.append(line)
    return found


def test_a_history_is_private_and_keeps_each_line_once(tmp_path: Path) -> None:
    one, other = LineHistory(state(tmp_path)), LineHistory(state(tmp_path))
    path = Path(one.path)
    for line in ("! a", "! b\nc", "! a", " ! secret", "  "):
        one.add(line)
    other.add("! d")
    assert entered(tmp_path) == ["! d", "! a", "! b\nc"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_draft_waits_behind_the_newest_line(tmp_path: Path) -> None:
    history = LineHistory(state(tmp_path))
    assert (history.older("draft"), history.newer()) == (None, None)
    history.add("! a")
    assert (history.older("draft"), history.older("! a")) == ("! a", None)
    assert (history.newer(), history.newer()) == ("draft", None)


def test_a_history_is_bounded(tmp_path: Path) -> None:
    history = LineHistory(state(tmp_path))
    for number in range(3):
        history.add(f"! {number} " + "x" * 90_000)
    assert [line[:3] for line in entered(tmp_path)] == ["! 2", "! 1"]
    Path(history.path).write_text(json.dumps({"lines": [f"! {number}" for number in range(2000)]}))
    assert len(entered(tmp_path)) == 500


@pytest.mark.parametrize("kind", ["junk", "nested", "link", "fifo", "huge", "folder"])
def test_a_history_that_is_not_ours_counts_as_empty(tmp_path: Path, kind: str) -> None:
    path = Path(LineHistory(state(tmp_path)).path)
    path.parent.mkdir(parents=True)
    if kind == "junk":
        path.write_bytes(b"\xff{")
    elif kind == "nested":
        path.write_text('{"lines": [["! x"], 4, {"a": "! y"}, "! z"]}')
    elif kind == "link":
        (tmp_path / "other").write_text('{"lines": ["! x"]}')
        os.symlink(tmp_path / "other", path)
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        with open(path, "wb") as file:
            file.truncate(1 << 40)
    assert entered(tmp_path) == (["! z"] if kind == "nested" else [])
    LineHistory(state(tmp_path)).add("! new")
    assert entered(tmp_path)[0] == "! new"
    if kind == "link":
        assert (tmp_path / "other").read_text() == '{"lines": ["! x"]}'


# -- editor ------------------------------------------------------------------------------------------------------------


def test_the_editor_is_the_persons_own() -> None:
    assert editor_argv({"VISUAL": "code --wait", "EDITOR": "vi"}) == ["code", "--wait"]
    assert editor_argv({"VISUAL": " ", "EDITOR": "vi"}) == ["vi"]
    for environ, message in (({}, "neither VISUAL nor EDITOR"), ({"EDITOR": "'vi"}, "is not a command")):
        with pytest.raises(Refused, match=message):
            editor_argv(environ)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("exit 3", r"failed \(exit code 3\)"),
        ("kill -9 $$", r"failed \(signal 9\)"),
        (r'printf "\377" > "$1"', "nothing that can be taken"),
        ('rm "$1"', "nothing that can be taken"),
        ('rm "$1"; mkfifo "$1"', "nothing that can be taken"),
        ('truncate -s 1T "$1"', "nothing that can be taken"),
    ],
)
def test_an_editor_that_fails_changes_nothing(script: str, message: str) -> None:
    with pytest.raises(Refused, match=message):
        edited("before", ["sh", "-c", script, "sh"])


def test_an_editor_that_is_missing_is_said(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=f"{tmp_path}/vi cannot be started: No such file"):
        edited("before", [f"{tmp_path}/vi"])


def test_the_text_goes_to_the_editor_in_private_and_comes_back(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    script = (
        f'stat -c %a "$(dirname "$1")" > {seen}; cat "$1" >> {seen};'
        r' printf "two\nlines\n" > "$1.new"; mv "$1.new" "$1"'
    )
    assert edited("before\nit", ["sh", "-c", script, "sh"]) == "two\nlines"
    assert seen.read_text() == "700\nbefore\nit"

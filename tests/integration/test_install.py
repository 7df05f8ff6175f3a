"""At stake: what `install` writes works; nothing else in the user's files changes; the undo leaves nothing."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from agentctl.errors import Refused
from agentctl.operations.install.installing import carry_out_changes, plan
from tests.support import PROGRAM, Completed, alike, run
from tests.terminal import Terminal

CLIENTS = ("claude", "codex", "gemini", "opencode")
CLAUDE = """{
    "numStartups": 7, "theme":"dark",

    "mcpServers": {
        "other": {"command": "x"}
    }
}
"""
SETTINGS = '{"permissions": {"deny": ["Bash(rm:*)"], "allow": ["Read"]}, "model": "opus"}'
CODEX = '# mine\nmodel = "gpt"\n[mcp_servers.other]\ncommand = "x"'
NOTES = "# How we work\n\n- tests first\n"


@pytest.fixture
def home(root: Path, tmp_path: Path) -> Path:
    """Return a home folder with a person's own settings."""
    home = tmp_path / "home"
    files = {
        ".claude.json": CLAUDE,
        ".claude/settings.json": SETTINGS,
        ".codex/config.toml": CODEX,
        ".codex/AGENTS.md": NOTES,
        ".gemini/settings.json": "{}",
        ".config/opencode/opencode.json": '{\n\t"theme": "x"\n}\n',
    }
    for name, text in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text, encoding="utf-8")
        (home / name).chmod(0o640)
    return home


def install(client: str, *options: str, check: bool = True) -> Completed:
    """Install without a confirmation."""
    return run("install", client, "--yes", *options, check=check)


def files_of(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return mode and content of every file in a folder."""
    found = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): (path.stat().st_mode & 0o777, path.read_bytes()) for path in found}


def load(path: Path) -> Any:
    """Return the JSON in a file."""
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("answer", ["y", "n", ""])
def test_a_person_is_asked_before_anything_is_written(home: Path, answer: str) -> None:
    before = files_of(home)
    terminal = Terminal([*PROGRAM, "install", "claude"])
    terminal.until("Make this change? [y/N]")
    assert files_of(home) == before
    terminal.write(f"{answer}\r".encode())
    terminal.until("written:" if answer == "y" else "nothing was changed")
    assert terminal.end() == (0 if answer == "y" else 1)
    assert (files_of(home) == before) == (answer != "y")


@pytest.mark.parametrize("client", ["claude", *alike(*CLIENTS[1:])])
def test_what_is_installed_is_taken_out_again_to_the_byte(home: Path, client: str) -> None:
    before = files_of(home)
    install(client)
    after = files_of(home)
    assert after.keys() > before.keys()
    again = install(client)
    assert "there is nothing to change" in again.err
    assert files_of(home) == after
    install(client, "--undo")
    assert files_of(home) == before


@pytest.mark.parametrize("client", ["claude", *alike(*CLIENTS[1:])])
def test_what_is_installed_in_an_empty_home_leaves_no_file(root: Path, tmp_path: Path, client: str) -> None:
    install(client)
    assert files_of(tmp_path / "home")
    install(client, "--undo")
    assert files_of(tmp_path / "home") == {}


def test_claude_gets_the_server_the_permission_and_the_skill(home: Path) -> None:
    install("claude", "--hooks")
    told = load(home / ".claude.json")
    assert list(told) == ["numStartups", "theme", "mcpServers"]
    assert list(told["mcpServers"]) == ["other", "agentctl"]
    server = told["mcpServers"]["agentctl"]
    assert server["timeout"] >= 3_600_000
    listed = subprocess.run([server["command"], *server["args"], "--help"], capture_output=True, text=True, check=True)
    assert "--call-seconds" in listed.stdout
    settings = load(home / ".claude/settings.json")
    assert settings["permissions"]["deny"] == ["Bash(rm:*)"]
    assert settings["permissions"]["allow"][:2] == ["Read", "mcp__agentctl"]
    assert "Bash(agentctl wait-any:*)" in settings["permissions"]["allow"]
    assert not [rule for rule in settings["permissions"]["allow"] if "spawn" in rule], "a spawn runs any command"
    assert set(settings["hooks"]) == {"SubagentStart", "SubagentStop"}
    skill = (home / ".claude/skills/agentctl/SKILL.md").read_text(encoding="utf-8")
    assert skill.startswith("---\nname: agentctl\ndescription: ")
    assert "wait-any" in skill
    assert (
        (home / ".claude.json").read_text(encoding="utf-8").startswith('{\n    "numStartups": 7, "theme":"dark",\n\n')
    )


def test_codex_gets_the_time_limits_and_parallel_calls(home: Path) -> None:
    install("codex")
    text = (home / ".codex/config.toml").read_text(encoding="utf-8")
    assert text.startswith(CODEX + "\n")
    server = tomllib.loads(text)["mcp_servers"]["agentctl"]
    assert server["supports_parallel_tool_calls"] is True
    assert server["tool_timeout_sec"] >= 3600
    assert server["default_tools_approval_mode"] == "approve"
    assert "ANTHROPIC_API_KEY" in server["env_vars"]
    assert server["required"] is True, "else its first question to the model may go out without these tools"
    assert tomllib.loads(text)["mcp_servers"]["other"] == {"command": "x"}
    notes = (home / ".codex/AGENTS.md").read_text(encoding="utf-8")
    assert notes.startswith(NOTES)
    assert "Delegating to sub-agents" in notes


def test_codex_starts_in_a_project_for_those_too_who_lack_agentctl(home: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    run("install", "codex", "--yes", "--project", cwd=project)
    text = (project / ".codex/config.toml").read_text(encoding="utf-8")
    assert "required" not in tomllib.loads(text)["mcp_servers"]["agentctl"]


def test_gemini_gives_the_server_the_keys_that_it_keeps_back_by_itself(home: Path) -> None:
    install("gemini")
    server = load(home / ".gemini/settings.json")["mcpServers"]["agentctl"]
    assert server["env"]["ANTHROPIC_API_KEY"] == "$ANTHROPIC_API_KEY", "a reference: no file has the key itself"
    assert "OPENAI_API_KEY" in server["env"]


def test_what_a_person_changed_afterwards_stays_when_it_is_undone(home: Path) -> None:
    install("claude")
    told = load(home / ".claude.json")
    told["numStartups"] = 8
    (home / ".claude.json").write_text(json.dumps(told), encoding="utf-8")
    skill = home / ".claude/skills/agentctl/SKILL.md"
    skill.write_text("my own words", encoding="utf-8")
    install("codex")
    with (home / ".codex/config.toml").open("a", encoding="utf-8") as file:
        file.write("[more]\nx = 1\n")
    install("claude", "--undo")
    install("codex", "--undo")
    assert load(home / ".claude.json") == {**json.loads(CLAUDE), "numStartups": 8}
    assert skill.read_text(encoding="utf-8") == "my own words"
    assert tomllib.loads((home / ".codex/config.toml").read_text(encoding="utf-8")) == {
        **tomllib.loads(CODEX), "more": {"x": 1},
    }  # fmt: skip


def test_nothing_is_changed_without_a_yes_and_the_change_is_shown(home: Path) -> None:
    before = files_of(home)
    done = run("install", "claude", check=False)
    assert done.code == 1
    assert '+        "agentctl": {' in done.err
    assert "--yes" in done.err
    assert files_of(home) == before


@pytest.mark.parametrize("text", ['{ // mine\n "mcpServers": {}\n}', "[]", '{"mcpServers": []}'])
def test_a_file_that_cannot_be_changed_safely_is_left_and_nothing_else_is_written(home: Path, text: str) -> None:
    (home / ".claude/settings.json").write_text(SETTINGS, encoding="utf-8")
    (home / ".claude.json").write_text(text, encoding="utf-8")
    before = files_of(home)
    done = install("claude", check=False)
    assert done.code == 1
    assert "by hand" in done.err
    assert files_of(home) == before


def test_opencode_with_comments_is_told_what_to_do_by_hand(home: Path) -> None:
    (home / ".config/opencode/opencode.jsonc").write_text("{ /* mine */ }", encoding="utf-8")
    before = files_of(home)
    done = install("opencode", check=False)
    assert "opencode.jsonc is used in its place" in done.err
    assert '"mcp.agentctl"' in done.err
    assert files_of(home) == before


def test_a_server_of_that_name_that_is_not_ours_stays(home: Path) -> None:
    with (home / ".codex/config.toml").open("a", encoding="utf-8") as file:
        file.write('\n[mcp_servers.agentctl]\ncommand = "mine"\n')
    before = files_of(home)
    assert "already has a [mcp_servers.agentctl]" in install("codex", check=False).err
    assert files_of(home) == before


def test_a_link_to_a_folder_of_dotfiles_stays_a_link(home: Path, tmp_path: Path) -> None:
    kept = tmp_path / "dotfiles.json"
    kept.write_text(CLAUDE, encoding="utf-8")
    (home / ".claude.json").unlink()
    (home / ".claude.json").symlink_to(kept)
    install("claude")
    assert (home / ".claude.json").is_symlink()
    assert "agentctl" in load(kept)["mcpServers"]


def test_a_project_gets_files_that_hold_for_others_too(home: Path) -> None:
    before = files_of(home)
    install("claude", "--project")
    assert load(Path(".mcp.json"))["mcpServers"]["agentctl"]["command"] == "agentctl"
    assert Path(".claude/skills/agentctl/SKILL.md").exists()
    assert files_of(home) == before
    install("claude", "--project", "--undo")
    assert files_of(Path()) == {}
    assert not Path(".claude").exists()


def test_an_undo_leaves_the_folders_in_which_there_is_more(home: Path) -> None:
    install("claude", "--project")
    Path(".claude/skills/mine").mkdir()
    install("claude", "--project", "--undo")
    assert [path.name for path in Path(".claude/skills").iterdir()] == ["mine"]


def test_an_undo_leaves_the_folder_of_the_project_even_if_it_is_empty(home: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    with contextlib.chdir(project):
        install("claude", "--project")
        install("claude", "--project", "--undo")
        assert list(project.iterdir()) == []


def test_a_write_that_fails_takes_back_those_before_it(home: Path) -> None:
    before = files_of(home)
    (home / ".claude/skills").mkdir(exist_ok=True)
    blocked = home / ".claude/skills/agentctl"
    blocked.write_text("a file where a folder should be", encoding="utf-8")
    blocked.chmod(0o600)
    done = install("claude", check=False)
    assert done.code == 1
    assert "cannot be written" in done.err
    assert files_of(home) == {**before, ".claude/skills/agentctl": (0o600, b"a file where a folder should be")}


def test_what_the_program_saves_at_the_last_moment_is_not_written_over(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claude Code writes its file all the time."""
    theirs, flush, before = CLAUDE.replace("7", "8"), os.fsync, files_of(home)
    changes = plan("claude", undo=False, project=None, hooks=False, environ={"HOME": str(home)})
    (at_stake,) = (change for change in changes if change.path.endswith(".claude.json"))

    def fsync(fd: int) -> None:
        flush(fd)
        if os.readlink(f"/proc/self/fd/{fd}").startswith(f"{at_stake.path}.{os.getpid()}."):
            Path(at_stake.path).write_text(theirs, encoding="utf-8")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(Refused, match="was changed meanwhile"):
        carry_out_changes(changes, undo=False)
    assert files_of(home) == {**before, ".claude.json": (0o640, theirs.encode())}

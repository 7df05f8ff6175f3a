"""What decides what is run outside of a sandbox cannot be changed from within it."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

import pytest

from tests.agents.lab import Lab, option
from tests.agents.scenarios import done
from tests.agents.within import USUAL, places, said, script, tries
from tests.repositories import new_repository
from tests.steps import statuses
from tests.support import run

OURS = f"{shlex.quote(sys.executable)} -m agentctl"
CODEX, CLAUDE = (pytest.mark.parametrize("program", [name]) for name in ("codex", "claude"))
SANDBOXED = pytest.mark.parametrize("program", ["codex", "codex-acp"])


@SANDBOXED
def test_nothing_of_ours_is_changed(lab: Lab) -> None:
    """Within the sandbox no file of root, config, environments can be changed."""
    script(lab, tries(lab) + USUAL)
    agent = lab.spawn("calls")
    queued = lab.spawn("text", "--queue", "--after", agent, name="queued")
    assert lab.completed(agent) == done("calls", 1)
    assert said(lab.work) == ["all tried", "made", "temporary", "no way into git"]
    assert lab.completed(queued)
    assert not lab.task.events("interaction.requested")


@pytest.mark.parametrize("who", ["a sub-agent", "a resumed agent"])
@CODEX
def test_whoever_it_is(lab: Lab, who: str) -> None:
    """The walls hold for {who}, too."""
    script(lab, tries(lab))
    if who == "a sub-agent":
        assert lab.completed(lab.spawn("subagent=calls")).startswith("Done: subagent")
    else:
        first = lab.spawn("text")
        lab.completed(first)
        lab.completed(lab.resume(first, "calls"))
    assert said(lab.work) == ["all tried"]


@CODEX
def test_patches(lab: Lab) -> None:
    """A patch to a file of ours is not work in the folder: it is asked about."""
    file = lab.task.path / "queue" / "x"
    patch = f"apply_patch <<'E'\n*** Begin Patch\n*** Add File: {file}\n+evil\n*** End Patch\nE\n"
    Path("calls.json").write_text(json.dumps([["exec_command", {"cmd": patch}]]), encoding="utf-8")
    agent = lab.spawn("calls")
    question = lab.question(agent)
    assert (question["tool"], file.exists()) == ("apply_patch", False)
    lab.respond(agent, option(question, "deny"))
    assert lab.completed(agent) == done("calls", 1)
    assert not file.exists()


@CODEX
def test_where_a_patch_moves_a_file(lab: Lab) -> None:
    """A rule that allows patches in the folder allows none that moves a file out: the target and the text are shown."""
    source, target = lab.work / "a.txt", lab.folder / "outside.txt"
    source.write_text("old\n", encoding="utf-8")
    change = f"*** Update File: {source}\n*** Move to: {target}\n@@\n-old\n+new"
    patch = f"apply_patch <<'E'\n*** Begin Patch\n{change}\n*** End Patch\nE\n"
    Path("calls.json").write_text(json.dumps([["exec_command", {"cmd": patch}]]), encoding="utf-8")
    rules = [{"tool": "apply_patch", "pattern": f"{lab.work}/*", "answer": "allow"}, {"tool": "*", "answer": "ask"}]
    agent = lab.spawn("calls", "--permissions", json.dumps(rules))
    question = lab.question(agent)
    moved = [{"path": str(source), "kind": "update"}, {"path": str(target), "kind": "move"}]
    assert question["arguments"]["changes"] == moved
    assert "-old\n+new" in question["arguments"][f"diff of {source}"]
    assert not question.get("isCut")
    lab.respond(agent, option(question, "allow"))
    assert lab.completed(agent) == done("calls", 1)
    assert target.read_text(encoding="utf-8") == "new\n"


@CODEX
def test_in_a_worktree(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a worktree, which lies within the root, the same; its own files can be changed."""
    new_repository(lab.folder / "repository")
    monkeypatch.chdir(lab.folder / "repository")
    script(lab, tries(lab) + USUAL)
    agent = lab.spawn("calls", "--worktree")
    assert lab.completed(agent) == done("calls", 1)
    folder = next((lab.task.path.parent.parent / "worktrees").rglob("said.txt")).parent
    assert said(folder) == ["all tried", "made", "temporary", "no way out", "no way into git"]


@CODEX
def test_home_is_the_workspace(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that works above it all cannot change it, nor put another folder in its place."""
    monkeypatch.chdir(lab.folder)
    script(lab, tries(lab) + USUAL)
    agent = lab.spawn("calls")
    assert lab.completed(agent) == done("calls", 1)
    assert said(lab.folder) == ["all tried", "made", "temporary", "no way into git"]
    assert (lab.folder / "made.txt").exists()


@CODEX
def test_what_the_person_has_configured(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """What your config says of `workspace-write` holds: no /tmp, a folder more, the network."""
    more = lab.folder / "more"
    more.mkdir()
    configure(lab, f"writable_roots = ['{more}']\nnetwork_access = true\nexclude_slash_tmp = true\n", monkeypatch)
    answer = f"import urllib.request as u; u.urlopen('{lab.standin.url}')"
    script(
        lab,
        tries(lab)
        + f"touch {more}/made && echo more; (echo > /tmp/of-a-test) 2>/dev/null || echo no tmp\n"
        + f"{sys.executable} -c {shlex.quote(answer)} 2>&1 | tail -n 1",
    )
    assert lab.completed(lab.spawn("calls")) == done("calls", 1)
    assert said(lab.work) == ["all tried", "more", "no tmp", "urllib.error.HTTPError: HTTP Error 404: Not Found"]


def configure(lab: Lab, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the person configure Codex's sandbox."""
    environ, config = lab.environ(), lab.folder / "codex" / "config.toml"
    config.write_text(f"{config.read_text(encoding='utf-8')}\n[sandbox_workspace_write]\n{text}", encoding="utf-8")
    monkeypatch.setattr(lab, "environ", lambda _=1: environ)


@CODEX
def test_a_permission_lets_out(lab: Lab) -> None:
    """A permission to leave the sandbox still does: the walls take nothing of it."""
    call = {"cmd": "echo out > ../outside.txt; readlink /proc/self/ns/pid > ../namespace.txt", "yield_time_ms": 30000}
    call |= {"sandbox_permissions": "require_escalated", "justification": "May I?"}
    Path("calls.json").write_text(json.dumps([["exec_command", call]]), encoding="utf-8")
    agent = lab.spawn("calls")
    lab.respond(agent, option(lab.question(agent), "allow"))
    assert lab.completed(agent) == done("calls", 1)
    assert (lab.folder / "outside.txt").exists()
    assert (lab.folder / "namespace.txt").read_text(encoding="utf-8").strip() == os.readlink("/proc/self/ns/pid")


@CODEX
def test_reports_and_questions(lab: Lab) -> None:
    """From within: `report`, `interact ask` as ever; `respond`, `spawn`, `cancel`, `send` are refused."""
    Path("found.md").write_text("found", encoding="utf-8")
    refused = ["interact respond a1 --id q1 yes", "spawn -- touch x", "cancel queued", "send a1 x", "new x"]
    script(
        lab,
        f"for verb in list tree 'show a1' 'logs a1' events; do {OURS} $verb >/dev/null || echo no $verb; done\n"
        f"{OURS} report progress 40 reading && {OURS} report message hello && echo told\n"
        f"{OURS} report result --summary found --file found.md && echo declared\n"
        f"{OURS} interact ask 'Go on?' --kind confirm\n"
        f"{OURS} interact ask 'Nobody?' --default none --timeout-seconds 1\n"
        + "\n".join(
            f"{OURS} {words} 2>&1 > /dev/null | grep -o '^error: .*' || echo DONE {words}" for words in refused
        ),
    )
    agent = lab.spawn("calls")
    queued = lab.spawn("text", "--queue", "--after", agent, name="queued")
    question = lab.question(agent)
    assert (question["question"], question.get("tool"), question["waiting"]) == ("Go on?", None, True)
    assert statuses()[agent] == "blocked"
    run("list")
    lab.respond(agent, "yes")
    assert lab.completed(agent) == done("calls", 1)
    assert said(lab.work)[:4] == ["told", "declared", "yes", "none"]
    assert len(said(lab.work)) == 4 + len(refused), said(lab.work)
    assert all(line.startswith("error: ") for line in said(lab.work)[4:]), said(lab.work)
    result, progress = lab.result(agent), json.loads((lab.task.agent(agent) / "progress.json").read_bytes())
    assert (result["summary"], result["artifacts"][0]["path"]) == ("found", str(lab.work / "found.md"))
    assert (progress["percent"], progress["text"]) == (40, "reading")
    assert "hello" in str(lab.activity(agent, "message"))
    assert lab.completed(queued)


@CODEX
def test_what_is_hidden_from_readers(lab: Lab) -> None:
    """An agent that may only read: not the waiting environments."""
    waiting = Path(os.environ["XDG_RUNTIME_DIR"]) / "agentctl"
    call = {"cmd": f"ls {waiting}; echo done", "yield_time_ms": 30000}
    Path("calls.json").write_text(json.dumps([["exec_command", call]]), encoding="utf-8")
    agent = lab.spawn("calls", agent="explore")
    queued = lab.spawn("text", "--queue", "--after", agent, name="queued")
    lab.completed(agent)
    assert lab.completed(queued)
    told = next(one.results[-1] for one in lab.standin.requests if one.results and one.scenario[0] == "calls")
    assert "done" in told
    assert "Permission denied" in told


@CODEX
def test_a_link_cannot_be_protected(lab: Lab) -> None:
    """A root that is a link in the workspace: refused, with the reason."""
    Path(".agentctl").symlink_to(lab.task.path.parent.parent)
    agent = lab.spawn("text")
    assert lab.failed(agent) == "not_started"
    assert "is a link" in str(run("show", agent, "--json").json)


@pytest.mark.parametrize("where", ["its folder", "a worktree"])
@CLAUDE
def test_denied_to_the_tools(lab: Lab, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In {where}, all allowed: its tools change nothing of ours, read no waiting environment, and it is told."""
    if where == "a worktree":
        new_repository(lab.folder / "repository")
        monkeypatch.chdir(lab.folder / "repository")
    root, config, memory = places(lab)
    memory.mkdir(mode=0o700)
    (memory / "waits").write_text("secret", encoding="utf-8")
    marks = sorted((config / "own").iterdir())
    known = [lab.task.path / "task.yaml", *marks, memory / "waits"]
    own = root / "worktrees" / lab.task.path.name / "a1" if where == "a worktree" else Path.cwd()
    denied = [
        *known,
        lab.task.path / "x",
        lab.task.path / "agents/q/spec.json",
        config / "trust.json",
        root / "current",
    ]
    denied += [own / ".agentctl" / "x", own / "below" / ".agentctl" / "x"]
    calls = [["Write", {"file_path": str(path), "content": "evil"}] for path in denied]
    calls += [["Read", {"file_path": str(memory / "waits")}]]
    shell = [f"echo evil > {lab.task.path}/task.yaml", f"cat {memory}/waits"]
    calls += [["Bash", {"command": command, "description": "x"}] for command in shell]
    calls += [["Write", {"file_path": str(own / "made.txt"), "content": "inside"}]]
    Path("calls.json").write_text(json.dumps(calls), encoding="utf-8")
    agent = lab.spawn("calls", "--permissions", "allow", *(["--worktree"] if where == "a worktree" else []))
    assert lab.completed(agent) == done("calls", len(calls))
    told = next(one.results for one in lab.standin.requests if one.results)
    assert [text for text in told[:-1] if "denied" not in text] == []
    assert [path for path in known if "evil" in path.read_text(encoding="utf-8")] == []
    assert not [path for path in denied if path not in known and path.exists() and path.name != "current"]
    assert (own / "made.txt").read_text(encoding="utf-8") == "inside"


@CODEX
def test_environments_are_not_in_the_sandbox(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a login's own runtime folder is set: the waiting environments cannot even be seen."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")
    memory = Path(f"/dev/shm/agentctl-{os.getuid()}")
    was_there = memory.exists()
    script(lab, f"until test -e go; do sleep 0.1; done; ls {memory} && echo SEEN; cat {memory}/*; echo all tried\n")
    agent = lab.spawn("calls")
    queued = lab.spawn("text", "--queue", "--after", agent, name="queued")
    assert list(memory.iterdir()), "what the queued one is to have waits there"
    Path("go").touch()
    assert lab.completed(agent) == done("calls", 1)
    assert "SEEN" not in said(lab.work)
    assert said(lab.work)[-1] == "all tried"
    assert lab.completed(queued)
    if not was_there:
        memory.rmdir()

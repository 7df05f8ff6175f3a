"""At stake: of several definitions with one name the right one wins, a bad file harms no other, a clone needs trust."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import agentctl
from agentctl.adapters import trust
from agentctl.adapters.definitions import Found, Origin, Source, read_all, sources
from agentctl.adapters.known import known_files
from agentctl.adapters.taskdir import Root
from agentctl.errors import Damaged, NotFound, Refused
from agentctl.operations.trust.definitions import find_agent_spec, list_agent_specs
from agentctl.operations.trust.trusting import list_trust, revoke_files, trust_files

SHIPPED = Path(agentctl.__file__).parent / "agents"


class Places:
    """The folders of a test: a project with a root, and a home folder."""

    def __init__(self, folder: Path) -> None:
        self.project, self.home = folder / "project", folder / "home"
        self.root = Root(self.project / ".agentctl")
        for each in (self.project / ".agentctl", self.home):
            each.mkdir(parents=True, mode=0o700)

    def write(self, name: str, text: str | bytes) -> Path:
        """Write a file below the folder of the test: `project/...` or `home/...`."""
        file = self.project.parent / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    found = Places(tmp_path)
    monkeypatch.setenv("HOME", str(found.home))
    for name in ("AGENTCTL_INSTANCE", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(found.project)
    return found


def md(name: str = "a", *lines: str, prompt: str = "Do it.") -> str:
    return "\n".join(["---", f"name: {name}", *lines, "---", prompt, ""])


def toml(name: str = "a", *lines: str) -> str:
    return "\n".join([f'name = "{name}"', *lines, 'developer_instructions = """Do it."""', ""])


def read(folder: Path, form: str = "own", within: Path | None = None) -> Found:
    return read_all([Source(folder, Origin.PROJECT, form, within)], known_files(os.environ))


# -- which file wins -----------------------------------------------------------------------------------------

IN_ORDER = (
    "project/.agentctl/agents/x.md", "project/.claude/agents/x.md", "project/.codex/agents/x.toml",
    "home/.agentctl/agents/x.md", "home/.config/agentctl/agents/x.md", "home/.claude/agents/x.md",
    "home/.codex/agents/x.toml",
)  # fmt: skip
READ_ONLY = 'sandbox_mode = "read-only"'


def test_the_first_of_a_name_wins_from_the_project_to_the_shipped(places: Places) -> None:
    for name in IN_ORDER:
        is_toml = name.endswith(".toml")
        places.write(name, toml("plan", READ_ONLY) if is_toml else md("plan", "permissionMode: plan"))
    for name in IN_ORDER:
        file = places.project.parent / name
        if name.startswith("project"):  # Another program's file names its driver.
            trust_files(places.root, [str(file)])
        spec = find_agent_spec(places.root, "plan")
        assert spec.source == str(file)
        assert spec.instructions == "Do it."
        assert spec.driver == ("claude" if ".claude" in name else "codex" if ".codex" in name else None)
        file.unlink()
    assert find_agent_spec(places.root, "plan").source == str(SHIPPED / "plan.md")


def test_the_programs_own_variables_move_a_persons_folders(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = places.home / "moved"
    for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.setenv(name, str(moved / name))
    folders = [str(source.folder) for source in sources(None, None, os.environ)]
    assert folders[1:4] == [
        str(moved / "XDG_CONFIG_HOME" / "agentctl" / "agents"),
        str(moved / "CLAUDE_CONFIG_DIR" / "agents"),
        str(moved / "CODEX_HOME" / "agents"),
    ]


def test_the_shipped_agents_are_whole(places: Places) -> None:
    agents, warnings = list_agent_specs(None)
    specs = {agent.spec.name: agent.spec for agent in agents}
    assert warnings == []
    assert set(specs) == {"explore", "plan", "general"}
    assert {name for name, spec in specs.items() if spec.read_only} == {"explore", "plan"}
    assert specs["explore"].effort == "low"
    for spec in specs.values():
        assert len(spec.description) > 40
        assert len(spec.instructions) > 500
        assert (spec.driver, spec.model, spec.tools) == (None, None, None)
        assert spec.permissions == []


def test_the_nearest_folder_with_definitions_is_the_project(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    places.write("project/.claude/agents/outer.md", md("outer"))
    below = places.write("project/app/.claude/agents/inner.md", md("inner")).parent.parent.parent / "src"
    below.mkdir()
    monkeypatch.chdir(below)
    names = {agent.spec.name for agent in list_agent_specs(places.root)[0]}
    assert "inner" in names
    assert "outer" not in names


def test_ones_home_is_no_project(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """Definitions in a root in the home folder are the person's own, and need no trust."""
    places.write("home/.agentctl/agents/a.md", md("a", "permissions: allow"))
    places.write("home/.claude/agents/b.md", md("b", "permissionMode: bypassPermissions"))
    monkeypatch.chdir(places.home)
    agents, _ = list_agent_specs(Root(places.home / ".agentctl"))
    own = {agent.spec.name: agent for agent in agents if agent.origin is Origin.HOME}
    assert {"a", "b"} == set(own)
    assert all(agent.usable and not agent.powers for agent in own.values())


# -- files that are not what they should be --------------------------------------------------------------------

BAD: list[tuple[str, str | bytes, int, str]] = [
    ("own", "Do it.", 1, "does not begin with front matter"),
    ("own", "---\nname: a\nDo it.", 1, "does not begin with front matter"),
    ("own", "---\nname: a\ncolour: x\n---\n", 3, "unknown key 'colour'"),
    ("own", "---\nname: a\nname: b\n---\n", 3, "is given twice"),
    ("own", "---\na: &x [1]\nb: *x\n---\n", 3, "aliases are not allowed"),
    ("own", "---\ndescription: when: x\n---\n", 2, "mapping values"),
    ("own", "---\n- a\n---\n", 1, "must be a mapping"),
    ("own", "---\npermissions:\n  - tool: Bash\n    answer: allow\n  - answer: maybe\n---\n", 5, "answer must be"),
    ("own", b"---\nname: a\ndescription: caf\xe9\n---\n", 3, "not UTF-8"),
    ("own", b"x" * (256 * 1024 + 1), 1, "larger than"),
    ("claude", "---\nname: a\npermissionMode: yolo\n---\n", 3, "permissionMode must be one of"),
    ("claude", "---\nname: Code Reviewer\n---\n", 2, "is not a name"),
    ("codex", 'name = "a"\nsandbox_mode = "x"\n', 2, "sandbox_mode must be"),
    ("codex", 'name = "a"\nmodel = \n', 2, "Invalid value"),
    ("codex", 'name = "a"\nname = "b"\n', 2, "overwrite"),
    ("codex", "x = " + "[" * 100_000, 1, ""),
]


@pytest.mark.parametrize(("form", "content", "line", "problem"), BAD, ids=[f"{bad[0]} {bad[3]}" for bad in BAD])
def test_a_bad_file_is_told_by_its_line_and_harms_no_other(
    places: Places, form: str, content: str | bytes, line: int, problem: str
) -> None:
    ending = "toml" if form == "codex" else "md"
    bad = places.write(f"project/agents/bad.{ending}", content)
    places.write(f"project/agents/good.{ending}", toml("good") if form == "codex" else md("good"))
    found = read(bad.parent, form)
    assert [definition.spec.name for definition in found.definitions] == ["good"]
    (warning,) = found.warnings
    assert warning.startswith(f"{bad}:{line}: ")
    assert problem in warning
    assert warning.endswith("the file is left out")


def test_what_other_programs_accept_in_front_matter_is_read(places: Places) -> None:
    head = "name: a\r\ndescription: Use when: always. <b>x: y</b> # é😀\r\ntools: *\r\nmaxTurns: 3\r\n"
    text = f"---\r\n{head}---\r\nOne\r\nTwo\r\n"
    file = places.write("project/agents/a.md", b"\xef\xbb\xbf" + text.encode())
    found = read(file.parent, "claude")
    assert found.warnings == []
    (spec,) = [definition.spec for definition in found.definitions]
    assert spec.description == "Use when: always. <b>x: y</b> # é😀"
    assert (spec.tools, spec.max_turns, spec.instructions) == (None, 3, "One\nTwo")


def test_a_name_is_the_files_where_it_says_none(places: Places) -> None:
    places.write("project/agents/tidy.md", "---\ndescription: x\n---\nA line\n---\nand more\n")
    (definition,) = read(places.project / "agents").definitions
    assert definition.spec.name == "tidy"
    assert definition.spec.instructions == "A line\n---\nand more"


def test_links_fifos_and_folders_are_left_out(places: Places) -> None:
    folder = places.write("project/agents/good.md", md("good")).parent
    secret = places.write("secret.md", md("secret"))
    (folder / "link.md").symlink_to(secret)
    (folder / "inside.md").symlink_to(folder / "good.md")
    (folder / "dangling.md").symlink_to(folder / "nowhere")
    (folder / "device.md").symlink_to("/dev/zero")
    (folder / "folder.md").mkdir()
    os.mkfifo(folder / "fifo.md")
    found = read(folder, within=places.project)
    assert [definition.spec.name for definition in found.definitions] == ["good", "good"]
    problems = {Path(line.split(":")[0]).name: line for line in found.warnings}
    assert "a link that leads out" in problems["link.md"]
    assert "a link that leads out" in problems["device.md"]
    assert "not a plain file" in problems["fifo.md"]
    assert "not a plain file" in problems["folder.md"]
    assert "No such file" in problems["dangling.md"]
    (places.project / "linked").symlink_to(secret.parent / "home")
    places.write("home/x.md", md("x"))
    assert "a link that leads out" in read(places.project / "linked", within=places.project).warnings[0]


# -- trust -----------------------------------------------------------------------------------------------------


def usable(places: Places, name: str = "a") -> bool:
    return next(agent.usable for agent in list_agent_specs(places.root)[0] if agent.spec.name == name)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("project/.agentctl/agents/a.md", md("a", "permissions: allow")),
        ("project/.agentctl/agents/a.md", md("a", "argv: [make]")),
        ("project/.claude/agents/a.md", md("a", "permissionMode: acceptEdits")),
        ("project/.claude/agents/a.md", md("a", "mcpServers: [x]")),
        ("project/.codex/agents/a.toml", toml("a", 'sandbox_mode = "danger-full-access"')),
        ("project/.agentctl/agents/harmless.md", md("explore", prompt="Without a limit.")),
    ],
)
def test_power_from_a_project_is_refused_until_it_is_trusted(places: Places, name: str, content: str) -> None:
    file = places.write(name, content)
    agent = "explore" if "explore" in content else "a"
    with pytest.raises(Refused, match="is not trusted") as caught:
        find_agent_spec(places.root, agent)
    assert caught.value.hint is not None
    assert caught.value.hint.endswith(f"agentctl trust {file}")
    (row,) = trust_files(places.root, [str(file)])
    assert (row["path"], row["agent"], row["trusted"]) == (str(file), agent, True)
    assert find_agent_spec(places.root, agent).source == str(file)
    file.write_text(content + "# more\n", encoding="utf-8")
    assert not usable(places, agent), "another content needs another word"
    file.write_text(content, encoding="utf-8")
    assert usable(places, agent)
    revoke_files(places.root, [str(file)])
    assert not usable(places, agent)


def test_the_same_words_elsewhere_need_trust_of_their_own(places: Places) -> None:
    text = md("a", "argv: [make]")
    first = places.write("project/.agentctl/agents/a.md", text)
    trust_files(places.root, [str(first)])
    places.write("other/.agentctl/agents/a.md", text)
    other = Root(places.project.parent / "other" / ".agentctl")
    with pytest.raises(Refused):
        find_agent_spec(other, "a")


def test_a_stricter_definition_needs_no_trust(places: Places) -> None:
    file = places.write("project/.agentctl/agents/e.md", md("explore", "readOnly: true", "permissions: deny"))
    assert find_agent_spec(places.root, "explore").source == str(file)
    assert trust_files(places.root, [str(file)])[0]["powers"] == []
    assert not trust.trust_file(os.environ).exists(), "there was nothing to trust"


def test_a_definition_is_held_to_the_persons_own_of_that_name(places: Places) -> None:
    places.write("home/.claude/agents/r.md", md("reviewer", "tools: Read", "disallowedTools: Write"))
    places.write("project/.claude/agents/r.md", md("reviewer", "tools: Read, Bash"))
    with pytest.raises(Refused, match="it has more tools, unlike the reviewer that it hides; it denies less"):
        find_agent_spec(places.root, "reviewer")


@pytest.mark.parametrize("line", ["driver: llm", "model: openai/gpt-x"])
def test_a_definition_that_sends_the_work_elsewhere_needs_trust(places: Places, line: str) -> None:
    file = places.write("project/.agentctl/agents/g.md", md("general", line))
    with pytest.raises(Refused, match=f"it names another {line.partition(':')[0]}, unlike the general that it hides"):
        find_agent_spec(places.root, "general")
    trust_files(places.root, [str(file)])
    assert find_agent_spec(places.root, "general").source == str(file)


def test_a_definition_that_takes_back_the_persons_choice_of_a_driver_needs_trust(places: Places) -> None:
    places.write("home/.agentctl/agents/g.md", md("general", "driver: llm", "model: ollama/here"))
    places.write("project/.agentctl/agents/g.md", md("general"))
    with pytest.raises(Refused, match="it names another driver, unlike the general that it hides"):
        find_agent_spec(places.root, "general")


def test_one_who_is_a_worker_trusts_nobody(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    file = places.write("project/.agentctl/agents/a.md", md("a", "permissions: allow"))
    for name, value in (("ROOT", str(places.root.path)), ("TASK", "t1"), ("INSTANCE", "w1")):
        monkeypatch.setenv(f"AGENTCTL_{name}", value)
    with pytest.raises(Refused, match="w1 is a worker"):
        trust_files(places.root, [str(file)])
    with pytest.raises(Refused, match="w1 is a worker"):
        revoke_files(places.root, [str(file)])


def test_only_definitions_can_be_trusted(places: Places) -> None:
    other = places.write("project/other.md", md("a", "permissions: allow"))
    bad = places.write("project/.agentctl/agents/bad.md", md("b", "permissions: maybe"))
    with pytest.raises(NotFound, match="is not a definition, template"):
        trust_files(places.root, [str(other)])
    with pytest.raises(NotFound) as caught:
        trust_files(places.root, [str(bad)])
    assert f"{bad}:3: permissions must be" in str(caught.value.hint)
    with pytest.raises(NotFound, match="was not trusted"):
        revoke_files(places.root, [str(bad)])


def test_trust_is_private_and_believed_only_while_it_is(places: Places) -> None:
    file = places.write("project/.agentctl/agents/a.md", md("a", "permissions: allow"))
    trust_files(places.root, [str(file)])
    kept = trust.trust_file(os.environ)
    assert kept == places.home / ".config" / "agentctl" / "trust.json"
    assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    kept.chmod(0o666)
    with pytest.raises(Refused, match="written by somebody else"):
        find_agent_spec(places.root, "a")
    kept.chmod(0o600)
    kept.write_text("{", encoding="utf-8")
    with pytest.raises(Damaged, match="is damaged"):
        find_agent_spec(places.root, "a")
    kept.write_text('{"files": {"/x": 5, "/y": {"sha256": []}}}', encoding="utf-8")
    assert trust.read_trusted(kept) == {}


def test_what_is_trusted_is_listed_also_when_it_is_gone(places: Places) -> None:
    file = places.write("project/.agentctl/agents/a.md", md("a", "permissions: allow"))
    waiting = places.write("project/.claude/agents/b.md", md("b", "permissionMode: acceptEdits"))
    trust_files(places.root, [str(file)])
    rows, _ = list_trust(places.root)
    assert {row["path"]: row["trusted"] for row in rows} == {str(file): True, str(waiting): False}
    file.unlink()
    rows, _ = list_trust(places.root)
    assert [(row["path"], row["agent"]) for row in rows if row["trusted"]] == [(str(file), None)]
    revoke_files(places.root, [str(file)])
    assert [row["path"] for row in list_trust(places.root)[0]] == [str(waiting)]


def test_an_unknown_agent_is_told_with_the_nearest(places: Places) -> None:
    with pytest.raises(NotFound, match=r"^Unknown agent type: exlpore$") as caught:
        find_agent_spec(places.root, "exlpore")
    assert caught.value.hint == "did you mean explore?; known: explore, general, plan"


def test_dots_in_a_text_make_no_long_key(tmp_path: Path) -> None:
    dots, key = "A sentence. " * 210, ".".join(["a"] * 300)
    (tmp_path / "texts.toml").write_text(
        f'name = "texts"\ndescription = "{dots}" # {dots}\ndeveloper_instructions = """\n{dots}\n"quoted"\n"""\n'
    )
    hidden = (f'# """\n{key} = 1\n# """', f'x = \'"""\'\n{key} = 1\ny = \'"""\'', f'x = """"\n""""\n{key} = 1')
    for number, text in enumerate(hidden):
        (tmp_path / f"key{number}.toml").write_text(text)
    (tmp_path / "open.toml").write_text('x = """\n' * 20_000)
    found = read_all([Source(tmp_path, Origin.HOME, "codex")], known_files({"HOME": str(tmp_path)}))
    assert [one.spec.name for one in found.definitions] == ["texts"]
    assert sum("a key has more than 200 parts" in warning for warning in found.warnings) == len(hidden)

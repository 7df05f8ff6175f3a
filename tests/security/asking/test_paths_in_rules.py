"""At stake: a rule that allows a folder allows nothing that a link in it leads to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.adapters.realpath import Resolver
from agentctl.domain.agent.permissions import OWN_SEARCH, Rules, answer_by
from agentctl.drivers.dialogue import Ask
from agentctl.drivers.order import Order
from agentctl.worker_programs.agent_host.host_questions import decided_by
from tests.agent_steps import agent, agent_world, blocked, ends, plays
from tests.support import run


def rules(pattern: str, answer: str = "allow") -> Rules:
    return [{"tool": "Read", "pattern": pattern, "answer": answer}]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Make a folder with files, and links of every kind."""
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "a.py").touch()
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").touch()
    for name, target in {
        "src/link": "../../secret/key", "src/folder": "../../secret", "src/dangling": "../../secret/new",
        "src/loop": "loop", "src/own": "a.py", "src/high": "/", "alias": "src",
    }.items():  # fmt: skip
        (folder / name).symlink_to(target)
    (tmp_path / "also").symlink_to("work")
    return folder


ALLOWED = {
    "src/a.py": "allow", "src/new.py": "allow", "src/own": "allow", "src/link": "ask", "src/folder/key": "ask",
    "src/dangling": "ask", "src/loop": "ask", "src/loop/x": "ask", "src/a.py/x": "ask", "src/high/etc/passwd": "ask",
    "src/no\0text": "ask",
}  # fmt: skip


@pytest.mark.parametrize("path", ALLOWED)
@pytest.mark.parametrize("base", ["", "{work}/", "{also}/"])
def test_a_folder_is_allowed_and_not_what_links_in_it_lead_to(work: Path, base: str, path: str) -> None:
    place = base.format(work=work, also=work.parent / "also")
    assert answer_by(rules(f"{place}src/*"), "Read", {"path": place + path}, Resolver(str(work))) == ALLOWED[path]


def test_the_rules_own_folder_may_be_a_link(work: Path) -> None:
    real = Resolver(str(work))
    assert answer_by(rules("alias/*"), "Read", {"path": "alias/a.py"}, real) == "allow"
    assert answer_by(rules("alias/*"), "Read", {"path": "alias/link"}, real) == "ask"
    assert answer_by(rules("*.py"), "Read", {"path": "alias/a.py"}, real) == "allow"
    assert answer_by(rules("[a-z]*.py"), "Read", {"path": "src/a.py"}, real) == "allow"
    assert answer_by(rules("src/a.py"), "Read", {"path": "src/a.py"}, real) == "allow"
    assert answer_by(rules("src/link"), "Read", {"path": "src/link"}, real) == "ask"
    assert answer_by(rules("~/*"), "Read", {"path": "~/x"}, real) == "ask"
    assert answer_by(rules("*"), "Read", {"path": "src/link"}, real) == "allow", "everything is everything"


def test_a_rule_on_the_whole_call_allows_no_link(work: Path) -> None:
    real = Resolver(str(work))
    for path, answer in (("src/a.py", "allow"), ("src/link", "ask"), (str(work / "src/a.py"), "allow")):
        assert answer_by(rules('{"path":"*"}'), "Read", {"path": path}, real) == answer


@pytest.mark.parametrize("path", ["src/link", "src/folder/key", "{secret}/key", "src/../../secret/key", "src/dangling"])
def test_what_a_link_leads_to_is_denied_where_it_is(work: Path, path: str) -> None:
    secret = work.parent / "secret"
    told = path.format(secret=secret)
    both = rules(f"{secret}/*", "deny") + rules("*")
    assert answer_by(both, "Read", {"path": told}, Resolver(str(work))) == "deny"
    (work.parent / "other").symlink_to("secret")
    both = rules(f"{work.parent}/other/*", "deny") + rules("*")
    assert answer_by(both, "Read", {"path": told}, Resolver(str(work))) == "deny"


def test_a_folder_whose_name_is_a_pattern_means_itself_alone(tmp_path: Path) -> None:
    (tmp_path / "[ab]*").mkdir()
    (tmp_path / "link").symlink_to("[ab]*")
    (tmp_path / "a").mkdir()
    (tmp_path / "[ab]*" / "x").symlink_to("../a/x")
    real = Resolver(str(tmp_path))
    assert answer_by(rules("link/*"), "Read", {"path": "link/y"}, real) == "allow"
    assert answer_by(rules("link/*"), "Read", {"path": "link/x"}, real) == "ask"


@pytest.mark.parametrize("base", ["", "{work}/", "{also}/"])
def test_a_rules_own_folder_is_no_link_out_of_the_agents_folder(work: Path, base: str) -> None:
    """A clone brings the folder that a person's rule names as a link: to everything, or over a link of the person."""
    place = base.format(work=work, also=work.parent / "also")
    (work / "lib").symlink_to("/")
    (work / "deep").mkdir()
    (work / "deep" / "lib").symlink_to(work.parent / "also" / ".." / "secret")
    real = Resolver(str(work))
    for pattern, path in (("lib/*", "lib/etc/passwd"), ("deep/lib/*", "deep/lib/key"), ("deep/lib/k*", "deep/lib/key")):
        assert answer_by(rules(place + pattern), "Read", {"path": place + path}, real) == "ask"
    assert answer_by(rules(f"{place}alias/*"), "Read", {"path": f"{place}alias/a.py"}, real) == "allow"
    denied = rules(f"{place}deep/lib/*", "deny") + rules("*")
    assert answer_by(denied, "Read", {"path": f"{work.parent}/secret/key"}, real) == "deny", (
        "what is denied is read widely"
    )


def test_a_link_that_lies_elsewhere_is_the_persons_own(work: Path) -> None:
    outside = work.parent
    (outside / "other").symlink_to("secret")
    (work / "out").symlink_to(outside / "secret")
    (outside / "mine").symlink_to("work/out")
    real = Resolver(str(work))
    for place, answer in ((outside / "other", "allow"), (outside / "secret", "allow"), (outside / "mine", "ask")):
        assert answer_by(rules(f"{place}/*"), "Read", {"path": f"{place}/key"}, real) == answer


NAMES = st.sampled_from(["a", "b", "c", "..", ".", "l", "m"])
PATHS = st.lists(NAMES, min_size=1, max_size=5).map("/".join)


@given(links=st.dictionaries(st.sampled_from(["l", "m", "a/l", "b/m"]), PATHS, max_size=4), path=PATHS)
def test_whatever_links_there_are_what_is_allowed_lies_in_the_folder(
    tmp_path_factory: pytest.TempPathFactory, links: dict[str, str], path: str
) -> None:
    folder = tmp_path_factory.mktemp("world")
    for name in ("a", "b"):
        (folder / name).mkdir()
    for name, target in links.items():
        (folder / name).symlink_to(target)
    real = Resolver(str(folder))
    if answer_by(rules("a/*"), "Read", {"path": path}, real) == "allow":
        assert os.path.realpath(folder / path).startswith(f"{folder}/a/")
    either = rules("a/*", "deny") + rules("*")
    if real(path) is not None and os.path.realpath(folder / path).startswith(f"{folder}/a/"):
        assert answer_by(either, "Read", {"path": path}, real) == "deny"


TARGETS = PATHS | st.sampled_from(["/", "../..", "../also/l", "../also", "{folder}/a", "{folder}/l"])
PATTERNS = st.sampled_from(["l/*", "m/*", "a/l/*", "l/a/*", "b/m/l/*", "a/*", "l/m", "m/l*"])


@given(
    links=st.dictionaries(st.sampled_from(["l", "m", "a/l", "b/m"]), TARGETS, min_size=1, max_size=4),
    base=st.sampled_from(["", "{folder}/", "{also}/"]),
    pattern=PATTERNS,
    rest=PATHS,
)
def test_no_rule_on_the_agents_folder_allows_anything_outside_of_it(
    tmp_path_factory: pytest.TempPathFactory, links: dict[str, str], base: str, pattern: str, rest: str
) -> None:
    folder = tmp_path_factory.mktemp("world") / "work"
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
    (folder.parent / "also").symlink_to("work")
    for name, target in links.items():
        (folder / name).symlink_to(target.format(folder=folder))
    place = base.format(folder=folder, also=folder.parent / "also")
    path = place + pattern.replace("*", rest)
    if answer_by(rules(place + pattern), "Read", {"path": path}, Resolver(str(folder))) == "allow":
        assert os.path.realpath(folder / path).startswith(f"{folder}/")


@pytest.fixture
def secrets(work: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder of secrets in the agent's folder, which lies in the home."""
    (work / "secrets" / "deep").mkdir(parents=True)
    for name in ("k", ".env", "deep/db.env"):
        (work / "secrets" / name).touch()
    (work / "notes.py").touch()
    monkeypatch.setenv("HOME", str(work.parent))
    return work


@pytest.mark.parametrize("pattern", ["secrets/*", "{work}/secrets/*", "*secrets*", "~/{name}/secrets/*"])
@pytest.mark.parametrize(
    "path", ["~/{name}/secrets/k", " secrets/k", "secrets/k\n", "{work}/secrets/k ", "\ufeff{work}/secrets/k"]
)
@pytest.mark.parametrize("answer", ["deny", "ask"])
def test_no_spelling_of_a_path_passes_a_rule_that_forbids_it(
    secrets: Path, pattern: str, path: str, answer: str
) -> None:
    told = {"path": path.format(work=secrets, name=secrets.name)}
    both = rules(pattern.format(work=secrets, name=secrets.name), answer) + rules("*")
    assert answer_by(both, "Read", told, Resolver(str(secrets))) == answer


@pytest.mark.parametrize("path", ["~other/k", "src/loop", "~/notes"])
def test_a_path_that_leads_nowhere_known_is_asked_about_beside_a_rule_that_forbids_some(work: Path, path: str) -> None:
    real = Resolver(str(work))
    assert answer_by(rules("secrets/*", "deny") + rules("*"), "Read", {"path": path}, real) == "ask"
    later = rules("secrets/*", "ask") + rules(f"*{path[1:]}", "deny") + rules("*")
    assert answer_by(later, "Read", {"path": path}, real) == "deny"
    assert answer_by(rules("secrets/*", "deny") + rules("*", "deny"), "Read", {"path": path}, real) == "deny"
    assert answer_by(rules("*"), "Read", {"path": path}, real) == "allow"


def test_a_path_is_allowed_only_if_it_is_however_it_is_read(work: Path) -> None:
    (work / "src" / "k\u00e9y").symlink_to("../../secret/key")
    (work / "src" / "sub").symlink_to("..")
    real = Resolver(str(work))
    assert answer_by(rules("src/*"), "Read", {"path": "src/ke\u0301y"}, real) == "ask"
    assert answer_by(rules("src/*"), "Read", {"path": "src/link "}, real) == "ask"
    assert answer_by(rules("src/*"), "Read", {"path": "src/new "}, real) == "allow"
    assert answer_by(rules('{"path":*}'), "Read", {"path": "src/link "}, real) == "ask"


EVERYTHING = {"tool": "*", "pattern": "*", "answer": "allow"}
SEARCHES = {
    "above": ({"pattern": "pass"}, True),
    "above, by its path": ({"pattern": "pass", "path": "{work}"}, True),
    "above, by the home": ({"pattern": "pass", "path": "~/{name}"}, True),
    "of it": ({"pattern": "pass", "path": "secrets"}, True),
    "of it, elsewhere spelled": ({"pattern": "pass", "path": "./src/../secrets/"}, True),
    "within": ({"pattern": "pass", "path": "secrets/deep"}, True),
    "beside it": ({"pattern": "pass", "path": "src"}, False),
    "of a file beside it": ({"pattern": "pass", "path": "notes.py"}, False),
}


@pytest.mark.parametrize("case", SEARCHES)
@pytest.mark.parametrize("tool", ["Grep", "Glob", "grep_search"])
@pytest.mark.parametrize("answer", ["deny", "ask"])
@pytest.mark.parametrize("named", ["*", "same", "Read"])
@pytest.mark.parametrize("pattern", ["secrets/*", "{work}/secrets/*", "~/{name}/secrets/*", "*.env"])
def test_no_search_meets_what_a_rule_forbids(
    secrets: Path, case: str, tool: str, answer: str, named: str, pattern: str
) -> None:
    arguments, is_forbidden = SEARCHES[case]
    told = {key: value.format(work=secrets, name=secrets.name) for key, value in arguments.items()}
    if tool == "Glob":
        told["pattern"] = "**"
    name = ("Grep" if tool == "grep_search" else tool) if named == "same" else named
    both = [{"tool": name, "pattern": pattern.format(work=secrets, name=secrets.name), "answer": answer}, EVERYTHING]
    also = tool if tool == "grep_search" else None
    found = answer_by(both, "Grep" if also else tool, told, Resolver(str(secrets)), also)
    if told.get("path", "").startswith("~") and not is_forbidden:
        assert found == "ask"
    else:
        assert found == (answer if is_forbidden else "allow")


def test_a_search_is_free_beside_a_rule_for_what_it_cannot_meet(secrets: Path) -> None:
    real = Resolver(str(secrets))
    for pattern in ("git push*", "rm *", "*.pem", "/etc/*", "nothing/*"):
        both = [{"tool": "*", "pattern": pattern, "answer": "deny"}, EVERYTHING]
        assert answer_by(both, "Grep", {"pattern": "x"}, real) == "allow", pattern
    both = [{"tool": "*", "pattern": "*.env", "answer": "deny"}, EVERYTHING]
    for glob, answer in {
        "*.py": "allow", "**/*.py": "allow", "*.env": "deny", "*": "deny", "!*.py": "deny", "*.{py,env}": "deny",
        "*.py *.env": "deny", "*.env,*.py": "deny", "*.e[n]v": "deny",
    }.items():  # fmt: skip
        assert answer_by(both, "Grep", {"pattern": "x", "glob": glob}, real) == answer, glob
    for pattern, answer in {"**/*.py": "allow", "secrets/**": "deny", "secrets/*.py": "allow", "**": "deny"}.items():
        assert answer_by(both, "Glob", {"pattern": pattern}, real) == answer, pattern


def test_a_search_of_more_than_can_be_looked_at_may_meet_anything(
    secrets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentctl.adapters.realpath._MOST_BELOW", 2)
    both = [*rules("*.pem", "deny"), EVERYTHING]
    assert answer_by(both, "Grep", {"pattern": "x"}, Resolver(str(secrets))) == "deny"
    assert answer_by(both, "Grep", {"pattern": "x", "path": "src/a.py"}, Resolver(str(secrets))) == "allow"


def test_a_whole_denial_of_reading_is_one_of_searching_in_files(secrets: Path) -> None:
    both = [*rules("*", "deny"), EVERYTHING]
    real = Resolver(str(secrets))
    assert answer_by(both, "Grep", {"pattern": "x"}, real) == "deny"
    assert answer_by(both, "Glob", {"pattern": "x"}, real) == "allow", "a name is no content"


def test_searches_that_leave_out_what_is_forbidden_are_free(secrets: Path) -> None:
    both = [*rules("secrets/*", "deny"), EVERYTHING]
    assert answer_by(both, "Grep", {"pattern": "x"}, Resolver(str(secrets)), OWN_SEARCH) == "allow"


def test_who_drives_an_agent_looks_where_a_path_leads(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(work)
    secret = rules(f"{work.parent}/secret/*", "deny")

    def answer(path: str, denied_above: list[Rules]) -> object:
        order = Order("claude", "p", "general", "x", permissions=rules("src/*"), denied_above=denied_above)
        decided = decided_by(order, Ask("key", "Allow Read?", [], tool="Read", arguments={"path": path}))
        return decided and decided.policy["answer"]

    assert [answer(path, []) for path in ("src/a.py", "src/link")] == ["allow", None]
    assert answer("src/link", [secret]) == "deny"


@pytest.mark.slow
def test_an_agent_is_asked_about_a_link(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: Path
) -> None:
    agent_world(tmp_path, monkeypatch)
    allowed = '[{"tool": "Read", "pattern": "src/*", "answer": "allow"}]'
    ask = "me.ask('Read', {{'path': '{}'}}, 'permission')"
    agent(plays(tmp_path, ask.format("src/a.py")), "--permissions", allowed, "--cwd", work)
    assert ends()["result"]["finalMessage"] == "allowed"
    agent(plays(tmp_path, ask.format("src/link")), "--permissions", allowed, "--cwd", work, name="b")
    assert blocked("b")["arguments"] == {"path": "src/link"}
    run("interact", "respond", "b", "--id", "q1", "deny")
    ends("b")

"""At stake: a shell is offered what an option takes, from the module that decides it, and never more than names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agentctl.domain.agent.agentspec import EFFORTS
from agentctl.domain.agent.permissions import POLICIES
from agentctl.drivers.registry import AGENT_DRIVERS
from agentctl.interfaces.cli import completion
from agentctl.interfaces.cli.completion import SaidSoFar, names_offered
from agentctl.interfaces.commands.model import command_model as kinds
from agentctl.interfaces.commands.wait.wait_any import KINDS
from agentctl.runners.registry import names
from agentctl.tools.registry import DIALECTS
from tests.fakessh import define_hosts

FIXED = {
    kinds.EFFORTS: EFFORTS, kinds.POLICIES: POLICIES, kinds.DRIVERS: tuple(AGENT_DRIVERS), kinds.DIALECTS: DIALECTS,
    kinds.RUNNERS: tuple(names()), kinds.ENGINES: tuple(name for name in names() if name != "local"),
    kinds.END_LIST: KINDS,
}  # fmt: skip


@pytest.mark.parametrize("kind", FIXED)
def test_what_an_option_takes_is_offered_without_a_root(root: Path, kind: str) -> None:
    assert names_offered(kind, "") == [*FIXED[kind]] != []
    assert names_offered(kind, "no-such-beginning") == []
    assert not root.exists()


def test_policies_and_efforts_are_the_words_of_the_help() -> None:
    assert set(names_offered(kinds.POLICIES, "")) == {"ask", "allow", "deny", "own"}
    assert names_offered(kinds.EFFORTS, "m") == ["medium"]


def test_the_last_word_of_any_list_is_completed_and_no_word_twice(root: Path) -> None:
    define_hosts({"build": "b", "gpu": "g"})
    assert names_offered(kinds.HOST_LIST, "gpu,") == ["gpu,all", "gpu,here", "gpu,build"]
    assert names_offered(kinds.END_LIST, "failed,blocked,c") == ["failed,blocked,completed", "failed,blocked,cancelled"]
    assert names_offered(kinds.AGENT_LIST, "explore,") == ["explore,general", "explore,plan"]
    assert names_offered(kinds.AGENTS, "explore,") == []


def test_what_was_given_before_is_not_offered_again(root: Path) -> None:
    assert names_offered(kinds.AGENTS, "", {}, ["plan"]) == ["explore", "general"]


def test_targets_are_those_of_the_person(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "home" / ".config" / "agentctl" / "config.yaml"
    file.parent.mkdir(parents=True, mode=0o700)
    file.write_text("notify: {targets: {desk: {type: terminal}, phone: {type: terminal}}}", encoding="utf-8")
    file.chmod(0o600)
    assert names_offered(kinds.TARGETS, "") == ["desk", "phone"]
    assert names_offered(kinds.TARGETS, "", {}, ["phone"]) == ["desk"]
    file.chmod(0o666)
    assert names_offered(kinds.TARGETS, "") == [], "anybody may have written it"


@pytest.mark.parametrize("kind", completion._KINDS)
def test_no_kind_raises_or_writes_where_there_is_nothing(root: Path, kind: str) -> None:
    names_offered(kind, "", {"task": "none", "words": ["nobody"], "question_id": "q9"})
    assert not root.exists()


def test_what_goes_wrong_in_the_middle_keeps_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_said: SaidSoFar) -> Iterator[str]:
        yield "good"
        raise OSError

    monkeypatch.setitem(completion._KINDS, kinds.TASKS, completion._Kind(broken))
    assert names_offered(kinds.TASKS, "") == ["good"]


def test_for_another_host_the_words_of_the_line_come_with_the_question(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[SaidSoFar] = []

    def noting(said: SaidSoFar) -> list[str]:
        asked.append(said)
        return ["api", "a b"]

    monkeypatch.setitem(completion._KINDS, kinds.ANSWER, completion._Kind(noting))
    completion.print_names([kinds.ANSWER, "t1", "", "q1", "fix"])
    completion.print_names([kinds.ANSWER])
    assert capsys.readouterr().out == "api\napi\n"
    assert asked == [SaidSoFar("t1", None, "q1", ("fix",)), SaidSoFar()]
    completion.print_names([kinds.HOST])
    completion.print_names(["no such kind"])
    assert capsys.readouterr().out == "", "those are of the machine where the line is typed"

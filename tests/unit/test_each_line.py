"""At stake: a line from a stranger is one argument, as it is, whatever stands in it; what cannot be one is refused."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.errors import UsageError
from agentctl.operations.start.batch import read_each
from agentctl.operations.start.requests import AgentWork, SpawnRequest

LINES = st.lists(st.text(st.characters(exclude_characters="\n\0", codec="utf-8"), max_size=12), max_size=6)
WORDS = st.sampled_from(["{}", "--to={}.out", "{}{}", "plain", "", "{0}", "$1", "{ }"])


@given(LINES, st.lists(WORDS, max_size=4))
def test_each_line_that_is_not_blank_is_put_in_as_it_is(lines: list[str], words: list[str]) -> None:
    wanted = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    request = SpawnRequest(argv=["job", *words], name="port", priority=3)
    if not wanted:
        with pytest.raises(UsageError, match="holds no line"):
            read_each([f"{line}\n" for line in lines], "here", request)
        return
    found = read_each([f"{line}\n" for line in lines], "here", request)
    assert [(one.name, one.where) for one in found] == [(f"port-{number}", f"here:{number}") for number, _ in wanted]
    for one, (_, line) in zip(found, wanted, strict=True):
        placed = ["job", *(line.join(word.split("{}")) for word in words)]
        assert one.argv == (placed if any("{}" in word for word in words) else ["job", *words, line])
        assert one._replace(name=None, where="", argv=()) == SpawnRequest(priority=3)


@given(LINES)
def test_each_line_is_put_into_a_prompt(lines: list[str]) -> None:
    request = SpawnRequest(work=AgentWork(prompt="Port {} ({})", agent="fix", model="m"), key="port {}")
    found = read_each(["x\n", *(f"{line}\n" for line in lines)], "here", request)
    wanted = ["x", *(line for line in lines if line.strip())]
    assert [one.work for one in found] == [AgentWork(f"Port {line} ({line})", "fix", model="m") for line in wanted]
    assert [one.key for one in found] == [f"port {line}" for line in wanted]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a\0b", "here:3: a NUL cannot be passed to a program"),
        ("x" * 32_001, "here:3: the line has 32001 characters; at most 32000 are passed on"),
    ],
)
def test_a_line_that_cannot_be_an_argument_is_named(line: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        read_each(["first\n", "\n", f"{line}\n"], "here", SpawnRequest(argv=["job"]))


@pytest.mark.parametrize(
    "argv",
    [
        ["sh", "-c", "wc {}"],
        ["/bin/bash", "-e", "-c", "wc {}", "bash"],
        ["env", "A=1", "nice", "dash", "-xc", "echo '{}'"],
        ["python3.11", "-c", "print('{}')"],
        ["perl", "-ne", "print if /{}/"],
    ],
)
def test_a_line_is_never_a_part_of_a_script(argv: list[str]) -> None:
    with pytest.raises(UsageError, match="would be read as a part of the script"):
        read_each(["x\n"], "here", SpawnRequest(argv=argv))


@pytest.mark.parametrize(
    ("argv", "last"),
    [
        (["sh", "-c", 'wc -l "$1"', "sh", "{}"], "x y"),
        (["sh", "-c", "{}"], "x y"),  # Each line is a script, and that was said.
        (["sh", "run.sh", "--to={}"], "--to=x y"),
    ],
)
def test_a_line_may_be_a_script_or_an_argument_of_one(argv: list[str], last: str) -> None:
    assert read_each(["x y\n"], "here", SpawnRequest(argv=argv))[0].argv[-1] == last


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (SpawnRequest(argv=["job"], key="nightly"), "--key is the same for all lines"),
        (SpawnRequest(work=AgentWork("Port it")), "the prompt has no {} for the line"),
    ],
)
def test_what_would_be_the_same_for_all_lines_is_refused(request_: SpawnRequest, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        read_each(["x\n", "y\n"], "here", request_)


def test_more_lines_than_anybody_means_are_refused() -> None:
    with pytest.raises(UsageError, match="here:100001: more than 100000 lines"):
        read_each(("x\n" for _ in range(100_001)), "here", SpawnRequest(argv=["job"]))

"""What is left of a person's rules of Codex: what forbids something, or has it asked about."""

from __future__ import annotations

import pytest

from agentctl.drivers.codex.rules import restrictions_in

FORBIDS = 'prefix_rule(pattern=["rm"], decision="forbidden")'


def left(text: str) -> tuple[str, list[str]]:
    found = restrictions_in({"default.rules": text.encode()})
    return found.text, found.unread


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('prefix_rule(pattern=["touch"], decision="allow")', ""),
        ('prefix_rule(pattern=["touch"])', ""),
        ('prefix_rule(["touch"], "allow")', ""),
        ('prefix_rule(["rm"], "forbidden")', FORBIDS),
        ('prefix_rule(pattern=["rm"], decision="forbidden", match=["rm x"], not_match=["ls"])', FORBIDS),
        (
            (
                'prefix_rule(\n    pattern = ["git", ["push", "fetch"]],  # words\n    decision = \'prompt\',\n'
                '    justification = "ask \\"me\\"",\n)'
            ),
            'prefix_rule(pattern=["git", ["push", "fetch"]], decision="prompt", justification="ask \\"me\\"")',
        ),
        ('network_rule(host="a.b", protocol="https", decision="allow")', ""),
        (
            'network_rule(host="a.b", protocol="https", decision="deny")',
            'network_rule(host="a.b", protocol="https", decision="deny")',
        ),
        (
            'host_executable(name="git", paths=["/usr/bin/git"])',
            'host_executable(name="git", paths=["/usr/bin/git"])',
        ),
        ('"""A comment."""\n# another\n', ""),
    ],
)
def test_only_what_restricts_is_left(text: str, kept: str) -> None:
    assert left(text) == (f"{kept}\n" if kept else "", [])


@pytest.mark.parametrize(
    "statement",
    [
        'DECISION = "forbidden"',
        'prefix_rule(pattern=["rm"], decision=DECISION)',
        'prefix_rule(pattern=[], decision="forbidden")',
        'prefix_rule(pattern=["rm", []], decision="forbidden")',
        'prefix_rule(pattern=["rm"], decision="never")',
        'prefix_rule(pattern=["rm"], decision="forbidden", justification="")',
        'prefix_rule(pattern=["rm"], decision="forbidden", mode="x")',
        'prefix_rule(**{"pattern": ["rm"], "decision": "forbidden"})',
        'prefix_rule(*[["rm"], "forbidden"])',
        'network_rule(host="a.b", decision="deny")',
        'host_executable(name="git", paths="/usr/bin/git")',
        'host_executable(name="git", paths=["/usr/bin/rm"])',
        'load("x", "y")',
        'for word in ["rm"]:\n    prefix_rule(pattern=[word], decision="forbidden")',
    ],
)
def test_what_cannot_be_read_is_named_and_costs_nothing_else(statement: str) -> None:
    assert left(f"{statement}\n{FORBIDS}\n") == (f"{FORBIDS}\n", ["default.rules:1"])


@pytest.mark.parametrize("text", [f"{FORBIDS}\n)", "\0", "(" * 100_000])
def test_a_file_that_cannot_be_read_is_named(text: str) -> None:
    assert left(text)[0] == ""
    assert len(left(text)[1]) == 1


def test_files_become_one() -> None:
    other = FORBIDS.replace("rm", "dd")
    assert restrictions_in({"b.rules": FORBIDS.encode(), "a.rules": other.encode()}).text == f"{other}\n{FORBIDS}\n"

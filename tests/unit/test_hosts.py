"""At stake: what two agentctl say to each other arrives whole, and what is no frame, no host, no look is refused."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.adapters.taskyaml.hosts import read_hosts
from agentctl.adapters.yamldoc import parse_yaml
from agentctl.domain.hosts import CommandHost, is_destination
from agentctl.errors import UsageError
from agentctl.interfaces.hosts import frames
from agentctl.interfaces.hosts.far_order import FarOrder, order_for, parse_order
from agentctl.interfaces.hosts.frames import (
    FROM_FAR,
    TO_FAR,
    BadFrames,
    Frames,
    Greeting,
    frame,
    frames_of,
    hello_line,
)
from agentctl.interfaces.hosts.hosts_asked import HostAnswer, refusal_in, rows_in
from agentctl.interfaces.hosts.terminal_filter import TerminalFilter
from agentctl.operations.where.agents_above import PASSED_ON
from agentctl.operations.where.calling import FROM_AGENT
from tests.by_hand import NAME, below

CONTENTS = st.lists(st.tuples(st.sampled_from([frames.OUT, frames.ERR]), st.binary(max_size=200)), max_size=8)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """Return data in pieces, as a pipe may bring it."""
    at = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in itertools.pairwise(at)]


@given(CONTENTS, st.lists(st.integers(0, 10_000), max_size=10))
def test_frames_arrive_however_they_are_cut(sent: list[tuple[bytes, bytes]], places: list[int]) -> None:
    data = b"".join(frame(kind, content) for kind, content in sent)
    reader = Frames(FROM_FAR)
    assert [one for piece in cut(data, places) for one in reader.feed(piece)] == sent


@given(st.binary(min_size=5, max_size=300))
def test_anything_else_is_refused_and_never_kept(data: bytes) -> None:
    reader = Frames(FROM_FAR)
    try:
        found = list(reader.feed(data))
    except BadFrames:
        return
    assert all(len(content) <= FROM_FAR[kind] for kind, content in found)


@pytest.mark.parametrize("kind", [*FROM_FAR, b"?"])
def test_a_frame_that_is_too_long_is_refused_by_its_head(kind: bytes) -> None:
    with pytest.raises(BadFrames):
        list(Frames(FROM_FAR).feed(kind + (FROM_FAR.get(kind, 0) + 1).to_bytes(4, "big")))


def test_a_long_piece_is_sent_in_frames_that_are_taken() -> None:
    data = bytes(range(256)) * 1000
    reader = Frames(FROM_FAR)
    found = [one for sent in frames_of(frames.OUT, data) for one in reader.feed(sent)]
    assert b"".join(content for _, content in found) == data


@given(st.binary(max_size=300).filter(lambda data: frames.MARK not in data), st.lists(st.integers(0, 999), max_size=9))
def test_the_hello_is_found_behind_what_a_login_shell_prints(noise: bytes, places: list[int]) -> None:
    greeting = Greeting()
    found: list[frames.Hello] = []
    for piece in cut(noise + hello_line("1.2.3") + b"rest", places):
        if not found and (hello := greeting.feed(piece)) is not None:
            found.append(hello)
        elif found:
            greeting.rest += piece
    assert [(one.protocol, one.version) for one in found] == [(frames.PROTOCOL, "1.2.3")]
    assert greeting.rest == b"rest"


ODD_HELLOS = [
    b"{}",
    b"[]",
    b"nothing",
    b'{"protocol": true, "version": "1"}',
    b'{"protocol": 1, "version": 1}',
    b"[" * 150,
]


@pytest.mark.parametrize("line", ODD_HELLOS)
def test_a_hello_of_another_form_is_refused(line: bytes) -> None:
    with pytest.raises(BadFrames):
        Greeting().feed(frames.MARK + line + b"\n")


def test_noise_and_hellos_without_end_are_refused() -> None:
    with pytest.raises(BadFrames):
        Greeting().feed(b"x" * (frames.MOST_NOISE + 1))
    with pytest.raises(BadFrames):
        Greeting().feed(frames.MARK + b"x" * 300)


def test_an_order_arrives_as_it_was_given() -> None:
    order = FarOrder(
        ["spawn", "--", "a b", "\udc80", "x" * 200_000], {"TERM": "xterm"}, "~/work", "utf-8", (True, False, True),
        (80, 24), False, 60.0,
    )  # fmt: skip
    sent = frame(frames.ORDER, order.encoded())
    ((kind, content),) = Frames(TO_FAR).feed(sent)
    assert (kind, parse_order(content)) == (frames.ORDER, order)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_no_other_order_is_taken(value: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of any wording
        parse_order(json.dumps(value).encode())


def test_a_worker_is_an_agent_there_and_a_model_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever answers a permission over there is taken for an agent if one of these variables is set."""
    for name in PASSED_ON:
        monkeypatch.delenv(name, raising=False)
    host = CommandHost("a", "a")
    assert not set(order_for(host, ["list"]).environ) & set(PASSED_ON)
    assert set(order_for(host, ["list"], is_worker=True).environ) & set(PASSED_ON)
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("SECRET", "hunter2")
    environ = order_for(host, ["list"]).environ
    assert environ["CLAUDECODE"] == "1"
    assert "SECRET" not in environ


def test_who_has_an_agent_above_is_one_there_whatever_was_unset(tmp_path: Path) -> None:
    code = "from agentctl.interfaces.hosts.far_order import *; print(*order_for(CommandHost('a', 'a'), []).environ)"
    line = [*below(tmp_path, NAME), sys.executable, "-c", code]
    assert FROM_AGENT in subprocess.run(line, capture_output=True, text=True, check=True).stdout.split()


# -- what reaches a terminal -------------------------------------------------------------------------------------------

ESCAPING = st.lists(
    st.sampled_from([*"\x1b[]0;318mHAK?hl\r\n\x07\x9bé\u202ecP\\ ", "25", "52", "\x1b[", "\x1b[1m", "\x1b[2A"]),
    max_size=40,
).map("".join)
LOOK = re.compile(r"\x1b\[[0-9;]*m")
MOTION = re.compile(r"\x1b\[[0-9;]*[ABCDGJK]|\x1b\[\?25[hl]")


@given(ESCAPING, st.booleans(), st.lists(st.integers(0, 200), max_size=5))
def test_only_looks_and_the_motions_of_a_table_reach_a_terminal(text: str, draws: bool, places: list[int]) -> None:
    safe = TerminalFilter(draws=draws)
    found = b"".join([*map(safe.feed, cut(text.encode(), places)), safe.feed(b"", is_last=True)]).decode()
    left = LOOK.sub("", found)
    if draws:
        left = MOTION.sub("", left).replace("\r", "")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", left)
    assert found == TerminalFilter(draws=draws).feed(text.encode(), is_last=True).decode()


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m\n", "\x1b[1;31mred\x1b[0m\n"),
        ("\x1b[38;2;1;2;3mx", "\x1b[38;2;1;2;3mx"),
        ("\x1b[8mhidden", "\\x1b[8mhidden"),
        ("\x1b]52;c;eA==\x07", "\\x1b]52;c;eA==\\x07"),
        ("\x1b[2J\x1b[H\x1b[6n\x1bc", "\\x1b[2J\\x1b[H\\x1b[6n\\x1bc"),
        ("over\rwritten\r\n", "over\\rwritten\n"),
    ],
)
def test_what_is_shown(sent: str, shown: str) -> None:
    assert TerminalFilter().feed(sent.encode(), is_last=True).decode() == shown


def test_bytes_that_are_no_text_are_shown_as_such() -> None:
    assert TerminalFilter().feed(b"a\xff\x00", is_last=True) == b"a\\xff\\x00"


# -- config.yaml -------------------------------------------------------------------------------------------------------


def hosts_of(text: str) -> dict[str, CommandHost]:
    return read_hosts(parse_yaml(Path("config.yaml"), text.encode()))


def test_hosts_have_a_short_form_and_a_long_one() -> None:
    text = (
        "hosts:\n  a: me@a.example\n  b: {ssh: b, agentctl: ~/.venv/bin/agentctl, folder: /srv/x, silentSeconds: 5}\n"
    )
    assert hosts_of(text) == {
        "a": CommandHost("a", "me@a.example"),
        "b": CommandHost("b", "b", "~/.venv/bin/agentctl", "/srv/x", 5.0),
    }
    assert hosts_of("config: {maxDepth: 1}\n") == {}


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("hosts: []", 1, "must map"),
        ("hosts:\n  a b: x", 2, "the name 'a b' of a host"),
        ("hosts:\n  here: x", 2, "no host can be called here"),
        ("hosts:\n  all: x", 2, "no host can be called all"),
        ("hosts:\n  a: 3", 2, "destination of ssh, or a mapping"),
        ("hosts:\n  a:\n    ssh: -oProxyCommand=x", 3, "ssh must be a destination"),
        ("hosts:\n  a:\n    folder: x", 2, "ssh must be a destination"),
        ("hosts:\n  a:\n    ssh: a\n    port: 3", 4, "unknown key 'port'"),
        ("hosts:\n  a:\n    ssh: a\n    agentctl: agentctl; id", 4, "agentctl must be the path"),
        ("hosts:\n  a:\n    ssh: a\n    agentctl: -x", 4, "agentctl must be the path"),
        ("hosts:\n  a:\n    ssh: a\n    folder: ''", 4, "folder must be the path"),
        ("hosts:\n  a:\n    ssh: a\n    silentSeconds: 0", 4, "silentSeconds must be a number"),
        ("hosts:\n  a:\n    ssh: a\n    silentSeconds: yes", 4, "silentSeconds must be a number"),
        ("hosts:\n  a:\n    ssh: a\n    silentSeconds: .nan", 4, "silentSeconds must be a number"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(text: str, line: int, says: str) -> None:
    with pytest.raises(UsageError) as found:
        hosts_of(text)
    assert found.value.message.startswith(f"config.yaml:{line}: ")
    assert says in found.value.message


@given(st.text(max_size=30))
def test_no_destination_is_an_option_or_more_than_a_word(text: str) -> None:
    if is_destination(text):
        assert not text.startswith("-")
        assert not set(text) & set(" \t\n;&|<>()$`\\\"'*?#!{}\0")


# -- answers -----------------------------------------------------------------------------------------------------------


def test_rows_get_the_name_of_their_host_and_no_host_can_give_another() -> None:
    answer = HostAnswer(CommandHost("a", "a"), out=b'[{"x": 1, "host": "b"}]')
    assert rows_in(answer) == [{"host": "a", "x": 1}]


@pytest.mark.parametrize("out", [b"", b"{}", b"[1]", b"[" * 100_000, b"\xff", b"null"])
def test_anything_else_is_no_answer(out: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of any wording
        rows_in(HostAnswer(CommandHost("a", "a"), out=out))


def test_a_refusal_is_read_without_what_a_terminal_obeys() -> None:
    assert refusal_in("error: \x1b]0;x\x07\nhint: y\n") == ("\\x1b]0;x\\x07", "y")
    assert refusal_in("") == ("", None)

"""At stake: what a person is told follows from the log alone, is bounded and clean, and holds no secret.

The rest of a configuration of targets is checked here too: nothing may be sent to a host that is not allowed.
"""

from __future__ import annotations

import base64
import json
import os
import string
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from agentctl.adapters import processes
from agentctl.adapters.document import Document
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskyaml.notifying import read_namings, read_notify
from agentctl.adapters.yamldoc import parse_yaml
from agentctl.domain import events as ev
from agentctl.domain.notice.notice_messages import message_about
from agentctl.domain.notice.notice_text import LEFT_OUT, clean
from agentctl.domain.notice.notices import KINDS, Notice, TaskNotices, all_ended, of_tree
from agentctl.domain.notice.quiet import QuietHours, parse_quiet
from agentctl.domain.notice.targets import Naming, NoticeTarget, applied, parse_namings
from agentctl.domain.text.plaintext import plain
from agentctl.errors import UsageError
from agentctl.supervision.notify.book import CLAIMED, DONE, FAILED, SENT, Book

NAMES = ("a", "b")
ENDS = tuple(ev.END_STATUS)


def event(kind: str, instance: str | None = "a", ts: str = "2026-11-21T20:13:00.000Z", **payload: Any) -> ev.Event:
    return ev.make_event(ts, kind, "t", "agentctl", payload, instance)


def told(events: Sequence[ev.Event], task_id: str = "t") -> TaskNotices:
    found = TaskNotices(task_id)
    found.apply(enumerate(events, 1))
    return found


def texts(events: Sequence[ev.Event]) -> list[str]:
    return [one.text for one in of_tree([told(events)])]


# -- which -------------------------------------------------------------------------------------------------------------


def test_an_open_question_is_told_and_an_answered_one_is_not() -> None:
    asked = [event(ev.QUEUED), event(ev.ASKED, id="q1", question="Go?"), event(ev.BLOCKED, id="q1")]
    assert texts(asked) == ["a asks: Go?"]
    for over in (event(ev.ANSWERED, id="q1"), event(ev.EXPIRED, id="q1"), event(ev.RESUMED, reason="asker_gone")):
        assert texts([*asked, over]) == []
    assert texts([*asked, event(ev.RESUMED, id="q2")]) == ["a asks: Go?"], "another question of the same worker"
    assert texts([*asked, event(ev.CANCELLED)]) == ["the only worker has ended: 1 cancelled"]


def test_a_question_is_told_in_words_and_a_call_as_it_stands() -> None:
    def text_of(question: str, **more: str) -> str:
        asked = event(ev.ASKED, id="q1", question=question, **more)
        return texts([event(ev.QUEUED), asked, event(ev.BLOCKED, id="q1")])[0]

    assert text_of("## Deploy **now**?\n- `a`") == "a asks: Deploy now?"
    assert text_of("Allow Bash: rm *a* `b`?", tool="Bash") == "a asks: Allow Bash: rm *a* `b`?"
    assert text_of("Is **token**: `hunter2` right?") == f"a asks: Is {LEFT_OUT} right?"
    for before in range(740, 800):
        cut = text_of(f"[x](https://d.org/{'y' * before}) ghp_0123456789abcdef")
        assert "012" not in cut, "a secret of which only a part is looked at"


def test_a_question_that_is_asked_again_keeps_its_key() -> None:
    asked = [event(ev.ASKED, id="q1", question="Go?"), event(ev.BLOCKED, id="q1")]
    again = [*asked, event(ev.RESUMED, reason="asker_gone"), event(ev.BLOCKED, id="q1")]
    assert [one.key for one in told(asked).notices()] == [one.key for one in told(again).notices()] == ["t:2"]


def test_all_have_ended_only_when_no_task_has_a_live_worker() -> None:
    above = [event(ev.QUEUED), event(ev.COMPLETED)]
    below = [event(ev.QUEUED, "b"), event(ev.PARKED, "b")]
    assert all_ended([told(above), told(below, "below")]) is None
    over = all_ended([told(above), told([*below, event(ev.FAILED, "b", ts="2026-11-21T20:14:00.000Z")], "below")])
    assert over is not None
    assert over.key == "below:3:ended"
    assert over.text == "all 2 workers have ended: 1 completed, 1 failed"
    assert all_ended([told([])]) is None


def test_a_completed_worker_is_told_of_to_who_wants_to_know() -> None:
    done = told([event(ev.QUEUED), event(ev.QUEUED, "b"), event(ev.COMPLETED), event(ev.CANCELLED, "b")])
    assert [(one.kind, one.text) for one in done.notices()] == [("completed", "a completed")]
    assert NoticeTarget("phone", "ntfy").events == ("blocked", "failed", "ended", "limit")


def test_a_failure_says_why_by_its_last_line_or_by_what_its_driver_says() -> None:
    said = "psycopg2.OperationalError: no route to host; the program ended before it began, with exit code 1"
    end = {"reason": "not_started", "message": said}
    assert texts([event(ev.FAILED, **end)])[0] == f"a failed (not_started): {said}"
    assert texts([event(ev.FAILED, **end, lastLine="no space left")])[0] == "a failed (not_started): no space left"


def test_many_completed_workers_push_out_no_failure() -> None:
    ends = [event(ev.FAILED), *(event(ev.COMPLETED, f"w{number}") for number in range(10_001))]
    assert told(ends).notices()[0].kind == "failed"


def test_a_limit_that_is_near_is_told_once_for_all_who_use_the_account() -> None:
    near = event(ev.NEAR_LIMIT, account="claude-1", window="five_hour", usedPercent=92, resetsAt="20:00")
    others = [
        event(ev.NEAR_LIMIT, "b", account="claude-1", window="five_hour", usedPercent=95, resetsAt="20:00"),
        event(ev.NEAR_LIMIT, "b", account="claude-1", window="seven_day", usedPercent=91, resetsAt="Monday"),
    ]
    assert texts([near, *others]) == [
        "a: 92 % of the usage window five_hour is used up",
        "b: 91 % of the usage window seven_day is used up",
    ]


@given(
    st.lists(
        st.builds(
            event,
            st.sampled_from([*ENDS, ev.QUEUED, ev.ASKED, ev.BLOCKED, ev.RESUMED, ev.ANSWERED, ev.NEAR_LIMIT]),
            st.sampled_from([*NAMES, "../x", "\x1b", None]),
            id=st.sampled_from(["q1", "q2"]),
            question=st.one_of(st.none(), st.text(), st.integers()),
            reason=st.one_of(st.none(), st.text()),
            exitCode=st.one_of(st.none(), st.integers(), st.text()),
            usedPercent=st.one_of(st.floats(), st.text()),
        ),
        max_size=30,
    ),
    st.integers(0, 30),
)
def test_whatever_a_log_says_notices_are_clean_bounded_and_keep_their_keys(events: list[ev.Event], cut: int) -> None:
    whole, step_by_step = told(events), TaskNotices("t")
    rows = list(enumerate(events, 1))
    step_by_step.apply(rows[:cut])
    step_by_step.apply(rows[cut:])
    notices = of_tree([whole])
    assert notices == of_tree([step_by_step]), "however often somebody looks"
    assert len({one.key for one in notices}) == len(notices)
    for one in notices:
        assert one.kind in KINDS
        assert len(one.text) < 400
        assert plain(one.text) == one.text
        json.dumps(message_about([one], "title").body).encode()
    for name in NAMES:
        queued = [at for at, one in rows if one["type"] == ev.QUEUED and one.get("agentInstance") == name]
        ended = [at for at, one in rows if one["type"] in ENDS and one.get("agentInstance") == name]
        is_live = bool(queued) and max(queued) > max(ended, default=0)
        assert (name in whole.live) == is_live


# -- in which words ----------------------------------------------------------------------------------------------------


@given(st.text(), st.integers(10, 300))
def test_a_text_is_one_line_of_bounded_length_that_no_terminal_obeys(text: str, longest: int) -> None:
    shown = clean(text, longest)
    assert len(shown) <= longest
    assert "\n" not in shown
    assert not any(ord(one) < 0x20 or 0x7F <= ord(one) < 0xA0 or 0xD800 <= ord(one) < 0xE000 for one in shown)


SECRETS = [
    "sk-ant-api03-abcdefghijkl", "ghp_0123456789abcdefABCD", "github_pat_11ABCDEFG0abc", "AKIAIOSFODNN7EXAMPLE",
    "xoxb-123456789012-abcdef", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig", "glpat-abcdef123456", "AIzaSyD-abcdef12345",
    "0123456789abcdef0123456789abcdef01234567", "wJalrXUtnFEMI7K7MDENGbPxRfiCYEXAMPLEKEY",
]  # fmt: skip


@given(
    st.sampled_from(SECRETS),
    st.text(string.ascii_lowercase + " ", max_size=300),
    st.sampled_from(
        ["{}", "token={}", "PASSWORD: {}", '"api_key": "{}"', "Authorization: Bearer {}", "https://me:{}@host/"]
    ),
    st.integers(20, 300),
)
def test_what_looks_like_a_secret_is_left_out(secret: str, before: str, form: str, longest: int) -> None:
    shown = clean(f"{before} {form.format(secret)} after", longest)
    for length in range(8, len(secret)):
        assert secret[:length] not in shown


@pytest.mark.parametrize("text", ["password: hunter2", "MY_TOKEN=x1", "client_secret = 'abc'", "Cookie: a=b"])
def test_a_short_secret_is_left_out_by_its_name(text: str) -> None:
    assert clean(text, 200) == LEFT_OUT


@given(
    st.text(string.ascii_letters + string.digits + "!#$%&*+,./<>?^_~-", min_size=3, max_size=20),
    st.sampled_from(
        [
            "mysql --password {}", "mysql --db-password {}", "x --api-key {}", "x -pass {}", "DB_PASS={}",
            "db_pass: {}", "pwd={}", "pw={}", "DB_PW={}", "user: me, pass: {}", "{{pass: {}}}",
            "The password is {}", "token is now {}", "the password was set to {}", "password := {}",
            "password => {}", "curl -u me:{} host", "curl --user=me:{}", "https://me:{}@host/x",
            "https://me:a/{}@host/x", "https://me:a@{}@host/x", "redis://:{}@host", 'PASSWORD="two {}"',
            "PASSWORD='two {} more'", '{{"secret": "two {}"}}',
        ]
    ),
)  # fmt: skip
def test_a_secret_is_left_out_in_whatever_form_it_is_given(secret: str, form: str) -> None:
    secret = f"7{secret}7"
    shown = clean(f"Run {form.format(secret)} now?", 300)
    assert secret not in shown
    assert shown.startswith("Run ")


@example("A", "0z7")
@given(st.text(string.ascii_letters, min_size=1), st.text(string.printable, min_size=1))
def test_what_http_calls_basic_is_left_out(user: str, password: str) -> None:
    encoded = base64.b64encode(f"{user}:{password}0".encode()).decode()
    is_mixed = any(map(str.islower, encoded)) and any(map(str.isupper, encoded[1:]))
    assume(is_mixed or "=" in encoded or any(map(str.isdigit, encoded)))  # Else it could be a word.
    assert encoded.rstrip("=") not in clean(f"Send Basic {encoded} now?", 400)


WORDS = [
    "the", "password", "reset", "page", "pass", "tests", "secret", "of", "basic", "auth", "authentication",
    "user", "token", "budget", "compass", "bypass", "pwd", "u", "--force", "passes", "passed", "passing",
    "tokens", "secrets", "credentials", "cookies", "keyboard", "to", "and", "with", "3", "v1.2", "src/pass.py?",
    "me@example.org",
]  # fmt: skip


@given(st.lists(st.sampled_from(WORDS), max_size=30))
def test_a_sentence_about_secrets_without_any_stays_readable(words: list[str]) -> None:
    text = " ".join(words)
    assert clean(text, 400) == text


@pytest.mark.parametrize(
    "text",
    ["Which token budget do you want?", "Deploy v1.2.3 to staging-eu-west-1?", "Delete src/agentctl/domain/notices.py?",
     "Ask the author: Bob", "Is commit bd606a2 right?", "Shall I change the password reset page?",
     "Do the tests pass: yes or no?", "The token is expired. Renew it?", "The password is not set: go on?",
     "Is Basic authentication enough?", "See http://127.0.0.1:8000/docs?", "Use git@host:me/x.git or https://host/x?",
     "Start it with --no-password --force?", "The pass rate is 3:1, go on?"],
)  # fmt: skip
def test_a_plain_question_is_told_as_it_is(text: str) -> None:
    assert clean(text, 200) == text


def test_a_megabyte_is_looked_at_in_no_time_and_a_cut_word_is_not_told() -> None:
    assert clean("x" * 1_000_000, 200) == LEFT_OUT
    assert clean("\n" * 500_000 + "Go?\n" + "y" * 500_000, 200) == "Go?"
    assert "ghp_01" not in clean("a " * 197 + "ghp_0123456789abcdef", 400)


def test_many_notices_make_one_message_that_names_each() -> None:
    notices = [Notice(f"t:{seq}", "failed", "t", "2026", f"w{seq} failed") for seq in range(1, 21)]
    message = message_about(notices, "A \x1b title", repeated=True)
    assert message.body["ids"] == [one.key for one in notices]
    assert message.text.splitlines()[0] == "(repeated) 20 notices: 20 failed"
    assert message.text.splitlines()[-1] == "and 15 more"
    assert message.title == "agentctl: A \\x1b title"
    assert message.body["repeated"]


# -- when and where ----------------------------------------------------------------------------------------------------


@given(st.integers(0, 1439), st.integers(0, 1439), st.integers(0, 1439))
def test_quiet_hours_cover_their_minutes(begin: int, end: int, minute: int) -> None:
    covered = minute in ({*range(begin, end)} if begin <= end else {*range(begin, 1440), *range(end)})
    assert QuietHours(begin, end).covers(minute) == covered


@pytest.mark.parametrize("text", ["", "22-7", "24:00-07:00", "22:60-07:00", "22:00", "07:00-07:00", 22, None])
def test_other_quiet_hours_are_refused(text: object) -> None:
    with pytest.raises(ValueError, match="quiet"):
        parse_quiet(text)


def test_a_later_level_overrides_an_earlier_one() -> None:
    defined = {name: NoticeTarget(name, "ntfy") for name in ("one", "two")}
    levels = [
        ("always", [Naming("one"), Naming("two"), Naming("gone")], frozenset[str]()),
        ("root", [Naming("two", ("failed",))], frozenset({"one"})),
        ("task", [Naming("one", ("blocked",))], frozenset({"two"})),
    ]
    found = applied(defined, levels)
    assert [(one.target.name, one.by, one.target.events) for one in found] == [("one", "task", ("blocked",))]


@given(st.recursive(st.none() | st.booleans() | st.text() | st.integers(), lambda one: st.lists(one, max_size=3)))
def test_whatever_is_named_is_read_or_refused(value: Any) -> None:
    try:
        namings = parse_namings(value)
    except ValueError:
        return
    assert parse_namings([str(one) for one in namings]) == namings


CONFIG = """
notify:
  hosts: [ntfy.sh, 127.0.0.1]
  targets:
    phone: {type: ntfy, url: "https://ntfy.sh/mine", token: tk}
    desk: {type: command, command: [notify-send, agentctl], events: [failed]}
    local: {type: webhook, url: "http://127.0.0.1:8000/x"}
    here: {type: terminal, ways: [bell, osc9]}
  always: [phone, "desk:failed"]
  quiet: "22:00-07:00"
"""


def document(text: str) -> Document:
    return parse_yaml(Path("config.yaml"), text.encode())


def test_a_configuration_is_read() -> None:
    found = read_notify(document(CONFIG))
    assert found.targets["phone"] == NoticeTarget("phone", "ntfy", url="https://ntfy.sh/mine", token="tk")
    assert found.targets["desk"].argv == ("notify-send", "agentctl")
    assert [str(one) for one in found.always] == ["phone", "desk:failed"]
    assert found.quiet == QuietHours(1320, 420)


@pytest.mark.parametrize(
    ("before", "after", "line", "problem"),
    [
        ("https://ntfy.sh/mine", "http://ntfy.sh/mine", 5, "https"),
        ("https://ntfy.sh/mine", "https://evil.example/mine", 5, "evil.example is not in `hosts`"),
        ("https://ntfy.sh/mine", "https://ntfy.sh@evil.example/mine", 5, "url must be of the form"),
        ("https://ntfy.sh/mine", "https://ntfy.sh", 5, "topic"),
        ("https://ntfy.sh/mine", "file:///etc/passwd", 5, "https://HOST/PATH"),
        ("token: tk", 'token: "t\\r\\nHost: x"', 5, "token"),
        ("[notify-send, agentctl]", "notify-send", 6, "command must be a list"),
        ("[notify-send, agentctl]", "[./notify-send]", 6, "a name or an absolute path"),
        ("events: [failed]", "events: [everything]", 6, "everything"),
        ("events: [failed]", "event: [failed]", 6, "unknown key 'event'"),
        ("type: terminal", "type: carrier-pigeon", 8, "the type of target here"),
        ("[bell, osc9]", "[siren]", 8, "ways"),
        ('[phone, "desk:failed"]', "[phone, nobody]", 9, "nobody"),
        ("22:00-07:00", "at night", 10, "quiet"),
        ("hosts:", "host:", 3, "unknown key 'host'"),
    ],
)  # fmt: skip
def test_an_error_names_file_line_and_key(before: str, after: str, line: int, problem: str) -> None:
    assert before in CONFIG
    with pytest.raises(UsageError) as caught:
        read_notify(document(CONFIG.replace(before, after, 1)))
    assert caught.value.message.startswith(f"config.yaml:{line}: ")
    assert problem in caught.value.message


def test_a_task_only_names_targets() -> None:
    assert read_namings(document("config: {notify: [phone, 'desk:failed']}")) == (
        Naming("phone"),
        Naming("desk", ("failed",)),
    )
    with pytest.raises(UsageError, match=r"config.yaml:1: .*must be the name of a target"):
        read_namings(document("config: {notify: [{type: command, command: [evil]}]}"))
    with pytest.raises(UsageError, match="must be a list of names"):
        read_namings(document("config: {notify: {evil: {url: 'https://evil.example'}}}"))


# -- the book ----------------------------------------------------------------------------------------------------------


def test_a_claim_of_a_process_that_is_gone_is_claimed_again_and_repeated(tmp_path: Path) -> None:
    file = FilePath(tmp_path / "notices.jsonl")
    me = processes.identify(os.getppid())
    assert me is not None
    book = Book(file)
    assert book.claim("phone", ["t:1", "t:2"], me) == (["t:1", "t:2"], False)
    book.note("phone", ["t:2"], SENT)
    assert Book(file).claim("phone", ["t:1", "t:2"], None).keys == [], "its holder lives"
    gone = me._replace(start=me.start + 1)
    other = FilePath(tmp_path / "other.jsonl")
    Book(other).claim("phone", ["t:1"], gone)
    assert Book(other).claim("phone", ["t:1"], me) == (["t:1"], True)
    assert Book(other).claim("desk", ["t:1"], me) == (["t:1"], False), "each target for itself"


@pytest.mark.parametrize(
    ("steps", "is_repeated"),
    [
        ("refused", False), ("refused refused", False),
        ("died", True), ("died refused", True), ("refused died", True), ("died refused refused", True),
        ("timeout", True), ("timeout refused", True), ("refused timeout refused", True),
    ],
)  # fmt: skip
def test_what_may_have_arrived_once_is_repeated_whatever_came_after_it(
    tmp_path: Path, steps: str, is_repeated: bool
) -> None:
    file = FilePath(tmp_path / "notices.jsonl")
    me = processes.identify(os.getpid())
    assert me is not None
    for step in steps.split():
        Book(file).claim("phone", ["t:1"], me._replace(start=me.start + 1) if step == "died" else me)
        if step != "died":  # A refused connection fails for sure.
            Book(file).note("phone", ["t:1"], FAILED, maybe=step == "timeout")
    assert Book(file).claim("phone", ["t:1"], me) == (["t:1"], is_repeated)


@given(
    st.lists(
        st.binary(max_size=40)
        | st.builds(
            lambda step, keys: json.dumps({"target": "phone", "keys": keys, "step": step, "at": "x"}).encode(),
            st.sampled_from([CLAIMED, FAILED, SENT, "x"]),
            st.lists(st.sampled_from(["t:1", "t:2"])) | st.text(max_size=2) | st.integers(),
        )
    )
)
def test_a_book_passes_over_what_is_no_step_and_done_stays_done(lines: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "notices.jsonl"
        book, done = Book(FilePath(file)), set[tuple[str, str]]()
        for number in range(len(lines) + 1):
            file.write_bytes(b"".join(line.replace(b"\n", b" ") + b"\n" for line in lines[:number]))
            book.refresh()
            now = {key for key, step in book.steps.items() if step.what in DONE}
            assert done <= now
            done = now
        fresh = Book(FilePath(file))
        fresh.refresh()
        assert fresh.steps == book.steps


def test_a_work_that_was_redone_counts_once_and_as_it_ended_last() -> None:
    redone = [
        event(ev.QUEUED), event(ev.FAILED, reason="exit_code"), event(ev.QUEUED, "a-2", retryOf="a"),
        event(ev.COMPLETED, "a-2"), event(ev.QUEUED, "a-3", continues="a-2"), event(ev.FAILED, "a-3"),
        event(ev.QUEUED, "b"), event(ev.COMPLETED, "b"),
    ]  # fmt: skip
    over = [all_ended([told(redone[:until])]) for until in (2, 4, 6, 8)]
    assert [notice.text if notice else None for notice in over] == [
        "the only worker has ended: 1 failed",
        "the only worker has ended: 1 completed",
        "the only worker has ended: 1 failed",
        "all 2 workers have ended: 1 completed, 1 failed",
    ]

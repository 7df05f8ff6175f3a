"""At stake: what a consumer was given is recorded as ranges; a range that is too wide would lose an end for ever."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agentctl.adapters.treedir import tree_at
from agentctl.domain.states import Status
from agentctl.domain.worker.projection import Deliverable
from agentctl.operations.wait.cursor import Cursor, _is_done, _with

SEQS = st.lists(st.integers(1, 60), unique=True, max_size=20)


def ends(*seqs: int) -> list[Deliverable]:
    return [Deliverable(seq, f"a{seq}", Status.COMPLETED) for seq in seqs]


@given(SEQS, st.data())
def test_ranges_hold_what_was_given_and_nothing_else_that_could_be(seqs: list[int], data: st.DataObject) -> None:
    """Marks come in any order, each from a waiter that has read the log up to a different point."""
    order = sorted(seqs)
    given_out = data.draw(st.lists(st.sampled_from(order), unique=True)) if order else []
    ranges: list[list[int]] = []
    for seq in given_out:
        read_to = data.draw(st.integers(seq, 60))
        ranges = _with(ranges, seq, [one for one in order if one <= read_to])
        assert ranges == sorted(ranges)
    assert [seq for seq in order if _is_done(ranges, seq)] == sorted(given_out)


@given(SEQS)
def test_a_consumer_that_was_given_everything_needs_one_range(seqs: list[int]) -> None:
    ranges: list[list[int]] = []
    for seq in seqs:
        ranges = _with(ranges, seq, sorted(seqs))
    assert ranges == ([[min(seqs), max(seqs)]] if seqs else [])


def test_a_slow_waiters_mark_does_not_forget_what_a_faster_one_was_given(tmp_path: Path) -> None:
    for name in ("cursors", "agents"):
        (tmp_path / "tasks" / "t" / name).mkdir(parents=True)
    tree = tree_at(str(tmp_path / "tasks" / "t"))
    slow, fast = (Cursor(tree, "t", "default") for _ in range(2))
    early = slow.claim(ends(5))
    late = fast.claim(ends(5, 20))
    assert early is not None
    assert late is not None
    assert late.deliverable.seq == 20
    fast.mark(late, ends(5, 20))
    slow.mark(early, ends(5))
    assert slow.claim(ends(5, 20)) is None
    assert fast.undelivered(ends(5, 20, 30)) == ends(30)


def test_an_end_between_two_that_were_given_is_still_given(tmp_path: Path) -> None:
    (tmp_path / "cursors").mkdir()
    cursor = Cursor(tree_at(str(tmp_path)), "t", "default")
    for known, chosen in ((ends(3), 0), (ends(3, 9, 12), 2)):
        claim = cursor.claim(known[chosen:])
        assert claim is not None
        cursor.mark(claim, known)
    assert cursor.undelivered(ends(3, 9, 12)) == ends(9)

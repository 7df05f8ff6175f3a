"""At stake: a picture of a timeline is well-formed, harmless and readable, whatever the log and the title say."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentctl.domain.states import Status
from agentctl.domain.timeline.critical_path import critical_path
from agentctl.domain.timeline.timeline import Bar, Piece, Shade, in_order
from agentctl.domain.timeline.timescale import scale_of
from agentctl.domain.tree.budget import Spent
from agentctl.interfaces.words.timeline import cut_line, mark_texts, timeline_lines
from agentctl.interfaces.words.timeline_html import html_of
from agentctl.interfaces.words.timeline_svg import _DARK, _LIGHT, MOST_ROWS, WIDTH, svg_of
from agentctl.operations.show.timeline import Timeline, TimelineRow
from tests.support import REPOSITORY

NS = "{http://www.w3.org/2000/svg}"
HOSTILE = (
    '"><script>alert(1)</script>', "</title></svg><img src=x onerror=alert(1)>", "]]>&lt;&#0;&x;", "\x1b[31m\x00\x07",
    "\ud83d half", "\ufffe\uffff", "a\u202eb\u2066", "'\"`${x}", "<!--", "x" * 10_000, "\N{GRINNING FACE}" * 50,
    "url(https://example.org/x)", "javascript:alert(1)",
)  # fmt: skip
TEXTS = st.sampled_from(HOSTILE) | st.text(max_size=30)
#: All that a picture is made of, and the attributes that each may have.
ALLOWED = {
    "svg": {"viewBox", "width", "height", "role", "aria-labelledby"}, "title": {"id"}, "desc": {"id"}, "style": set(),
    "g": set(), "path": {"d", "class"}, "rect": {"x", "y", "width", "height", "rx", "class"},
    "text": {"x", "y", "class", "font-size", "font-weight"},
}  # fmt: skip
PAGE = {"html", "head", "meta", "body", "main", "details", "summary", "table", "tr", "th", "td", "p"}
SHADES = {shade.value for shade in Shade}
T0 = 1.79e9


def timeline_of(bars: Sequence[Bar], title: str = "A task", spent: Spent | None = None) -> Timeline:
    path = critical_path(bars)
    critical = {one.bar for one in path}
    used = spent or Spent()
    rows = [TimelineRow(bar, used, bar.id in critical) for bar in in_order(bars)]
    began, until = min((bar.began for bar in bars), default=T0), max((bar.until for bar in bars), default=T0)
    return Timeline("t", title, rows, path, began, until, [], [])


def bar_of(
    name: str, times: Sequence[float], *, task: str = "t", status: Status = Status.COMPLETED, **changes: Any
) -> Bar:
    """Return a bar with a piece of each shade in turn between the times."""
    shades = [Shade.QUEUED, Shade.RUNNING, Shade.BLOCKED, Shade.PARKED, Shade.RUNNING]
    instants = [T0 + at for at in times]
    pieces = tuple(
        Piece(shades[n % 5], began, until, 1 + n // 4) for n, (began, until) in enumerate(pairwise(instants))
    )
    bar = Bar((task, name), "command", None, "true", status, None, None, (), pieces, instants[0], instants[-1],
              status is Status.RUNNING, None)  # fmt: skip
    return bar._replace(**changes)


BARS = st.lists(
    st.builds(
        lambda times, status, command, reason, parent, after: (sorted(times), status, command, reason, parent, after),
        st.lists(st.integers(0, 90_000).map(float), min_size=2, max_size=12), st.sampled_from(Status), TEXTS,
        st.none() | TEXTS, st.integers(0, 9), st.lists(st.integers(0, 9), max_size=4),
    ),
    max_size=12,
).map(
    lambda drawn: [
        bar_of(f"w{n}", times, status=status, command=command, reason=reason, parent=("t", f"w{parent}"),
               after=tuple(("t", f"w{one}") for one in after))
        for n, (times, status, command, reason, parent, after) in enumerate(drawn)
    ]
)  # fmt: skip


def parsed(svg: str) -> ET.Element:
    svg.encode()
    return ET.fromstring(svg)


def boxes(tree: ET.Element) -> Iterator[tuple[str, float, float, float, float]]:
    for rect in tree.iter(f"{NS}rect"):
        x, y, width, height = (float(rect.attrib[key]) for key in ("x", "y", "width", "height"))
        yield rect.attrib["class"], x, y, width, height


def assert_harmless(tree: ET.Element) -> None:
    for element in tree.iter():
        kind = element.tag.removeprefix(NS)
        assert set(element.attrib) <= ALLOWED[kind], kind
    style = "".join(element.text or "" for element in tree.iter(f"{NS}style"))
    assert not re.search(r"url|@import|expression|<", style)


@settings(max_examples=30)
@given(BARS, TEXTS)
def test_a_picture_is_well_formed_and_has_only_text_of_others(bars: list[Bar], title: str) -> None:
    timeline = timeline_of(bars, title, Spent(5, 5, cost_usd=0.5))
    tree = parsed(svg_of(timeline))
    assert_harmless(tree)
    page = html_of(timeline)
    page.encode()
    body = page.partition("\n")[2]  # All of it but the doctype is XML, once its empty elements are closed.
    top = ET.fromstring(re.sub(r"(<meta [^<]*?)>", r"\1/>", body))
    kinds = {element.tag.removeprefix(NS) for element in top.iter()}
    assert kinds <= {*ALLOWED, *PAGE}
    assert not {name for element in top.iter() for name in element.attrib if name.startswith("on") or "href" in name}


@settings(max_examples=30)
@given(BARS, TEXTS)
def test_everything_is_inside_and_no_bar_overlaps_another_of_its_row(bars: list[Bar], title: str) -> None:
    tree = parsed(svg_of(timeline_of(bars, title)))
    _, _, width, height = map(float, tree.attrib["viewBox"].split())
    assert width == WIDTH
    for _, x, y, wide, high in boxes(tree):
        assert x >= -0.1
        assert x + wide <= width + 0.1
        assert y >= -0.1
        assert y + high <= height + 0.1
    for text in tree.iter(f"{NS}text"):
        assert 0 <= float(text.attrib["x"]) <= width
        assert 0 < float(text.attrib["y"]) < height
    rows = list(tree.iter(f"{NS}g"))
    assert len(rows) == len(bars)
    for group in rows:
        pieces = sorted((x, x + wide) for look, x, _, wide, _ in boxes(group) if look in SHADES)
        assert all(end <= begin + 0.05 for (_, end), (begin, _) in pairwise(pieces))
        assert pieces


def test_each_row_says_who_how_long_and_how_much() -> None:
    bars = [bar_of("build", [0, 1, 62]), bar_of("sub", [3, 4, 5], task="below", status=Status.FAILED, reason="lost")]
    rows = list(parsed(svg_of(timeline_of(bars, spent=Spent(1200, 34, 5, 0.25)))).iter(f"{NS}g"))
    texts = [[text.text for text in row.iter(f"{NS}text")] for row in rows]
    assert texts == [["build", "1m01s", "1.2k", "$0.25"], ["below/sub", "1.0s", "1.2k", "$0.25"]]
    tips = [row.findtext(f"{NS}title") or "" for row in rows]
    assert "queued 1.0s" in tips[0]
    assert "failed (lost)" in tips[1]


def test_a_retry_is_a_further_piece_of_the_same_bar_and_the_path_is_outlined() -> None:
    pieces = tuple(Piece(Shade.RUNNING, T0 + at, T0 + at + 3, n) for n, at in enumerate((0, 5, 10), 1))
    tree = parsed(svg_of(timeline_of([bar_of("w", [0, 13], pieces=pieces)])))
    (row,) = tree.iter(f"{NS}g")
    assert [text.text for text in row.iter(f"{NS}text")] == ["w", "2", "3", "13.0s"]
    assert len([look for look, *_ in boxes(row) if look == "running"]) == 3
    outlines = [box for box in boxes(tree) if box[0] == "critical"]
    assert len(outlines) == 2, "one in the legend, one around the bar"


def test_of_too_many_rows_those_of_the_path_are_drawn_and_the_others_counted() -> None:
    bars = [bar_of(f"w{n}", [0, 0.1, 5 if n == MOST_ROWS + 499 else 1]) for n in range(MOST_ROWS + 500)]
    timeline = timeline_of(bars)
    svg = svg_of(timeline)
    rows = list(parsed(svg).iter(f"{NS}g"))
    assert len(rows) == MOST_ROWS
    assert rows[-1].findtext(f"{NS}text") == f"w{MOST_ROWS + 499}"
    assert "500 more workers are not drawn" in svg
    assert "500 more workers are left out" in html_of(timeline)


@pytest.mark.slow
def test_a_log_that_was_written_to_be_large_makes_no_large_picture() -> None:
    """Each of 2,000 workers asked 250 times and waited for all others."""
    every = tuple(("t", f"w{n}") for n in range(MOST_ROWS))
    times = [0.0, *range(500), 2000.0]
    first = bar_of("w0", times, command="<" * 200)
    bars = [first._replace(id=one, after=every) for one in every]
    assert len(svg_of(timeline_of(bars, "&" * 100_000))) < 8_000_000


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        (3.2, ["0", "0.5s", "1.0s", "1.5s", "2.0s", "2.5s", "3.0s"]),
        (400, ["0", "1m", "2m", "3m", "4m", "5m", "6m"]),
        (3 * 3600, ["10:00", "10:30", "11:00", "11:30", "12:00", "12:30"]),
        (3 * 86_400, ["12:00", "Sun 22 Nov", "12:00", "Mon 23 Nov", "12:00", "Tue 24 Nov"]),
        (40 * 86_400, ["Mon 23 Nov", "Thu 03 Dec", "Sun 13 Dec", "Wed 23 Dec"]),
        (3000 * 86_400, ["Jul 2027", "Nov 2028", "Mar 2030", "Aug 2031", "Dec 2032", "May 2034"]),
    ],
)
def test_the_scale_reads_from_seconds_to_years(
    span: float, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentctl.interfaces.words.timeline.local", in_utc)
    began = 1_795_254_720.0  # Sat 21 Nov 2026, 09:52 UTC
    assert mark_texts(scale_of(began, began + span, 7), began) == expected


def in_utc(at: float, form: str) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(at, UTC).strftime(form)


@given(BARS, TEXTS, st.integers(40, 200), st.booleans())
def test_the_picture_for_a_terminal_fits_and_obeys_nothing(
    bars: list[Bar], title: str, width: int, blocks: bool
) -> None:
    drawn = timeline_lines(timeline_of(bars, title), width, blocks=blocks)
    lines = ["".join(text for text, _ in line) for line in drawn]
    assert all(len(line) <= width for line in lines if "critical path" not in line)
    assert not any(character < " " or "\x7f" <= character < "\xa0" for line in lines for character in line)
    if not blocks:
        assert all(line.isascii() for line in lines[1:])
    assert len(lines) == (2 if not bars else 7 + len(bars))


def test_a_terminal_shows_the_pieces_and_marks_the_path() -> None:
    bars = [bar_of("a", [0, 10, 20, 30, 40]), bar_of("b", [0, 30], pieces=(Piece(Shade.QUEUED, T0, T0 + 30, 1),))]
    drawn = ["".join(text for text, _ in line) for line in timeline_lines(timeline_of(bars), 80, blocks=False)]
    a, b = drawn[5:7]
    assert re.search(r"^a \* -+#+\?+\.+ ", a)
    assert re.search(r"^b {3}-+ ", b)


@given(TEXTS, st.integers(1, 50))
def test_a_cut_text_is_one_safe_line(text: str, longest: int) -> None:
    shown = cut_line(text, longest)
    shown.encode()
    assert len(shown) <= longest
    assert shown.isprintable() or not any(one < " " for one in shown)


def test_the_picture_in_the_documents_is_one_of_this_code() -> None:
    """`python docs/pictures/timeline.py` makes it again. Whose machine it was made on is not in it."""
    text = (REPOSITORY / "docs" / "pictures" / "timeline.svg").read_text(encoding="utf-8")
    tree = parsed(text)
    assert_harmless(tree)
    empty = parsed(svg_of(timeline_of([])))
    assert tree.findtext(f"{NS}style") == empty.findtext(f"{NS}style")
    assert {look for look, *_ in boxes(tree)} == {"page", "critical", "rim", *SHADES}
    assert not re.search(r"/(tmp|home|root|usr)/", text)


def luminance(look: str) -> float:
    parts = [int(look[-6:][n : n + 2], 16) / 255 for n in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("looks", [_LIGHT, _DARK], ids=["light", "dark"])
def test_text_can_be_read_and_shades_differ_in_grey(looks: dict[str, str]) -> None:
    """The figures of WCAG 2.2: 4.5 for text, 3 for what is not; shades that are alike in grey differ in height."""
    assert set(_LIGHT) == set(_DARK)
    for text, ground in (("ink", "page"), ("dim", "page"), ("on", "running")):
        assert contrast(looks[text], looks[ground]) >= 4.5, text
    for sign in ("running", "critical", "bad", "end", "rim"):
        assert contrast(looks[sign], looks["page"]) >= 3, sign
    for one, other in (("running", "blocked"), ("running", "parked"), ("parked", "blocked"), ("running", "queued")):
        assert contrast(looks[one], looks[other]) >= 1.3, (one, other)

"""At stake: what an engine has said reaches each launch as it was said, whatever is in the file."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentctl.adapters.paths import FilePath
from agentctl.domain.worker.sightings import EngineState, Sighting
from agentctl.supervision.worker.engine_answers import answer_in, answered_at, as_lines

IDS = st.text("0123456789abcdef", min_size=16, max_size=16)
SEEN = st.builds(Sighting, st.sampled_from(EngineState), st.text(), st.text(), st.text(), st.text())
TIMES = st.floats(0.001, 1e9)
any_files = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@any_files
@given(at=TIMES, problem=st.text(max_size=2000), launches=st.dictionaries(IDS, SEEN, min_size=1, max_size=5))
def test_each_launch_has_its_own_answer(tmp_path: Path, at: float, problem: str, launches: dict[str, Sighting]) -> None:
    file, data = FilePath(str(tmp_path / "answers")), as_lines(at, problem, launches)
    (tmp_path / "answers").write_bytes(data)
    assert answered_at(file) == at
    for name, seen in launches.items():
        answer = answer_in(data, name)
        assert (answer.at, answer.problem) == (at, problem[:500])
        assert answer.seen == (Sighting(EngineState.UNKNOWN, reason=problem[:500]) if problem else seen)


@any_files
@given(at=TIMES, problem=st.integers(500, 3000).map("\U0001f600".__mul__))
def test_when_it_was_asked_is_known_however_long_it_complains(tmp_path: Path, at: float, problem: str) -> None:
    (tmp_path / "answers").write_bytes(as_lines(at, problem, {}))
    assert answered_at(FilePath(str(tmp_path / "answers"))) == at


@any_files
@given(data=st.one_of(st.binary(), st.from_regex(rb"\{.*\}\n\[\"0123456789abcdef\", .*\]\n")))
def test_a_damaged_file_is_no_answer(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "answers").write_bytes(data)
    assert isinstance(answered_at(FilePath(str(tmp_path / "answers"))), float)
    assert isinstance(answer_in(data, "0123456789abcdef").at, float)

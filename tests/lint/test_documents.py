"""Checks that the documents name exactly the limits, reasons, events, files, fields and decisions that there are."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import get_type_hints

import pytest

import agentctl
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import Root, TaskDir, TreeDir, WorkerDir
from agentctl.adapters.taskyaml.reader import OTHER_KEYS
from agentctl.domain import events
from agentctl.domain.documents.workers.worker import WorkerRow
from agentctl.domain.states import Reason
from agentctl.domain.tree.limits import GIB, KEYS, Limits
from agentctl.domain.worker.projection import WorkerView
from agentctl.interfaces.web.document_schemas import schemas_of
from agentctl.operations.show.listing import row_of
from agentctl.supervision.account.waiters import Awaited
from agentctl.supervision.worker.spec import WorkerSpec
from tests import commands_page, man_pages
from tests.modules_page import missing, page
from tests.support import REPOSITORY

DOCS = REPOSITORY / "docs"
FORMATS = (DOCS / "file-formats.md").read_text(encoding="utf-8")
JSON = (DOCS / "json.md").read_text(encoding="utf-8")
INDEX = (DOCS / "decisions/README.md").read_text(encoding="utf-8")
#: Documented files without a fixed name: the end of each retried attempt, and files that were set aside.
NUMBERED = {"exit.1.json", "*.damaged"}
#: A module or a folder of them, as the documents name it: by its path below `agentctl/`.
MODULE = re.compile(
    r"`((?:interfaces|worker_programs|tools|operations|drivers|runners|shim|supervision|adapters|domain)/[\w/]+(?:\.py|/))`"
)

PAGES = man_pages.pages()
#: The sections of a manual page, in their order.
SECTIONS = (
    "NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "ARGUMENTS", "OPTIONS", "ENVIRONMENT", "FILES", "EXAMPLES",
    "EXIT STATUS", "SEE ALSO",
)  # fmt: skip
#: What a manual page asks of roff, and how it writes a character or changes the font.
REQUEST = re.compile(r"\.(?:(?:TH|SH|SS) .+|TP|PP|RS 4|RE|nf|fi|br|nh|ad l)")
ESCAPE = re.compile(r"\\(?:[e&-]|f[BIR]|\((?:aq|ga|ha|ti|dq)|\[u[0-9A-F]{4,}\])")


def section(heading: str, text: str = FORMATS) -> str:
    """Return the text below a heading, up to the next heading of its level or above."""
    level, _, _ = heading.partition(" ")
    _, found, behind = text.partition(f"\n{heading}")
    assert found, f"no {heading!r}"
    return re.split(rf"^#{{1,{len(level)}}} ", behind, maxsplit=1, flags=re.MULTILINE)[0]


def code_in(text: str) -> list[str]:
    """Return the spans of text in code style."""
    return re.findall(r"`([^`]+)`", text)


def first_cells(text: str) -> str:
    """Return the first cells of a section's tables, one a line."""
    return "\n".join(re.findall(r"^\| (.+?) \|", text, flags=re.MULTILINE))


def names_of(folder: type[Root | TaskDir | WorkerDir]) -> set[str]:
    return {Path(path).name for path, _ in folder("/nowhere").entries()}


def documented_files(part: str) -> set[str]:
    """Return the files and folders that the headings of a section name, and those in bold."""
    headings = re.findall(r"^### (.+)$", part, flags=re.MULTILINE)
    parts = {name for heading in headings for name in re.split(r", | and ", heading) if not name.startswith("Every")}
    names = {name.partition("/")[0] for name in parts} | set(re.findall(r"\*\*`([\w.]+)`\*\*", part))
    return names - NUMBERED - {"..."}


def test_a_row_of_list_has_the_keys_of_its_type_and_json_md_names_them() -> None:
    assert get_type_hints(WorkerRow)["depth"] is int, "a program may ask for the types"
    declared = schemas_of({"": WorkerRow})[1]["WorkerRow"]["required"]
    row = row_of(Root("/nowhere/.agentctl").task("t1"), WorkerView("w"), None, Awaited(FilePath("/nowhere")), 0)
    assert set(row) == set(declared)
    table = re.search(r"\nA row of `list`:\n(.+?)\n\n[A-Z]", JSON, flags=re.DOTALL)
    assert table
    assert set(code_in(first_cells(table[1]))) - {"key"} == set(declared)


def test_every_limit_is_a_row_and_no_row_is_an_old_one() -> None:
    documented = set(re.findall(r"`config\.(\w+)`", FORMATS)) - {"json", "yaml"}
    assert documented == set(KEYS.values()) | set(OTHER_KEYS)


def test_every_limit_stands_beside_its_default() -> None:
    rows = re.findall(r"^\| (`config\..+?) \|.*\| (.+?) \|$", section("### task.yaml"), flags=re.MULTILINE)
    told: dict[str, float] = {}
    for cell, default in rows:
        names = [name.removeprefix("config.") for name in code_in(cell)]
        numbers = [GIB if text == "1 GiB" else text.split(" ")[0] for text in default.split(", ")]
        told |= {
            name: float(numbers[at] if len(numbers) > 1 else numbers[0])
            for at, name in enumerate(names) if name in KEYS.values()
        }  # fmt: skip
    assert told == Limits().to_json()


def test_the_examples_have_every_limit() -> None:
    comment = section("### task.yaml").partition("what is missing takes its default:")[2].partition("---")[0]
    assert set(re.findall(r"\w+", comment)) == set(KEYS.values()) | set(OTHER_KEYS)
    (config,) = re.findall(r'"config": (\{.+?\})', section("### config.json"), flags=re.DOTALL)
    assert json.loads(config).keys() == set(KEYS.values())


@pytest.mark.parametrize("text", [section("### exit.json"), JSON], ids=["file-formats.md", "json.md"])
def test_every_reason_is_named_and_no_old_one(text: str) -> None:
    (row,) = re.findall(r"^\| `reason` \|(.+)$", text, flags=re.MULTILINE)
    named = " ".join(span for span in code_in(row) if re.fullmatch(r"[a-z_ ]+", span)).split()
    assert set(named) - {"failed"} == {reason.value for reason in Reason}


def test_every_event_has_its_row_and_no_row_is_an_old_one() -> None:
    names = {
        value for name, value in vars(events).items() if name.isupper() and isinstance(value, str) and "." in value
    }
    assert len(names) > 15
    documented = re.findall(r"`([a-z]+\.[a-z_]+)`", first_cells(section("### events.jsonl")))
    assert sorted(documented) == sorted(names)


def test_every_file_of_a_root_is_named_and_no_old_one() -> None:
    cells = code_in(first_cells(section("## The root: `.agentctl/`")))
    assert {cell.partition("/")[0] for cell in cells} == names_of(Root)


@pytest.mark.parametrize(
    ("heading", "folder"), [("## A task: ", TreeDir), ("## A worker: ", WorkerDir)], ids=["task", "worker"]
)
def test_every_file_of_a_folder_is_named_and_no_old_one(heading: str, folder: type[TaskDir | WorkerDir]) -> None:
    below = {"agents"} if folder is TreeDir else set()  # It has a section of its own.
    assert documented_files(section(heading)) == names_of(folder) - below


def test_every_field_of_a_spec_is_named_and_no_old_one() -> None:
    fields = set(WorkerSpec(*WorkerSpec._fields).to_json())  # type: ignore[arg-type]
    assert len(fields) > 25
    assert set(code_in(first_cells(section("### spec.json")))) == fields


def test_every_decision_is_in_the_index_and_every_number_is_accounted_for() -> None:
    files = {path.name: path.read_text(encoding="utf-8") for path in (DOCS / "decisions").glob("0*.md")}
    rows = re.findall(r"^\| \[(\d+)\]\(([\w.-]+)\) \| (.+?) \|$", INDEX, flags=re.MULTILINE)
    assert {(int(number), name, title) for number, name, title in rows} == {
        (int(name[:4]), name, text.splitlines()[0].partition(". ")[2].replace("`", "")) for name, text in files.items()
    }
    numbers = [int(number) for number, _, _ in rows] + [
        int(n) for n in re.findall(r"^\| (\d+) \|", INDEX, re.MULTILINE)
    ]
    assert sorted(numbers) == list(range(1, max(numbers) + 1))


def test_what_is_looked_for_is_found() -> None:
    """The tests above would also pass if these searches found nothing."""
    assert documented_files("### a.json, b/NAME\n### c and d\n### Everything else\n**`e.f`**") == {
        "a.json", "b", "c", "d", "e.f"
    }  # fmt: skip
    assert section("## A", "\n## A\nx\n### B\ny\n## C\nz") == "\nx\n### B\ny\n"


def test_the_page_of_modules_is_that_of_the_code() -> None:
    assert (DOCS / "modules.md").read_text(encoding="utf-8") == page(), "python -m tests.modules_page > docs/modules.md"


def test_the_page_of_commands_is_that_of_the_code() -> None:
    said = (DOCS / "commands.md").read_text(encoding="utf-8")
    assert said == commands_page.page(), "python -m tests.commands_page > docs/commands.md"


def test_the_manual_pages_are_those_of_the_code() -> None:
    said = {file.name: file.read_text(encoding="utf-8") for file in man_pages.FOLDER.iterdir()}
    assert said == PAGES, "python -m tests.man_pages"


@pytest.mark.parametrize("name", PAGES)
def test_a_manual_page_is_right_roff(name: str) -> None:
    text = PAGES[name]
    lines = text.splitlines()
    assert text.isascii()
    assert [line for line in lines if not line or line != line.rstrip()] == []
    assert [line for line in lines if line.startswith("'") or (line[0] == "." and not REQUEST.fullmatch(line))] == []
    assert set(ESCAPE.sub("", text)) & set("\\-'`^~") == set(), "each means something else to roff"
    for begin, end in ((".nf", ".fi"), (".RS 4", ".RE")):
        assert [line for line in lines if line in {begin, end}] == [begin, end] * lines.count(end)
    assert all(line.count("\\fB") + line.count("\\fI") == line.count("\\fR") for line in lines)
    assert not any(line[0] == "." for tag, line in itertools.pairwise(lines) if tag == ".TP")


@pytest.mark.parametrize("name", PAGES)
def test_a_manual_page_has_what_man_and_whatis_look_for(name: str) -> None:
    title, *lines = PAGES[name].splitlines()
    words = name.removesuffix(".1")
    assert title == f'.TH "{man_pages.escaped(words.upper())}" "1" "" "agentctl {agentctl.__version__}" "agentctl"'
    sections = [line.removeprefix(".SH ").strip('"') for line in lines if line.startswith(".SH ")]
    assert sections == [one for one in SECTIONS if one in sections]
    assert {"NAME", "SYNOPSIS", "DESCRIPTION", "EXAMPLES", "EXIT STATUS", "SEE ALSO"} <= set(sections)
    assert lines[lines.index(".SH NAME") + 1].startswith(f"{man_pages.escaped(words)} \\- ")
    others = re.findall(r"\\fB(\S+?)\\fR\(1\)", PAGES[name])
    assert {f"{other}.1".replace("\\-", "-") for other in others} <= PAGES.keys()


def test_a_text_is_escaped_for_roff() -> None:
    assert man_pages.escaped("a-b\\n'é`") == "a\\-b\\en\\(aq\\[u00E9]\\(ga"
    assert man_pages._line(".agentctl, `x`") == "\\&.agentctl, \\fBx\\fR"


def test_groff_warns_of_no_manual_page() -> None:
    """Where there is no groff, the rules above are what is left."""
    assert _warnings_of_groff([man_pages.FOLDER / name for name in PAGES]) == ""


def _warnings_of_groff(files: list[Path]) -> str:
    groff = shutil.which("groff")
    if groff is None:
        return ""
    return subprocess.run([groff, "-man", "-ww", "-Tutf8", *files], capture_output=True, text=True, check=True).stderr


def test_a_wheel_and_a_source_distribution_have_the_manual_pages() -> None:
    """`tests/extras/printed.py` looks where they are installed."""
    targets = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"][
        "targets"
    ]
    assert targets["wheel"]["shared-data"] == {man_pages.FOLDER.name: "share/man/man1"}
    assert man_pages.FOLDER.name in targets["sdist"]["only-include"]


def test_the_page_of_modules_has_each_folder() -> None:
    assert missing() == set()


def test_every_module_says_what_it_decides() -> None:
    assert [row for row in page().splitlines() if re.fullmatch(r"\| `\w+` \|\s*\|", row)] == []


@pytest.mark.parametrize("page_of", ["first-change.md", "architecture.md", "file-formats.md"])
def test_each_module_that_a_document_names_is_there(page_of: str) -> None:
    named = set(MODULE.findall((DOCS / page_of).read_text(encoding="utf-8")))
    assert len(named) > 15
    assert [path for path in sorted(named) if not (REPOSITORY / "agentctl" / path).exists()] == []


@pytest.mark.parametrize("page_of", ["first-change.md", "architecture.md"])
def test_each_name_that_a_document_gives_beside_a_module_is_in_it(page_of: str) -> None:
    text = " ".join((DOCS / page_of).read_text(encoding="utf-8").split())
    named = re.findall(rf"{MODULE.pattern}, `(\w+)`", text)
    assert len(named) > 1
    sources = {path: (REPOSITORY / "agentctl" / path).read_text(encoding="utf-8") for path, _ in named}
    assert [(path, name) for path, name in named if not re.search(rf"\b{name}\b", sources[path])] == []


@pytest.mark.parametrize("part", ["## A task: ", "## A worker: "])
def test_each_file_leads_to_the_modules_that_write_and_read_it(part: str) -> None:
    headings = re.findall(r"^### (.+)$", section(part), flags=re.MULTILINE)
    assert len(headings) > 10
    named = [name for name in headings if name != "Everything else"]
    heads = [section(f"### {name}").strip().partition("\n\n")[0] for name in named]
    assert [name for name, head in zip(named, heads, strict=True) if not MODULE.search(head)] == []

"""The files of the page: libraries are what their list says, and everything that the page names is there."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from agentctl.interfaces.web.page_files import FOLDER, INDEX, PREFIX, shipped_files
from tests.page import bundle, scripts
from tests.page.bundle import AGAIN, is_current

VENDOR = FOLDER / "vendor"


def test_libraries_are_those_of_the_list() -> None:
    listed = dict(line.split()[::-1] for line in (VENDOR / "SHA256SUMS").read_text(encoding="ascii").splitlines())
    assert listed == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.iterdir() if path.name not in {"README.md", "SHA256SUMS"}
    }  # fmt: skip
    libraries = {"preact.js", "preact-hooks.js", "htm.js", "markdown-it.js"}
    assert libraries | {"LICENSE-preact", "LICENSE-htm", "LICENSE-markdown-it"} == listed.keys()


def test_what_the_page_loads_is_there_and_nothing_lies_elsewhere() -> None:
    files = shipped_files()
    for name, file in files.items():
        if name.startswith("vendor/") or not name.endswith((".html", ".js", ".css", ".webmanifest")):
            continue
        text = file.decode()
        for found in re.findall(
            r"""(?:from|import\(|import|href=|src=|"src":|"start_url":)\s*["']([./][^"'$]*)["']""", text
        ):
            path = found.removeprefix(PREFIX)
            if found.startswith("./"):
                path = (FOLDER / name).parent.joinpath(found).resolve().relative_to(FOLDER).as_posix()
            elif not found.startswith(PREFIX):
                continue  # A path of the page itself.
            assert path in files, f"{name} names {found}"
        assert not re.findall(r"""["'(]https?://(?!www\.w3\.org/)""", text), name


def test_its_one_script_is_made_of_its_modules() -> None:
    assert is_current(), f"a module of the page is newer than page.js: {AGAIN}"


def test_the_head_of_its_one_script_names_all_that_makes_it_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle, "FOLDER", tmp_path)
    module = tmp_path / "js" / "one.js"
    module.parent.mkdir()
    module.write_text("export {};\n", encoding="utf-8")
    heads = {bundle.head()}
    module = module.rename(tmp_path / "js" / "other.js")
    heads.add(bundle.head())
    (tmp_path / "js" / "text").mkdir()
    module = module.rename(tmp_path / "js" / "text" / "other.js")
    heads.add(bundle.head())
    module.write_text("export { };\n", encoding="utf-8")
    heads.add(bundle.head())
    packages = tmp_path / "package.json"
    packages.write_text('{"devDependencies": {"esbuild": "0.0.1"}}', encoding="utf-8")
    monkeypatch.setattr(bundle, "_PACKAGES", packages)
    heads.add(bundle.head())
    assert len(heads) == 5


def test_a_missing_script_is_told_with_what_makes_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(scripts, "BUNDLE", FOLDER / "none.js")
    monkeypatch.setattr(scripts, "made", lambda: "")
    assert not scripts.bundle()
    assert AGAIN in capsys.readouterr().out


def test_all_scripts_come_with_the_page() -> None:
    """One that was fetched later might come from another program, which has the port by then."""
    files = shipped_files()
    scripts = {name: file.decode() for name, file in files.items() if name.endswith(".js")}
    later = {(name, found) for name, text in scripts.items() for found in re.findall(r"\bimport\(([^)]*)\)", text)}
    library = ("js/text/markdown_library.js", "'../../vendor/markdown-it.js'")
    assert later == {("open.js", "'./page.js'"), library, ("page.js", '"./vendor/markdown-it.js"')}
    assert re.search(r"(?m)^import\(", scripts[library[0]]), "it is asked for at once, and never later"
    index = files[INDEX].decode()
    preloaded = set(re.findall(rf'rel="modulepreload" href="{PREFIX}([^"]*)"', index))
    wanted = {"page.js", "vendor/markdown-it.js"}
    for name in ("open.js", "page.js", "js/session.js", "js/asked_ahead.js"):
        found = re.findall(r"""\bfrom\s*["']\./([^"']+)["']""", scripts[name])
        wanted |= {one if "/" in one or "/" not in name else f"js/{one}" for one in found}
    assert preloaded == {name if name in scripts else f"js/{name}" for name in wanted}
    assert not any(re.search(r"\bWorker\(|serviceWorker|createElement\('script'", text) for text in scripts.values())

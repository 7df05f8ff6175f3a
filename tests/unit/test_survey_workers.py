"""At stake: the workers of the survey template examine any tree, and what they report about it is true."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from tests.support import REPOSITORY, alike, run, wait_until

TEMPLATE = REPOSITORY / "task_templates" / "survey"
WORKERS = ("size", "todos", "functions", "dependencies", "deepscan")
YEAR_S = 365 * 86_400


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    code: int
    out: str
    err: str
    findings: dict[str, Any]


def environment(agent_dir: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("AGENTCTL_TASK", "AGENTCTL_ROOT")}
    return {**kept, "AGENTCTL_AGENT_DIR": str(agent_dir), **more}


def agent_folder(tmp_path: Path, name: str) -> Path:
    folder = tmp_path / "agents" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def survey(tmp_path: Path, name: str, tree: Path | str, *options: str, **more: str) -> Done:
    """Run one worker as a person would by hand, in a folder of its own beside those of the others."""
    folder = agent_folder(tmp_path, name)
    command = [sys.executable, str(TEMPLATE / "workers" / f"{name}.py"), str(tree), *options]
    done = subprocess.run(command, env=environment(folder, **more), capture_output=True, check=False, timeout=50)
    found = folder / "findings.json"
    findings = json.loads(found.read_text()) if found.exists() else {}
    return Done(code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode(), findings=findings)


def examined(tmp_path: Path, name: str, tree: Path, *options: str) -> dict[str, Any]:
    done = survey(tmp_path, name, tree, *options)
    assert (done.code, done.err) == (0, "")
    assert done.findings["complete"] is True
    assert done.out.startswith(done.findings["summary"])
    return done.findings


def grow(root: Path, files: Mapping[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    root.mkdir(exist_ok=True)
    return root


# --- any tree ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [WORKERS[0], *alike(*WORKERS[1:])])
def test_an_empty_tree_is_examined(tmp_path: Path, name: str) -> None:
    examined(tmp_path, name, grow(tmp_path / "tree", {}))


@pytest.mark.parametrize("name", [WORKERS[0], *alike(*WORKERS[1:])])
def test_a_folder_that_is_not_there_is_named(tmp_path: Path, name: str) -> None:
    done = survey(tmp_path, name, tmp_path / "nowhere")
    assert done.code == 1
    assert done.err == f"error: {name}: cannot list the folder {tmp_path}/nowhere: No such file or directory\n"


def hostile(root: Path) -> Path:
    """Return a folder with one good file among everything that may break a walk."""
    grow(root, {"good.py": "def good():\n    pass  # TODO: rest\n", "evil\x1b[31m\nname.py": "x = 1\n"})
    (root / "binary.py").write_bytes(b"\0\1\2" * 1000)
    (root / "utf16.py").write_bytes("y = 1\n".encode("utf-16"))
    (root / "latin.py").write_bytes(b"# caf\xe9\n")
    (root / "null.py").write_bytes(b"z = 1\n" * 2000 + b"\0\n")
    (root / "deep.py").write_text("x = " + "(" * 5000 + ")" * 5000 + "\n")
    (root / "negative.py").write_text("x = " + "-" * 50_000 + "1\n")
    (root / "open.js").write_text("function f() { {{{ `unclosed " + "(" * 5000)
    (root / "package.json").write_text("[" * 100_000)
    (root / "pyproject.toml").write_text("[project\n")
    (root / "go.mod").write_text("require (\n x\n")
    Path(os.fsdecode(bytes(root) + b"/n\xff.py")).write_text("w = 1\n")
    os.mkfifo(root / "fifo.py")
    (root / "loop").symlink_to(root)
    (root / "dangling.py").symlink_to("nothing")
    folder = os.open(root, os.O_RDONLY)
    for _ in range(20):  # longer than any path the system takes at once
        os.mkdir("d" * 250, dir_fd=folder)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)
    return root


@pytest.mark.parametrize("name", [name for name in WORKERS if name != "deepscan"])
def test_a_hostile_tree_is_survived_and_told(tmp_path: Path, name: str) -> None:
    findings = examined(tmp_path, name, hostile(tmp_path / "tree"))
    assert findings["leftOut"]["symbolic links"] == 2
    assert findings["leftOut"]["special files"] == 1
    assert [one["problem"] for one in findings["unreadable"]] == ["File name too long"]
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", "".join(findings["markdown"]))


def test_a_hostile_tree_is_counted(tmp_path: Path) -> None:
    findings = examined(tmp_path, "size", hostile(tmp_path / "tree"), "--top", "50")
    assert findings["leftOut"]["binary"] == 1
    assert findings["notText"] == {"py": 1}
    paths = {one["path"] for one in findings["longestFiles"]}
    assert {"n\\xff.py", "evil\\x1b[31m\\nname.py", "utf16.py", "latin.py", "null.py"} <= paths


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_may_not_be_read_is_listed(tmp_path: Path) -> None:
    tree = grow(tmp_path / "tree", {"a.py": "x = 1\n", "closed.py": "y = 1\n", "shut/b.py": "z = 1\n"})
    (tree / "closed.py").chmod(0)
    (tree / "shut").chmod(0)
    findings = examined(tmp_path, "size", tree)
    (tree / "shut").chmod(0o700)
    assert [one["path"] for one in findings["unreadable"]] == ["closed.py", "shut"]
    assert findings["lines"] == 1


# --- size ----------------------------------------------------------------------------------------------


def test_size_counts_languages_lines_and_what_it_leaves_out(tmp_path: Path) -> None:
    tree = grow(
        tmp_path / "tree",
        {
            "app/main.py": "import os\n\n\nprint(os)",
            "app/run": "#!/usr/bin/env -S python3.11 -u\nprint()\n",
            "web/index.js": "let a = 1\n" * 7,
            "web/app.min.js": "var a=1;\n",
            "web/schema.ts": "// Code generated by tool v1. DO NOT EDIT.\nlet b\n",
            "node_modules/x/index.js": "let c\n" * 100,
            "build/notes.txt": "a folder of this name is source here\n",
            "lib/pyproject.toml": "",
            "lib/build/copy.py": "x = 1\n",
            "env/pyvenv.cfg": "",
            "env/lib/site.py": "x = 1\n",
        },
    )
    findings = examined(tmp_path, "size", tree, "--top", "2")
    assert findings["languages"] == {
        "JavaScript": {"files": 1, "lines": 7, "blank": 0, "bytes": 70},
        "Python": {"files": 2, "lines": 6, "blank": 2, "bytes": 21 + 40},
        "Plain text": {"files": 1, "lines": 1, "blank": 0, "bytes": 37},
        "TOML": {"files": 1, "lines": 0, "blank": 0, "bytes": 0},
    }
    assert findings["generated"]["files"] == 2
    assert findings["skippedFolders"] == [
        {"folder": "env", "reason": "virtual environment"},
        {"folder": "lib/build", "reason": "generated"},
        {"folder": "node_modules", "reason": "installed dependencies"},
    ]
    assert [(one["path"], one["lines"]) for one in findings["longestFiles"]] == [
        ("web/index.js", 7),
        ("app/main.py", 4),
    ]
    assert {name: count["lines"] for name, count in findings["areas"].items()} == {
        "app": 6,
        "build": 1,
        "lib": 0,
        "web": 7,
    }


# --- todos ---------------------------------------------------------------------------------------------


def git(tree: Path, *arguments: str, at: str = "2020-01-01T12:00:00Z", author: str = "Ada") -> None:
    identity = {"GIT_AUTHOR_NAME": author, "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_AUTHOR_DATE": at}
    committer = {
        "GIT_COMMITTER_NAME": author,
        "GIT_COMMITTER_EMAIL": "a@example.com",
        "GIT_COMMITTER_DATE": at,
    }
    nobody = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    environ = {**os.environ, **identity, **committer, **nobody}
    subprocess.run(["git", "-C", str(tree), *arguments], env=environ, check=True, capture_output=True)


def test_todos_have_the_age_of_their_line_in_git_oldest_first(tmp_path: Path) -> None:
    tree = grow(tmp_path / "tree", {"a.py": "x = 1\n# TODO: first | thing\n", "b.c": "int b; /* nothing */\n"})
    git(tree, "init", "-q")
    git(tree, "add", ".")
    git(tree, "commit", "-qm", "1", at="2019-05-05T12:00:00Z")
    (tree / "b.c").write_text("// HACK around it\nint b; /* nothing */\n")
    (tree / "a.py").write_text("# FIXME later\nx = 1\n# TODO: first | thing\n")
    git(tree, "commit", "-qam", "2", at="2021-05-05T12:00:00Z", author="Grace")
    (tree / "a.py").write_text("# FIXME later\nx = 1\n# TODO: first | thing\ny = 2  # XXX new\n")
    grow(tree, {"untracked.sh": "# TODO untracked\n"})
    findings = examined(tmp_path, "todos", tree)
    rows = [
        (one["since"][:4], one["ageFrom"], one["author"], f"{one['path']}:{one['line']}") for one in findings["todos"]
    ]
    assert rows[:3] == [
        ("2019", "git", "Ada", "a.py:3"),
        ("2021", "git", "Grace", "a.py:1"),
        ("2021", "git", "Grace", "b.c:1"),
    ]
    assert {row[1:] for row in rows[3:]} == {("mtime", "", "a.py:4"), ("mtime", "", "untracked.sh:1")}
    assert findings["ageFromDate"] == {"not committed yet": 1, "not tracked by git": 1}
    assert findings["kinds"] == {"TODO": 2, "FIXME": 1, "XXX": 1, "HACK": 1}
    assert "the oldest since 2019-05-05" in findings["summary"]


def test_todos_outside_git_have_the_age_of_the_file(tmp_path: Path) -> None:
    tree = grow(tmp_path / "tree", {"new.py": "# TODO new\n", "old.py": "# TODO old\n"})
    old = time.time() - 3 * YEAR_S
    os.utime(tree / "old.py", (old, old))
    findings = examined(tmp_path, "todos", tree)
    assert [(one["path"], one["days"], one["ageFrom"]) for one in findings["todos"]] == [
        ("old.py", 3 * 365, "mtime"),
        ("new.py", 0, "mtime"),
    ]
    assert findings["ageFromDate"] == {"outside a git repository": 2}
    assert any("3.0 years (file)" in line for line in findings["markdown"])


def test_markers_that_are_only_spoken_of_are_no_todos(tmp_path: Path) -> None:
    spoken = [
        'kinds = ["TODO", "FIXME"]',
        "pattern = 'TODO|FIXME'  # or XXX/HACK",
        "TODO = 1",
        "name = TODOS  # TODOS and FIXMEs",
    ]
    strings = 'a = "# TODO in a string"\nb = """\n# FIXME in another\n"""  # HACK after it\n'
    notes = "We use TODO in comments # TODO\n\nTODO: write this\n- FIXME(ada): and this\n"
    script = "let a = '// TODO in a string' // and\n/* one\n TODO two */ let b = 1; // FIXME 'three'\n"
    files = {"a.py": "\n".join(spoken), "b.py": strings, "c.js": script, "notes.md": notes}
    findings = examined(tmp_path, "todos", grow(tmp_path / "tree", files))
    assert sorted((f"{one['path']}:{one['line']}", one["text"]) for one in findings["todos"]) == [
        ("b.py:4", "HACK after it"),
        ("c.js:3", "TODO two */ // FIXME 'three'"),
        ("notes.md:3", "TODO: write this"),
        ("notes.md:4", "FIXME(ada): and this"),
    ]


# --- functions -----------------------------------------------------------------------------------------

PYTHON = """
class Box:
    def walk(self, items):
        for item in items:
            if item == 1 and self:
                pass
            elif item == 2:
                with open(item):
                    pass
            else:
                if item:
                    pass

        def inner():
            while True:
                return [a for a in items if a]
        return inner

async def short(): pass
"""


def measured(tmp_path: Path, tree: Path) -> dict[str, tuple[int, int, str]]:
    findings = examined(tmp_path, "functions", tree, "--top", "99")
    return {one["name"]: (one["lines"], one["nesting"], one["method"]) for one in findings["longest"]}


def test_python_functions_are_measured_by_their_syntax(tmp_path: Path) -> None:
    tree = grow(tmp_path / "tree", {"box.py": PYTHON})
    assert measured(tmp_path, tree) == {
        "Box.walk": (15, 3, "ast"),
        "Box.walk.inner": (3, 1, "ast"),
        "short": (1, 0, "ast"),
    }


def test_python_that_does_not_parse_is_measured_by_its_indentation(tmp_path: Path) -> None:
    tree = grow(tmp_path / "tree", {"old.py": "def f(x):\n    if x:\n        print 'old'\n\ndef g(): pass\n"})
    assert measured(tmp_path, tree) == {"f": (3, 1, "indentation"), "g": (1, 0, "indentation")}
    assert examined(tmp_path, "functions", tree)["notParsed"] == ["old.py"]


#: Code that could mislead an estimate by braces or indentation: function, lines, nesting.
OTHER_LANGUAGES = {
    "a.js": (
        """
const x = {a: 1}
export async function one({a, b}, c = {}) {
  for (let i = 0; i < 3; i++) {
    if (a) {
      // }}}
      s = '}' + `}${b}}` + /[}]/.source
    }
  }
}
const two = (n) => {
  return {n}
}
""",
        {"one": (8, 2), "two": (3, 0)},
    ),
    "a.ts": (
        """
class A<T> {
  constructor(private a: string) {
    super();
  }
  async get(id: number): Promise<T[]> {
    try {
      await this.x(() => {
        return 1;
      });
    } catch (e) {
    }
  }
}
""",
        {"constructor": (3, 0), "get": (8, 2)},
    ),
    "a.c": (
        """
struct p { int x; };
static int
add(int a, int b)
{
#if A
  if (a) {
#else
  if (b) {
#endif
    list_for_each(a, b) {
      char c = '{';
    }
  }
  return a;
}
struct p *make(void) { return 0; }
""",
        {"add": (13, 2), "make": (1, 0)},
    ),
    "A.java": (
        """
public class A {
  @Get("/x")
  public <T> List<T> find(String s) throws IOException {
    switch (s) {
      case "}": { return null; }
    }
    items.forEach(i -> {
      i.go();
    });
    return null;
  }
}
""",
        {"find": (9, 2)},
    ),
    "a.go": (
        """
type T struct {
  a int
}
func (t *T) Run(a map[string]int) (int, error) {
  for k := range a {
    go func() {
      println(`{` + k)
    }()
  }
  return 0, nil
}
""",
        {"Run": (8, 2)},
    ),
    "a.rs": (
        """
impl<'a> Foo<'a> {
    pub fn run<T>(&'a self, x: T) -> Option<char> {
        let y = match x {
            A => {
                '{'
            }
        };
        Some(y)
    }
}
""",
        {"run": (8, 2)},
    ),
    "a.cpp": (
        """
namespace n {
class A : public B {
  int get() const override { return 1; }
};
A::A(int a) : b(a), c(a) {
  while (a) {
    do {
    } while (b);
  }
}
bool operator==(const A& a, const A& b) {
  return true;
}
}
""",
        {"get": (1, 0), "A": (6, 2), "operator": (3, 0)},
    ),
    "a.php": (
        """
<?php
# it's a comment {
function foo($a) {
  foreach ($a as $b) {
    echo "}";
  }
}
""",
        {"foo": (5, 1)},
    ),
    "a.kt": (
        """
class A(val x: Int) {
  fun String.go(): Int {
    when (x) {
      1 -> 2
    }
    return 1
  }
}
""",
        {"String.go": (6, 1)},
    ),
    "a.swift": (
        """
struct A {
  func go(_ a: Int) -> Int {
    guard a > 0 else {
      return 0
    }
    return a
  }
}
""",
        {"go": (6, 1)},
    ),
    "a.rb": (
        """
class A
  def go(x)
    if x
      x.each do |y|
        y
      end
    end
  end

  def stop; end
end
""",
        {"go": (7, 2), "stop": (1, 0)},
    ),
    "a.sh": (
        """
go() {
  if true; then
    echo
  fi
}
function stop {
  echo
}
""",
        {"go": (5, 1), "stop": (3, 0)},
    ),
    "a.lua": (
        """
local function go(a)
  for i = 1, 2 do
    print(i)
  end
end
""",
        {"go": (5, 1)},
    ),
}


@pytest.mark.parametrize("name", OTHER_LANGUAGES)
def test_functions_of_other_languages_are_found(tmp_path: Path, name: str) -> None:
    source, expected = OTHER_LANGUAGES[name]
    found = measured(tmp_path, grow(tmp_path / "tree", {name: source.lstrip()}))
    assert {function: (lines, nesting) for function, (lines, nesting, _) in found.items()} == expected


def two_folders(tmp_path: Path) -> Path:
    long = "def long():\n" + "    x = 1\n" * 60
    files = {
        "small/a.py": "def short():\n    pass\n",
        "big/core/b.py": long,
        "big/core/c.py": "def other():\n    return 1 or 2\n",
    }
    return grow(tmp_path / "tree", files)


def test_with_nobody_to_ask_the_heaviest_folder_is_looked_into(tmp_path: Path) -> None:
    closer = examined(tmp_path, "functions", two_folders(tmp_path))["closer"]
    assert closer["folder"] == "big/core"
    assert closer["how"] == "nobody to ask outside a task: the default was taken"
    assert [(row["path"], row["functions"], row["heavy"]) for row in closer["files"]] == [
        ("big/core/b.py", 1, 1),
        ("big/core/c.py", 1, 0),
    ]
    assert closer["lengths"] == {"1 to 10": 1, "11 to 25": 0, "26 to 49": 0, "50 to 99": 1, "100 and more": 0}
    assert [one["name"] for one in closer["mostBranching"]] == ["other"]


def test_a_given_folder_is_looked_into_without_a_question(tmp_path: Path) -> None:
    closer = examined(tmp_path, "functions", two_folders(tmp_path), "--focus", "./small/")["closer"]
    assert (closer["folder"], closer["how"], closer["functions"]) == ("small", "given beforehand", 1)


def test_a_given_folder_without_functions_is_refused(tmp_path: Path) -> None:
    done = survey(tmp_path, "functions", two_folders(tmp_path), "--focus", "medium")
    assert done.code == 1
    assert done.err == "error: functions: no functions below the folder medium: give one of big/core, small\n"


def test_a_question_that_cannot_be_asked_costs_no_findings(tmp_path: Path) -> None:
    """The task is gone: asking and reporting fail, but the findings are kept."""
    gone = {"AGENTCTL_TASK": "gone", "AGENTCTL_ROOT": str(tmp_path / "root")}
    done = survey(tmp_path, "functions", two_folders(tmp_path), **gone)
    assert done.code == 1
    assert "error: functions: the result could not be declared" in done.err
    assert done.findings["complete"] is True
    assert re.fullmatch(r"the question failed \(exit \d+\): the default was taken", done.findings["closer"]["how"])


# --- dependencies --------------------------------------------------------------------------------------


def gaps(findings: dict[str, Any], ecosystem: str) -> tuple[list[str], list[str]]:
    each = findings["ecosystems"][ecosystem]
    never = [f"{one['name']} ({one['kind']})" for one in each["neverImported"]]
    missing = [one["name"] + (" (optional)" if one["optional"] else "") for one in each["undeclared"]]
    return never, missing


PYPROJECT = """
[project]
name = "app"
dependencies = ["PyYAML>=6", "google-cloud-storage", "unused[x]~=1.0 ; os_name == 'a'", "My.Dotted_Name"]
[project.optional-dependencies]
dev = ["pytest", "ruff"]
all = ["app[dev]"]
"""
REQUIREMENTS = """
# comment
-r base.txt
Pillow==9 # pinned
git+https://x/y.git#egg=from-egg
"""
PACKAGE_SOURCE = """
import yaml, json
from google.cloud import storage
from . import local
import my_dotted_name
"""
MODULE_SOURCE = """
import app.local
import missing.part
try:
    import speedup
except ImportError:
    pass
"""
TEST_SOURCE = """
import pytest, PIL.Image
import helper
import importlib
importlib.import_module('by_name')
"""


def test_python_dependencies_are_compared(tmp_path: Path) -> None:
    tree = grow(
        tmp_path / "tree",
        {
            "pyproject.toml": PYPROJECT,
            "requirements/extra.txt": REQUIREMENTS,
            "setup.cfg": "[options]\ninstall_requires =\n    from-cfg\n",
            "src/app/__init__.py": PACKAGE_SOURCE,
            "src/app/local.py": MODULE_SOURCE,
            "tests/test_app.py": TEST_SOURCE,
            "tests/helper.py": "if x:\n    print 'python 2'\nimport from_old\n",
        },
    )
    never, missing = gaps(examined(tmp_path, "dependencies", tree), "Python")
    assert never == ["from-cfg (run)", "from-egg (run)", "unused (run)", "ruff (development)"]
    assert missing == ["by_name", "from_old", "missing", "speedup (optional)"]


def test_projects_of_one_tree_are_compared_each_with_its_own(tmp_path: Path) -> None:
    tree = grow(
        tmp_path / "tree",
        {
            "one/setup.py": "from setuptools import setup\nsetup(install_requires=['requests', 'two'])\n",
            "one/one.py": "import requests\nimport two\n",
            "two/setup.py": "import setuptools\nsetuptools.setup(install_requires=open('x').read())\n",
            "two/src/two/__init__.py": "import requests\n",
        },
    )
    findings = examined(tmp_path, "dependencies", tree)
    assert gaps(findings, "Python") == ([], ["requests"])
    each = findings["ecosystems"]["Python"]
    assert each["undeclared"][0]["example"] == "two/src/two/__init__.py"
    assert each["problems"] == {"two/setup.py": "install_requires is computed, not written down"}


SCRIPT_SOURCE = """
import React, {useState} from 'react'
import type {A} from "@scope/used/deep/file"
import './style.css'
const fs = require('fs'), n = require('node:path')
// require('commented')
const t = "import x from 'told'"
const l = await import('lazy')
import 'components/Button'
export * from '@me/app'
"""


def test_script_dependencies_are_compared(tmp_path: Path) -> None:
    package = {
        "name": "@me/app",
        "scripts": {"build": "bundler --all"},
        "dependencies": {"react": "1", "@scope/used": "1", "unused": "1", "bundler": "1"},
        "devDependencies": {"@types/react": "1", "linter": "1"},
    }
    tree = grow(
        tmp_path / "tree",
        {
            "package.json": json.dumps(package),
            "src/a.tsx": SCRIPT_SOURCE,
            "src/components/Button.tsx": "export {x} from 'once'\n",
        },
    )
    findings = examined(tmp_path, "dependencies", tree)
    assert gaps(findings, "JavaScript and TypeScript") == (
        ["unused (run)", "linter (development)"],
        ["lazy", "once"],
    )


GO_MODULE = """
module example.com/me/app

require (
    github.com/a/used v1.0.0
    github.com/a/unused v1.0.0
    github.com/a/other v1.0.0 // indirect
)
require golang.org/x/sync v0.1.0
"""
GO_SOURCE = """
package main

import (
    "fmt"
    u "github.com/a/used/v2/part"
    _ "example.com/me/app/inner"
    // "github.com/b/commented"
    "github.com/b/missing/x/y"
)
import "golang.org/x/sync/errgroup"
"""


def test_go_dependencies_are_compared(tmp_path: Path) -> None:
    tree = grow(tmp_path / "tree", {"go.mod": GO_MODULE, "main.go": GO_SOURCE, "Gemfile": "gem 'rails'\n"})
    findings = examined(tmp_path, "dependencies", tree)
    assert gaps(findings, "Go") == (["github.com/a/unused (run)"], ["github.com/b/missing"])
    assert findings["manifestsNotRead"] == [{"manifest": "Gemfile", "of": "Ruby"}]


CARGO = """
[package]
name = "my-crate"
[dependencies]
serde = "1"
by-path = "1"
unused = "1"
[dev-dependencies]
quick = "1"
"""
RUST_SOURCE = """
mod inner;
use std::io;
use serde::{Serialize};
use my_crate::X;
use inner::Y;
use absent::Z;
fn main() { by_path::go(); local::go(); }
"""


def test_rust_dependencies_are_compared(tmp_path: Path) -> None:
    tree = grow(tmp_path / "tree", {"Cargo.toml": CARGO, "src/main.rs": RUST_SOURCE})
    findings = examined(tmp_path, "dependencies", tree)
    assert gaps(findings, "Rust") == (["unused (run)", "quick (development)"], ["absent"])


# --- report --------------------------------------------------------------------------------------------


def template() -> dict[str, Any]:
    content = yaml.safe_load((TEMPLATE / "task.yaml").read_text())
    assert isinstance(content, dict)
    return content


def argv_of(entry: dict[str, Any], tree: Path) -> list[str]:
    defaults = {name: parameter["default"] for name, parameter in template()["parameters"].items()}
    places = {**defaults, "path": str(tree), "python": sys.executable, "template": str(TEMPLATE)}
    return [argument.format_map(places) for argument in entry["argv"]]


def test_the_whole_template_ends_in_one_report(tmp_path: Path) -> None:
    """Every line of the roster, in its order, with nothing that is not in the template."""
    tree = two_folders(tmp_path)
    grow(tree, {"small/b.py": "# TODO: soon\nimport requests\n"})
    for entry in template()["roster"]:
        folder = agent_folder(tmp_path, entry["name"])
        subprocess.run(argv_of(entry, tree), env=environment(folder), check=True, capture_output=True)
    report = (tmp_path / "agents" / "report" / "report.md").read_text()
    assert "not whole" not in report
    for heading in ("Size and languages", "Left to do", "Functions", "Dependencies", "Where to look first"):
        assert f"\n## {heading}\n" in report
    assert re.search(r"\| `big/core` +\| +63 \| +0 \| +1 \| +61 \|", report)
    assert re.search(r"\| `small` +\| +4 \| +1 \| +0 \| +2 \|", report)
    assert "| `requests`" in report
    assert "### A closer look: `big/core`" in report


def test_the_report_waits_for_every_other_worker_however_it_ends(tmp_path: Path) -> None:
    *others, report = template()["roster"]
    assert report["name"] == "report"
    assert report["after"] == [entry["name"] for entry in others]
    assert report["afterAny"] is True
    assert argv_of(report, tmp_path)[3:] == report["after"]


def test_a_report_tells_of_every_part_that_is_missing(tmp_path: Path) -> None:
    tree = two_folders(tmp_path)
    examined(tmp_path, "size", tree)
    examined(tmp_path, "functions", tree)
    ended = {"functions": {"status": "failed", "reason": "timed_out"}, "todos": {"status": "cancelled"}}
    for name, decision in ended.items():
        (agent_folder(tmp_path, name) / "exit.json").write_text(json.dumps(decision))
    (agent_folder(tmp_path, "dependencies") / "findings.json").write_text('{"complete": tr')
    done = survey(tmp_path, "report", tree)
    report = (tmp_path / "agents" / "report" / "report.md").read_text()
    assert (done.code, done.err) == (0, "")
    assert done.findings["notWhole"] == ["todos cancelled", "functions failed", "dependencies unknown"]
    assert "**This report is not whole**: Left to do, Functions, Dependencies." in report
    assert "Nothing to show: cancelled; it left no findings." in report
    assert "Nothing to show: unknown; its findings cannot be read." in report
    assert "Not whole: failed (timed_out); what it had found until then is below." in report
    assert "`big/core/b.py:1`" in report


def test_a_report_of_nothing_is_still_a_report(tmp_path: Path) -> None:
    done = survey(tmp_path, "report", tmp_path)
    assert done.code == 0
    assert done.findings["summary"] == "report.md joins 0 of 4 parts"
    assert (tmp_path / "agents" / "report" / "report.md").read_text().count("it left no findings") == 8


def test_nothing_in_a_tree_breaks_out_of_the_report(tmp_path: Path) -> None:
    tree = grow(tmp_path / "tree", {"a|b`c``d.py": "# TODO: | <img src=x> `code` \x1b[31m\n"})
    markdown = examined(tmp_path, "todos", tree)["markdown"]
    (row,) = [line for line in markdown if "TODO" in line]
    assert len(re.split(r"(?<!\\)\|", row)) == 8
    assert "\x1b" not in row
    assert re.search(r"`` TODO: \\\| <img src=x> `code` \\x1b\[31m ``", row)


# --- as a task -----------------------------------------------------------------------------------------


def start_survey(root: Path, tree: Path, **settings: str) -> Path:
    """Make a task from the template and start it; return the folder of its workers."""
    given = [f"--set={name}={value}" for name, value in {"path": str(tree), **settings}.items()]
    run("new", "--template", "survey", "--id", "survey", *given, "--start")
    return root / "tasks" / "survey" / "agents"


def test_as_a_task_the_survey_asks_and_goes_on_with_the_answer(root: Path, tmp_path: Path) -> None:
    agents = start_survey(root, two_folders(tmp_path))
    run("wait-any", "functions", "--for", "blocked")
    (asked,) = run("interact", "list", "--json").json
    assert [one["id"] for one in asked["options"]] == ["big-core", "small", "none"]
    run("interact", "respond", "functions", "small")
    run("wait-all")
    closer = json.loads((agents / "functions" / "findings.json").read_text())["closer"]
    assert (closer["folder"], closer["how"]) == ("small", "chosen in answer to the question")
    assert "report.md joins 4 of 4 parts" in run("result", "report").out


@pytest.mark.slow
def test_as_a_task_the_survey_goes_on_without_an_answer(root: Path, tmp_path: Path) -> None:
    agents = start_survey(root, two_folders(tmp_path), answerSeconds="1")
    run("wait-all")
    closer = json.loads((agents / "functions" / "findings.json").read_text())["closer"]
    assert (closer["folder"], closer["how"]) == ("big/core", "no answer within 1 s: the default was taken")


@pytest.mark.slow
def test_as_a_task_the_survey_reports_without_a_cancelled_part(root: Path, tmp_path: Path) -> None:
    agents = start_survey(root, two_folders(tmp_path))
    run("wait-any", "functions", "--for", "blocked")
    run("cancel", "functions")
    run("wait-all", check=False)
    report = (agents / "report" / "report.md").read_text()
    assert "Not whole: cancelled; what it had found until then is below." in report
    assert [line for line in report.split("\n") if "not whole" in line] == ["**This report is not whole**: Functions."]
    assert (agents / "functions" / "stderr.log").read_text() == ""


# --- deepscan ------------------------------------------------------------------------------------------


def test_deepscan_finds_a_copy_whose_names_were_changed(tmp_path: Path) -> None:
    tree = grow(
        tmp_path / "tree",
        {
            "one.py": PYTHON,
            "two.py": PYTHON.replace("item", "thing").replace("Box", "Bag"),
            "other.py": "\n".join(f"value_{n} = {n}" for n in range(80)),
        },
    )
    findings = examined(tmp_path, "deepscan", tree)
    assert findings["pairsCompared"] == findings["pairs"] == 3
    ((pair,)) = [tuple(sorted((one["one"], one["other"]))) for one in findings["alike"]]
    assert pair == ("one.py", "two.py")
    assert 60 <= findings["alike"][0]["percent"] < 100


@pytest.mark.slow
def test_sigint_ends_a_worker_at_once_and_keeps_what_it_found(tmp_path: Path) -> None:
    tree = grow(tmp_path / "tree", {f"{n}.py": PYTHON * 20 + f"\nx = {n}\n" for n in range(40)})
    folder = agent_folder(tmp_path, "deepscan")
    command = [sys.executable, str(TEMPLATE / "workers" / "deepscan.py"), str(tree)]
    with subprocess.Popen(command, env=environment(folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as scan:
        wait_until((folder / "findings.json").exists, what="what was found until now")
        scan.send_signal(signal.SIGINT)
        out, err = scan.communicate(timeout=10)
    findings = json.loads((folder / "findings.json").read_text())
    assert (scan.returncode, out, err) == (130, b"", b"")
    assert findings["complete"] is False
    assert 0 < findings["pairsCompared"] < findings["pairs"]


def test_sigint_to_all_of_a_worker_leaves_no_traceback_of_its_report(tmp_path: Path) -> None:
    """A cancel signals the whole tree, here while the worker is reporting its progress."""
    tree = grow(tmp_path / "tree", {f"{n}.py": PYTHON * 20 + f"\nx = {n}\n" for n in range(40)})
    gone = {"AGENTCTL_TASK": "gone", "AGENTCTL_ROOT": str(tmp_path / "root")}
    command = [sys.executable, str(TEMPLATE / "workers" / "deepscan.py"), str(tree)]
    environ = environment(agent_folder(tmp_path, "deepscan"), **gone)
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, start_new_session=True) as scan:
        worker = psutil.Process(scan.pid)
        wait_until(lambda: worker.children() and "report" in worker.children()[0].cmdline(), what="a report")
        os.killpg(scan.pid, signal.SIGINT)
        _, err = scan.communicate(timeout=10)
    assert scan.returncode == 130
    assert b"Traceback" not in err
    assert b"KeyboardInterrupt" not in err

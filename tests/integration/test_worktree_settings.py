"""At stake: no setting of a person's git costs the record of a worker, or makes a worktree look changed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.repositories import IDENTITY, commit, git, new_repository, record
from tests.steps import Task, new_task, spawn
from tests.support import by_turns, run

#: What people have in their global settings. `~` is their home, in which `FILES` lie.
SETTINGS: dict[str, Mapping[str, str]] = {
    "line ends, as on Windows": {"core.autocrlf": "true", "core.safecrlf": "true"},
    "line ends, as for Windows": {"core.autocrlf": "input", "core.safecrlf": "true"},
    "line ends of their own": {"core.eol": "crlf", "core.safecrlf": "warn"},
    "no prefix": {"diff.noprefix": "true"},
    "prefixes that say what": {"diff.mnemonicPrefix": "true"},
    "prefixes of their own": {"diff.srcPrefix": "old/", "diff.dstPrefix": "new/"},
    "another program for diffs": {"diff.external": "false", "diff.guitool": "none"},
    "colors": {"color.ui": "always", "color.diff": "always", "color.status": "always", "color.branch": "always"},
    "new files are not told": {"status.showUntrackedFiles": "no", "status.relativePaths": "false"},
    "a short status": {"status.short": "true", "status.branch": "true", "status.showStash": "true"},
    "renames in the status": {"status.renames": "copies", "diff.renames": "copies", "diff.renameLimit": "1"},
    "no modes": {"core.fileMode": "false"},
    "no links": {"core.symlinks": "false"},
    "all files are big": {"core.bigFileThreshold": "1"},
    "no context": {"diff.context": "0", "diff.interHunkContext": "0"},
    "much context": {"diff.context": "99", "diff.interHunkContext": "99", "diff.statGraphWidth": "1"},
    "relative diffs": {"diff.relative": "true"},
    "submodules as logs": {"diff.submodule": "log", "status.submoduleSummary": "true", "diff.ignoreSubmodules": "all"},
    "words": {"diff.wordRegex": ".", "diff.colorMoved": "zebra", "diff.wsErrorHighlight": "all"},
    "another algorithm": {
        "diff.algorithm": "histogram", "diff.indentHeuristic": "false", "diff.suppressBlankEmpty": "1",
    },
    "an order that is not there": {"diff.orderFile": "~/not-there"},
    "an order": {"diff.orderFile": "~/order"},
    "a split index": {"core.splitIndex": "true", "splitIndex.maxPercentChange": "0"},
    "many files": {"feature.manyFiles": "true", "core.untrackedCache": "true", "index.threads": "2"},
    "experimental": {"feature.experimental": "true", "fetch.writeCommitGraph": "true", "gc.auto": "1"},
    "another index": {"index.version": "4", "index.skipHash": "true", "index.sparse": "true"},
    "signed commits": {
        "commit.gpgSign": "true", "tag.gpgSign": "true", "gpg.program": "false", "log.showSignature": "1",
    },
    "a monitor": {"core.fsmonitor": "true"},
    "a monitor of their own": {"core.fsmonitor": "false"},
    "hooks that refuse all": {"core.hooksPath": "~/hooks"},
    "a template with a hook": {"init.templateDir": "~/template", "init.defaultBranch": "trunk"},
    "attributes": {"core.attributesFile": "~/attributes", "diff.upper.textconv": "tr a-z A-Z <"},
    "a filter": {"core.attributesFile": "~/filtered", "filter.turn.clean": "rev", "filter.turn.smudge": "rev"},
    "what they ignore everywhere": {"core.excludesFile": "~/ignored"},
    "names as they are": {"core.quotePath": "false", "core.precomposeUnicode": "true", "i18n.commitEncoding": "latin1"},
    "no cases": {"core.ignoreCase": "true", "core.protectNTFS": "true", "core.protectHFS": "true"},
    "whitespace": {
        "apply.whitespace": "error", "core.whitespace": "trailing-space,tab-in-indent",
        "apply.ignoreWhitespace": "change",
    },
    "a comment sign": {
        "core.commentChar": ";", "commit.cleanup": "strip", "commit.template": "~/order", "commit.verbose": "true",
    },
    "short names of commits": {
        "core.abbrev": "4", "log.abbrevCommit": "true", "log.decorate": "full", "log.date": "iso",
    },
    "no advice": {"advice.statusHints": "false", "advice.detachedHead": "false", "advice.addEmbeddedRepo": "false"},
    "submodules always": {
        "submodule.recurse": "true", "push.recurseSubmodules": "on-demand", "fetch.recurseSubmodules": "yes",
    },
    "the worktree of a bare repository": {"safe.bareRepository": "all", "extensions.worktreeConfig": "true"},
    "branches follow": {
        "branch.autoSetupMerge": "always", "branch.autoSetupRebase": "always", "checkout.defaultRemote": "o",
    },
    "worktrees are guessed": {"worktree.guessRemote": "true", "checkout.guess": "false", "push.default": "nothing"},
    "trust in times": {"core.trustctime": "false", "core.checkStat": "minimal", "core.preloadIndex": "false"},
    "compressed": {"core.compression": "0", "core.looseCompression": "9", "pack.threads": "1", "core.fsync": "all"},
    "other words": {
        "alias.status": "log", "alias.diff-index": "log", "core.pager": "false", "pager.status": "true",
        "core.editor": "false",
    },
    "columns": {
        "column.ui": "always", "column.status": "always", "interactive.singleKey": "true", "help.autoCorrect": "1",
    },
    "cleaning": {
        "clean.requireForce": "false", "rerere.enabled": "true", "merge.conflictStyle": "diff3", "merge.ff": "only",
    },
    "credentials": {
        "credential.helper": "false", "core.sshCommand": "false", "core.askPass": "false", "url.x:.insteadOf": "/",
    },
}  # fmt: skip
FILES = {
    "order": "*.c\nb*\n", "ignored": "ignored*\n*.log\n",
    "attributes": "* diff=upper whitespace=-all\n*.crlf text eol=crlf\n", "filtered": "*.rev filter=turn\n",
}  # fmt: skip
#: What is special about a repository, and the shell line that makes it so.
REPOSITORIES = {
    "its worktree is set": "git config core.worktree ..",
    "settings of each worktree": "git config extensions.worktreeConfig true; git config --worktree core.autocrlf true",
    "sparse": "git sparse-checkout set --cone sub deep dir",
    "a sparse index": "git sparse-checkout set --cone --sparse-index sub deep dir",
    "sparse by patterns": "git sparse-checkout set --no-cone '/*' '!/nothing'",
    "line ends": "echo '* text=auto eol=crlf' > .gitattributes",
    "other encodings": "echo 'windows.txt text working-tree-encoding=UTF-8' > .gitattributes",
    "keywords": "echo '*.txt ident' > .gitattributes; printf '$Id$\\n' > k.txt",
    "a filter that must work": "git config filter.f.clean cat; git config filter.f.smudge cat;"
    " git config filter.f.required true; echo '*.txt filter=f' > .gitattributes",
    "binary by attribute": "echo '*.txt binary' > .gitattributes; echo '*.c -diff' >> .gitattributes",
    "packed": "git gc --quiet; git config gc.auto 0; git update-index --split-index",
    "shared by a group": "git config core.sharedRepository group; git config receive.denyCurrentBranch ignore",
    "replaced commits": "git commit --quiet --allow-empty -m second; git replace --graft HEAD",
    "reflogs of all": "git config core.logAllRefUpdates always; git notes add -m note",
    "shallow": "git fetch --quiet --depth 1 \"file://$PWD\" main; git config core.commitGraph false",
}  # fmt: skip
REFUSING = ("hooks/pre-commit", "hooks/post-checkout", "hooks/reference-transaction", "template/hooks/pre-commit")

#: It commits with plain settings, as far as that goes; what it leaves uncommitted is looked at with the person's own.
WORK = r"""
git status --porcelain --untracked-files=all --no-branch; [ -z "$(git diff)" ] || echo dirty
set -e
mkdir -p deep/er; echo one > deep/er/one.txt; echo more >> a.txt
git -c core.safecrlf=false add deep a.txt
GIT_CONFIG_GLOBAL=/dev/null git commit --quiet --message inner
printf 'n\r\nm\r\n' > windows.txt; printf 'n\r\nm\n' > mixed.crlf; printf 'x\0y' > bin; printf 'abc\n' > word.rev
printf ' \t trailing \n\n\n' > white.txt; printf 'no newline' > last; echo in > 'new é "q".txt'; echo c > main.c
rm b.txt; mv dir/d.txt dir/moved.txt; ln -s a.txt link; chmod +x sub/c.txt; echo i > ignored.txt; echo -x > ./-x
"""


@pytest.fixture
def task(root: Path) -> Task:
    return new_task()


def settle(name: str) -> None:
    """Give the person of a test their settings, and the files that these name."""
    home = Path(os.environ["HOME"])
    for file, text in FILES.items():
        (home / file).write_text(text)
    for file in REFUSING:
        (home / file).parent.mkdir(parents=True, exist_ok=True)
        (home / file).write_text("#!/bin/sh\nexit 1\n")
        (home / file).chmod(0o755)
    for key, value in SETTINGS[name].items():
        git(home, "config", "--global", key, value.replace("~", str(home)))


def plainly(folder: str | Path, *args: str) -> str:
    """Run git as somebody who has set nothing."""
    return git(folder, *args, env={"GIT_CONFIG_GLOBAL": os.devnull})


def row() -> dict[str, object]:
    (found,) = run("worktrees", "--json").json
    return {key: found[key] for key in ("state", "uncommitted", "unmerged")}


@pytest.mark.parametrize("name", by_turns(list(SETTINGS), 20))
def test_a_setting_of_a_person_costs_nothing_of_the_record(task: Task, tmp_path: Path, name: str) -> None:
    repository = new_repository(tmp_path / "repository")
    settle(name)
    check_record(task, repository, tmp_path / "patched")


@pytest.mark.slow
@pytest.mark.parametrize("name", list(REPOSITORIES))
def test_nor_does_what_is_special_about_a_repository(task: Task, tmp_path: Path, name: str) -> None:
    repository = new_repository(tmp_path / "repository")
    subprocess.run(["/bin/sh", "-ec", REPOSITORIES[name]], cwd=repository, env={**os.environ, **IDENTITY}, check=True)
    if plainly(repository, "status", "--porcelain"):
        commit(repository, "special")
    check_record(task, repository, tmp_path / "patched")


def check_record(task: Task, repository: Path, patched: Path) -> None:
    """Have a worker change much in a worktree; check that nothing of it is lost until the worktree is removed."""
    spawn(["/bin/sh", "-c", WORK], "--worktree", "--cwd", repository, "--wait", name="a")
    assert run("logs", "a").out == "", "the worktree was clean when the worker began"
    found = record(task, "a")
    assert "error" not in found["changes"]
    assert "leftOut" not in found["changes"]

    git(found["path"], "-c", "core.safecrlf=false", "add", "--all")
    held = git(found["path"], "write-tree")
    plainly(patched.parent, "clone", "--quiet", str(repository), str(patched))
    plainly(patched, "apply", "--index", str(task.agent("a") / "changes.patch"))
    assert plainly(patched, "write-tree") == held
    changed = len(plainly(found["path"], "diff", "--cached", "--name-only", "--no-renames", "HEAD").splitlines())
    assert row() == {"state": "uncommitted", "uncommitted": changed, "unmerged": 1}
    assert plainly(repository, "status", "--porcelain") == ""

    plainly(found["path"], "commit", "--quiet", "--message", "rest")
    assert row() == {"state": "unmerged", "uncommitted": 0, "unmerged": 2}
    plainly(repository, "merge", "--quiet", "--ff-only", found["branch"])
    assert row() == {"state": "clean", "uncommitted": 0, "unmerged": 0}
    assert run("worktrees", "remove", "a", "--json").json["branchDeleted"] is True

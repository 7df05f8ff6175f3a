"""`templates`: what `new --template` knows."""

import sys
from typing import Any

from agentctl.cli import options as opt
from agentctl.cli.render import is_terminal, out, out_fields, out_json, plain
from agentctl.cli.verb import module, verb
from agentctl.errors import NotFound
from agentctl.operations.start.from_template import list_templates
from agentctl.operations.where.locating import find_root

app = module()


@verb(app, "templates", examples="agentctl templates\nagentctl templates --json", exits=())
def templates(root: opt.Root = None, force: opt.Force = False, json: opt.Json = False) -> None:
    """List the templates that `new --template` knows.

    Those of the project are the folders in `templates/` of the root; one hides a shipped one of its name, and is used
    once you trust it (`agentctl trust FOLDER`). To a pipe, a line each: name, source, description, `untrusted`.
    """
    try:
        found = find_root(root, force=force)
    except NotFound:
        found = None  # the shipped ones need no root
    rows = list_templates(found)
    if json:
        out_json(rows)
    elif is_terminal(sys.stdout):
        for row in rows:
            _show(row)
    else:
        for row in rows:
            out_fields(row["name"], row["source"], row["description"], None if row["usable"] else "untrusted")


def _show(row: dict[str, Any]) -> None:
    untrusted = "" if row["usable"] else f"  (untrusted: {plain(row['source'])})"
    out(f"{plain(row['name'])}  {plain(row['description'])}{untrusted}")
    for key, parameter in row["parameters"].items():
        default = parameter.get("default")
        shown = "" if not default else f" [default: {plain(default)}]"
        out(f"    --set {plain(key)}=...  {plain(parameter.get('description') or '')}{shown}")

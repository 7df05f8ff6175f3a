"""Which models can be used without an agent program: local servers that answer, and providers whose key is here.

Of the providers in a person's own file it is also said what keeps them from being used.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from agentctl.adapters.searchpath import program_at
from agentctl.drivers.llm.providers import is_model_name, url_of
from agentctl.drivers.values import list_in, object_in, text_in
from agentctl.errors import UsageError
from agentctl.operations.where.findings import Finding, finding
from agentctl.operations.where.model_providers import named_keys, own_providers, provider_rows

_ANSWER_S = 0.5
_MOST_BYTES, _MOST_SHOWN = 1 << 20, 8
#: Nobody is asked but this machine.
_HERE = frozenset({"127.0.0.1", "::1", "localhost"})


def examine_models(environ: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    """Yield a finding for each local server that answers, and for each provider whose key is in the environment."""
    try:
        rows = provider_rows().providers
        urls = {name: url_of(name, row, environ) for name, row in rows.items()}
        keys = named_keys(environ)
    except UsageError as error:
        yield finding("warning", error.message, "", error.steps)
        return
    own = own_providers()
    here = {name: url for name, url in urls.items() if _is_here(url) and (rows[name].get("local") or name in own)}
    answers = _answers(here)
    for name, models in answers.items():
        yield _answering(name, here[name], models)
    for name, variable in keys:
        yield finding("ok", f"{name}: its key is in {variable}", "", _use(f"{name}/MODEL"))
    for name in sorted(own):
        if name in here and name not in answers:
            helps = str(rows[name].get("start") or "start it, or correct its url")
            yield finding("warning", f"{name}: no server of models answers", here[name], helps)
        yield from _without_key(name, rows[name], environ)


def _answering(name: str, url: str, models: list[str]) -> Finding:
    if not models:
        return finding("note", f"{name}: it answers, and has no models", url, "")
    more = f" and {len(models) - _MOST_SHOWN} more" if models[_MOST_SHOWN:] else ""
    shown = f"{', '.join(models[:_MOST_SHOWN])}{more}"
    return finding("ok", f"{name}: it has the models {shown}", url, _use(f"{name}/{models[0]}"))


def _without_key(name: str, row: Mapping[str, Any], environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a finding where a provider's key cannot be had."""
    variable, command = row.get("keyVariable"), row.get("keyCommand")
    if command and program_at(command[0], environ.get("PATH")) is None:
        yield finding(
            "warning", f"{name}: there is no program {command[0]} to print its key", "", "correct its keyCommand"
        )
    elif variable and not command and not environ.get(variable):
        yield finding("warning", f"{name}: its key is not here: {variable} is not set", "", f"export {variable}=KEY")


def _use(model: str) -> str:
    return f'agentctl spawn --driver llm --model {model} "WHAT TO DO"'


def _is_here(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme == "http" and parts.hostname in _HERE


def _answers(urls: Mapping[str, str]) -> dict[str, list[str]]:
    """Return name -> models of those that answer; all are asked at the same time."""
    # What each thread needs is loaded here: where an import fails in one of them, as on a failing disk, another that
    # waited for it goes on with a module that is not whole.
    import encodings.idna  # noqa: F401 - by socket, for the name of a host
    import http.client  # noqa: F401

    found: dict[str, list[str]] = {}

    def ask(name: str, url: str) -> None:
        models = _models_at(url)
        if models is not None:
            found[name] = models

    threads = [threading.Thread(target=ask, args=one, daemon=True) for one in urls.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * _ANSWER_S)
    return {name: found[name] for name in urls if name in found}


def _models_at(url: str) -> list[str] | None:
    """Return the names in the answer to `GET URL/models`; None where nobody answers like a server of models."""
    import http.client

    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=_ANSWER_S)
    try:
        connection.request("GET", f"{parts.path}/models")
        answer = connection.getresponse()
        value = json.loads(answer.read(_MOST_BYTES)) if answer.status == 200 else None
    except (OSError, http.client.HTTPException, ValueError, RecursionError):
        return None
    finally:
        connection.close()
    data: Any = object_in(value).get("data")
    if not isinstance(data, list):
        return None
    names = (text_in(object_in(row).get("id")) for row in list_in(data))
    return [name for name in names if is_model_name(name)]

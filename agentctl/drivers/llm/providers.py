"""The rows of `providers.yaml`: where a model's server is, which API it speaks, and which variable holds its key.

The shipped file has the well-known providers; a person's own file adds rows, or changes keys of a row. No row ever
holds a key itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from agentctl.domain.agent.agentspec import EFFORTS, effort_word
from agentctl.domain.agent.permissions import BadValue
from agentctl.domain.names import is_name
from agentctl.domain.text.numbers import finite
from agentctl.errors import AtTerminal, Next, Refused, UsageError
from agentctl.lean import NamedTuple

CHAT, ANTHROPIC = "chat", "anthropic"
DIALECTS = (CHAT, ANTHROPIC)
PROVIDERS, DEFAULT_MODEL = "providers", "defaultModel"
#: The prices of a model, in US dollars per million tokens.
PRICES = ("input", "output", "cached")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)
_MODEL = re.compile(r"[A-Za-z0-9][\w.:/@\[\]+-]{0,199}", re.ASCII)
_MOST_TOKENS = 1_000_000_000
_DEAREST = 1_000_000
_LONGEST_S = 86_400
_MOST_RETRIES = 100
#: Keys whose mistaken value is not repeated: people paste the key of their account there.
_MAY_BE_SECRET = frozenset({"keyVariable", "keyCommand", "url"})
#: The variables by which other programs, too, are told where a provider's server is.
_URL_VARIABLES = {"openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL"}
#: What a server listens on; a client asks this machine instead.
_EVERY_ADDRESS = frozenset({"0.0.0.0", "::"})  # noqa: S104
HINT = (AtTerminal("agentctl doctor lists the models that answer here"), Next("name a model", "ollama/qwen3"))


class Rows(NamedTuple):
    """The providers by their names, and the model that is taken where none is named."""

    providers: Mapping[str, Mapping[str, Any]]
    default_model: str | None = None


def read_providers(value: Mapping[str, Any], base: Rows | None = None) -> Rows:
    """Return the rows of a file; those of `base` are kept, and a row of the same name is changed key by key.

    Raises:
        BadValue: A key that does not exist, or a value that it cannot have.
    """
    for key in value:
        if key not in {PROVIDERS, DEFAULT_MODEL}:
            raise BadValue((key,), f"unknown key {key!r}; known: {PROVIDERS}, {DEFAULT_MODEL}")
    known = dict(base.providers) if base is not None else {}
    for name, row in _mapping((PROVIDERS,), value.get(PROVIDERS) or {}).items():
        at = (PROVIDERS, name)
        if not is_name(name):
            raise BadValue(at, f"{name!r} is not a name of a provider")
        checked = _checked(at, row, _KEYS)
        merged = {**known.get(name, {}), **checked}
        merged["models"] = {**known.get(name, {}).get("models", {}), **checked.get("models", {})}
        if "url" not in merged:
            raise BadValue(at, f"{name} needs a url")
        known[name] = {"dialect": CHAT, **merged}
    default = value.get(DEFAULT_MODEL)
    if default is not None and (not isinstance(default, str) or "/" not in default):
        raise BadValue((DEFAULT_MODEL,), f"{DEFAULT_MODEL} must be PROVIDER/MODEL, not {default!r}"[:300])
    if default is not None and (name := default.partition("/")[0]) not in known:
        raise BadValue((DEFAULT_MODEL,), f"{DEFAULT_MODEL}: {_no_provider(name, known)}")
    return Rows(known, default or (base.default_model if base is not None else None))


def resolved(rows: Rows, model: str | None, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the provider of `PROVIDER/MODEL` as an order has it: its row with the model's own part, and no key.

    Raises:
        Refused: No model is named, or there is no such provider.
        UsageError: A variable of the environment holds a URL that is not valid.

    >>> rows = Rows({"ollama": {"url": "http://127.0.0.1:11434/v1", "dialect": "chat", "models": {}}})
    >>> resolved(rows, "ollama/org/qwen3", {})["model"]
    'org/qwen3'
    """
    wanted = model or rows.default_model
    if not wanted:
        raise Refused("the driver llm needs a model: none is named", hint=HINT)
    name, slash, own = wanted.partition("/")
    if not slash:
        raise Refused(f"{wanted!r} is not PROVIDER/MODEL"[:300], hint=HINT)
    if name not in rows.providers:
        hint = ("~/.config/agentctl/providers.yaml may have rows of your own", *HINT)
        raise Refused(_no_provider(name, rows.providers), hint=hint)
    if not is_model_name(own):
        raise Refused(f"{own!r} cannot be the name of a model"[:300], hint=HINT)
    row = rows.providers[name]
    url = url_of(name, row, environ)
    kept = {key: value for key, value in row.items() if key not in {"models", "url"} and value is not False}
    return {"name": name, **kept, "url": url, "model": own, **row.get("models", {}).get(own, {})}


def _no_provider(name: str, known: Iterable[str]) -> str:
    import difflib  # Only for a mistake.

    close = difflib.get_close_matches(name, known, 1, cutoff=0.75)  # `nope` is not meant for `openai`.
    meant = f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}"
    return f"there is no provider {name[:100]!r}; {meant}"[:600]


def is_model_name(text: str) -> bool:
    """Return whether a text can be the name of a model: it is shown, and is a word of a command line.

    >>> is_model_name("qwen3:8b"), is_model_name("--root")
    (True, False)
    """
    return _MODEL.fullmatch(text) is not None


def url_of(name: str, row: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """Return where a provider is: by its variable in the environment, else by its row.

    >>> url_of("ollama", {"url": "http://127.0.0.1:11434/v1"}, {"OLLAMA_HOST": "10.0.0.7"})
    'http://10.0.0.7:11434/v1'
    """
    variable = "OLLAMA_HOST" if name == "ollama" else _URL_VARIABLES.get(name, "")
    given = environ.get(variable, "")
    if not given:
        return str(row["url"]).rstrip("/")
    try:
        return (_of_ollama(given) if name == "ollama" else _url(given)).rstrip("/")
    except _Mistaken as error:
        raise UsageError(f"{variable} must be {error}", hint=f"unset {variable}, or correct it") from error


def _of_ollama(given: str) -> str:
    """Return the URL that Ollama's own variable means: `HOST`, `HOST:PORT` or a URL; 0.0.0.0 is this machine."""
    parts = urlsplit(_url(given if "://" in given else f"http://{given}"))
    host = "127.0.0.1" if parts.hostname in _EVERY_ADDRESS else str(parts.hostname)
    host = f"[{host}]" if ":" in host else host
    port = parts.port or (443 if parts.scheme == "https" else 11434)
    return f"{parts.scheme}://{host}:{port}{parts.path.rstrip('/')}/v1"


def login_of(provider: Mapping[str, Any], environ: Mapping[str, str]) -> list[str]:
    """Return the texts that identify the account at a provider: its address, and its key or what prints that."""
    command = provider.get("keyCommand") or []
    key = environ.get(str(provider.get("keyVariable")), "")
    return [str(provider.get("name")), str(provider.get("url")), key, *map(str, command)]


def missing_key(provider: Mapping[str, Any], environ: Mapping[str, str]) -> str | None:
    """Return the variable that has to hold the key of a provider and does not; None where nothing is missing.

    >>> missing_key({"keyVariable": "A_KEY"}, {}), missing_key({"keyVariable": "A_KEY", "local": True}, {})
    ('A_KEY', None)
    """
    variable = provider.get("keyVariable")
    is_optional = not variable or provider.get("keyCommand") or provider.get("local")
    return None if is_optional or environ.get(str(variable), "").strip() else str(variable)


def has_prices(provider: Mapping[str, Any]) -> bool:
    """Return whether it is known what a request costs: by the row, or because the provider says so."""
    return bool(provider.get("prices")) or bool(provider.get("tellsCost")) or bool(provider.get("local"))


# -- the values of a row ---------------------------------------------------------------------------------------


class _Mistaken(ValueError):
    """A value is not what its key needs; the message says what that is."""


def _mapping(at: tuple[str, ...], value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadValue(at, f"{'.'.join(at)} must be a mapping, not {value!r}"[:300])
    return value


def _checked(at: tuple[str, ...], value: Any, checks: Mapping[str, Callable[[Any], Any]]) -> dict[str, Any]:
    found = {}
    for key, item in _mapping(at, value).items():
        if key not in checks:
            raise BadValue((*at, key), f"{'.'.join(at)} has an unknown key {key!r}; known: {', '.join(checks)}")
        try:
            found[key] = checks[key](item)
        except _Mistaken as error:
            shown = "" if key in _MAY_BE_SECRET else f", not {item!r}"
            raise BadValue((*at, key), f"{'.'.join((*at, key))} must be {error}{shown}"[:300]) from error
        except BadValue as error:  # Its message begins with the rest of the path, if there is one.
            dot = "" if error.message.startswith(" ") else "."
            raise BadValue((*at, key, *error.keys), f"{'.'.join((*at, key))}{dot}{error.message}") from error
    return found


def _dialect(value: Any) -> str:
    if value not in DIALECTS:
        raise _Mistaken(f"one of {', '.join(DIALECTS)}")
    return str(value)


def _url(value: Any) -> str:
    problem = _Mistaken("a URL: http(s)://HOST[:PORT][/PATH], without a login or a query")
    if not isinstance(value, str) or not value.isprintable() or " " in value:
        raise problem
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        raise problem from None
    is_plain = parts.scheme in {"http", "https"} and parts.hostname and "@" not in parts.netloc and port != 0
    if not is_plain or parts.query or parts.fragment:
        raise problem
    return value


def _variable(value: Any) -> str:
    if not isinstance(value, str) or not _VARIABLE.fullmatch(value):
        raise _Mistaken("the name of a variable of the environment (the key itself is never in a file)")
    return value


def _command(value: Any) -> list[str]:
    is_argv = isinstance(value, list) and value and all(isinstance(word, str) and "\0" not in word for word in value)
    if not is_argv or not value[0]:
        raise _Mistaken("a list: a program that prints the key, and its arguments")
    return list(value)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise _Mistaken("a line of text")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Mistaken("true or false")
    return value


def _number(most: float) -> Callable[[Any], float]:
    def check(value: Any) -> float:
        number = finite(value)
        if number is None or not 0 <= number <= most:
            raise _Mistaken(f"a number from 0 to {most:g}")
        return number

    return check


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _MOST_RETRIES:
        raise _Mistaken(f"a whole number from 0 to {_MOST_RETRIES}")
    return value


def _tokens(value: Any) -> int:
    if type(value) is not int or not 0 < value <= _MOST_TOKENS:
        raise _Mistaken("a number of tokens")
    return value


def _effort(value: Any) -> str:
    word = effort_word(value)
    if word is None:
        raise _Mistaken(f"one of {', '.join(EFFORTS)}")
    return word


def _prices(value: Any) -> dict[str, float]:
    return _checked((), value, dict.fromkeys(PRICES, _number(_DEAREST)))


def _models(value: Any) -> dict[str, dict[str, Any]]:
    return {str(name): _checked((str(name),), row, _MODEL_KEYS) for name, row in _mapping((), value).items()}


_MODEL_KEYS: dict[str, Callable[[Any], Any]] = {
    "context": _tokens, "output": _tokens, "prices": _prices, "effort": _effort,
}  # fmt: skip
_KEYS: dict[str, Callable[[Any], Any]] = {
    "dialect": _dialect,
    "url": _url,
    "keyVariable": _variable,
    "keyCommand": _command,
    "local": _flag,
    "start": _text,
    "tellsCost": _flag,
    "keepsThoughts": _flag,
    "answerSeconds": _number(_LONGEST_S),
    "retries": _count,
    "models": _models,
}

"""At stake: keys and conversations go where the person has said, and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.domain.agent.permissions import BadValue
from agentctl.drivers.llm.providers import Rows, has_prices, login_of, read_providers, resolved, url_of
from agentctl.errors import Refused, UsageError
from agentctl.operations.where.model_providers import provider_rows

ROW = {"url": "http://127.0.0.1:1/v1"}


def test_the_shipped_rows_are_well_formed(root: Any) -> None:
    rows = provider_rows().providers
    assert {"ollama", "llamacpp", "vllm", "lmstudio", "openai", "anthropic", "openrouter"} <= rows.keys()
    for row in rows.values():
        is_here = row["url"].startswith("http://127.0.0.1:")
        assert is_here == bool(row.get("local"))
        assert is_here or (row["url"].startswith("https://") and row["keyVariable"].endswith("_API_KEY"))
        assert "keyCommand" not in row


def test_a_persons_row_changes_what_it_names() -> None:
    base = read_providers({"providers": {"a": {**ROW, "keyVariable": "A_KEY", "models": {"m": {"context": 5}}}}})
    rows = read_providers({"providers": {"a": {"models": {"n": {"context": 6}}}}, "defaultModel": "a/n"}, base)
    assert rows.providers["a"]["keyVariable"] == "A_KEY"
    assert resolved(rows, None, {})["context"] == 6
    assert resolved(rows, "a/m", {})["context"] == 5


@pytest.mark.parametrize(
    ("value", "keys"),
    [
        ({"provider": {}}, ("provider",)),
        ({"providers": {"a": {}}}, ("providers", "a")),
        ({"providers": {"a": {**ROW, "key": "sk-1"}}}, ("providers", "a", "key")),
        ({"providers": {"a": {"url": "ftp://x"}}}, ("providers", "a", "url")),
        ({"providers": {"a": {"url": "https://me:secret@x"}}}, ("providers", "a", "url")),
        ({"providers": {"a": {"url": "https://x/v1?key=secret"}}}, ("providers", "a", "url")),
        ({"providers": {"a": {**ROW, "keyVariable": "sk-1 2"}}}, ("providers", "a", "keyVariable")),
        ({"providers": {"a": {**ROW, "keyCommand": "pass show key"}}}, ("providers", "a", "keyCommand")),
        ({"providers": {"a": {**ROW, "dialect": "gemini"}}}, ("providers", "a", "dialect")),
        ({"providers": {"a": {**ROW, "models": {"m": {"context": -1}}}}}, ("providers", "a", "models", "m", "context")),
        ({"defaultModel": "qwen3"}, ("defaultModel",)),
        ({"defaultModel": "b/m"}, ("defaultModel",)),
    ],
)
def test_a_mistake_names_its_place(value: dict[str, Any], keys: tuple[str, ...]) -> None:
    with pytest.raises(BadValue) as caught:
        read_providers(value)
    assert caught.value.keys == keys
    assert not re.search("secret|sk-", caught.value.message)


@pytest.mark.parametrize(
    ("models", "said"),
    [
        (["m"], "providers.a.models must be a mapping, not ['m']"),
        ({"m": 1}, "providers.a.models.m must be a mapping, not 1"),
        ({"m": {"prices": {"x": 1}}}, "providers.a.models.m.prices has an unknown key 'x'"),
        ({"m": {"prices": {"input": -1}}}, "providers.a.models.m.prices.input must be a number from 0 to"),
    ],
)
def test_a_mistake_is_told_with_its_whole_path(models: Any, said: str) -> None:
    with pytest.raises(BadValue) as caught:
        read_providers({"providers": {"a": {**ROW, "models": models}}})
    assert caught.value.message.startswith(said)


@pytest.mark.parametrize("key", ["keyVariable", "keyCommand", "url"])
def test_what_may_be_a_key_is_not_repeated(key: str) -> None:
    with pytest.raises(BadValue) as caught:
        read_providers({"providers": {"a": {**ROW, key: "sk-abc-123"}}})
    assert f"providers.a.{key} must be" in caught.value.message
    assert "sk-abc-123" not in caught.value.message


def test_a_provider_that_is_none_is_told_with_one_that_may_be_meant() -> None:
    rows = Rows({"standin": ROW, "other": ROW})
    with pytest.raises(Refused, match="there is no provider 'stnadin'; did you mean standin"):
        resolved(rows, "stnadin/m", {})
    with pytest.raises(Refused, match="there is no provider 'x'; known: standin, other"):
        resolved(rows, "x/m", {})


JSON: Callable[[], Any] = lambda: st.recursive(  # noqa: E731
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["providers", "url", "models", "context", "keyCommand", "prices", "a"]), inner),
    ),
    max_leaves=12,
)


@given(JSON())
def test_any_value_is_read_or_refused(value: Any) -> None:
    try:
        read_providers({"providers": value})
    except BadValue:
        pass


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("box:1234", "http://box:1234/v1"),
        ("https://models.lab/ollama/", "https://models.lab:443/ollama/v1"),
        ("[::1]:80", "http://[::1]:80/v1"),
    ],
)
def test_ollamas_own_variable_names_its_server(host: str, url: str) -> None:
    assert url_of("ollama", ROW, {"OLLAMA_HOST": host}) == url


@pytest.mark.parametrize("given", ["file:///etc", "http://", "a b", "http://me:x@host", "http://h:99999"])
def test_a_variable_that_holds_no_url_is_an_error(given: str) -> None:
    with pytest.raises(UsageError):
        url_of("openai", ROW, {"OPENAI_BASE_URL": given})


@pytest.mark.parametrize("model", [None, "", "qwen3", "nobody/x", "a/", "a/--option", "a/x y"])
def test_what_is_no_model_is_refused(model: str | None) -> None:
    with pytest.raises(Refused) as caught:
        resolved(Rows({"a": {**ROW, "models": {}}}), model, {})
    assert "agentctl doctor" in str(caught.value.hint)


def test_the_account_is_the_key_at_its_provider() -> None:
    row = {"name": "a", "url": "https://a", "keyVariable": "A_KEY"}
    logins = [login_of({**row, **more}, {"A_KEY": key}) for more in ({}, {"url": "https://b"}) for key in ("x", "y")]
    assert len({tuple(login) for login in logins}) == 4


def test_a_key_is_never_in_what_an_order_holds() -> None:
    rows = read_providers({"providers": {"a": {**ROW, "keyVariable": "A_KEY"}}})
    assert "sk-123456789" not in str(resolved(rows, "a/m", {"A_KEY": "sk-123456789"}))


def test_it_is_known_whether_a_limit_of_money_can_be_kept() -> None:
    assert [has_prices(row) for row in ({}, {"prices": {"input": 1}}, {"tellsCost": True}, {"local": True})] == [
        False, True, True, True,
    ]  # fmt: skip

"""At stake: what a browser has kept of a page opens one again only where that page is there, or was just now."""

from __future__ import annotations

import pytest

from agentctl.interfaces.web.login import Login, new_link, new_token, proof
from agentctl.interfaces.web.page_sessions import PageSession, PageSessions, Signed

ORIGIN = "http://127.0.0.1:8080"


class Browser:
    """A browser that has what it keeps on its disk: a cookie, and the secret of a session."""

    def __init__(self) -> None:
        self.now = 1e9
        self.login = Login(new_token(), "agentctl", "x" * 22)
        self.sessions = PageSessions(self.login, lambda: self.now)
        self.cookies: list[str] = []
        self.name, self.again = self.enters("token", self.login.token)
        self.session = self.signed("GET", 1).session

    def enters(self, name: str, secret: str) -> tuple[str, str]:
        """Enter by a secret; return the name and the secret with which it can enter again."""
        nonce = "n" * 22
        own, shown = self.sessions.begin(name, nonce, ORIGIN, self.cookies) or ("", "")
        assert shown == proof(secret, "server", name, ORIGIN, nonce, own), "it may not"
        entered = self.sessions.enter(own, proof(secret, "page", name, ORIGIN, nonce, own), self.cookies)
        assert entered is not None
        self.key, self.id, self.cookies = proof(secret, "session", nonce, own), entered.session, [entered.cookie]
        return f"session.{entered.session}", proof(self.key, "again")

    def signed(self, method: str, number: int) -> Signed:
        """Sign a request."""
        shown = f"{self.id}.{number}.{proof(self.key, 'ask', method, '/', str(number))}"
        found = self.sessions.signed(shown, method, "/", self.cookies)
        assert found is not None
        return found

    def may_return(self) -> bool:
        """Whether the server would let what is on the disk in."""
        return self.sessions.begin(self.name, "n" * 22, ORIGIN, self.cookies) is not None


def test_a_page_that_is_loaded_anew_enters_by_what_was_kept() -> None:
    browser = Browser()
    with browser.sessions.asking(browser.signed("GET", 2)):
        browser.now += 3600
    browser.now += 30
    assert browser.may_return()
    browser.name, browser.again = browser.enters(browser.name, browser.again)
    assert browser.may_return()


def test_another_tab_enters_while_a_page_is_there_however_long_it_asks_for_nothing_new() -> None:
    browser = Browser()
    with browser.sessions.asking(browser.signed("GET", 2)):  # The stream.
        with browser.sessions.asking(browser.signed("GET", 3)):
            pass
        browser.now += 86_400
        assert browser.may_return()


@pytest.mark.parametrize("is_asking", [False, True])
def test_a_minute_after_its_last_page_nothing_that_was_kept_opens_anything(is_asking: bool) -> None:
    browser = Browser()
    if is_asking:
        with browser.sessions.asking(browser.signed("GET", 2)):
            browser.now += 3600
    browser.now += 60
    assert not browser.may_return()
    assert not browser.session.may_return(browser.now)


def test_a_page_that_was_asleep_signs_on() -> None:
    browser = Browser()
    browser.now += 86_400
    assert isinstance(browser.signed("GET", 2).session, PageSession)
    with browser.sessions.asking(browser.signed("GET", 3)):
        assert browser.may_return()


# -- a page that is greeted in index.html ------------------------------------------------------------------------------


class Greeted(Browser):
    """A browser that loads a page anew, with the question that the last one has left."""

    def greeted(self, nonce: str = "m" * 22) -> str:
        """Be greeted; return the secret of the session before."""
        before, name = self.again, self.name
        own, shown = self.sessions.greet(f"{self.id}.{nonce}", self.cookies) or ("", "")
        assert shown == proof(before, "server", name, ORIGIN, nonce, own)
        self.id, self.key = own, proof(before, "session", nonce, own)
        return before


def test_a_page_that_is_greeted_is_in_with_its_first_requests() -> None:
    browser = Greeted()
    browser.greeted()
    second, first = browser.signed("GET", 2), browser.signed("GET", 1)
    assert first.session is second.session
    assert browser.sessions.of(browser.id) is first.session
    assert first.proof == proof(browser.key, "answer", "1")
    with pytest.raises(AssertionError):
        browser.signed("GET", 1)


def test_who_is_greeted_and_does_not_know_the_secret_is_nobody() -> None:
    browser = Greeted()
    browser.greeted()
    browser.key = proof(browser.key, "x")
    with pytest.raises(AssertionError):
        browser.signed("GET", 1)
    assert browser.sessions.of(browser.id) is None


@pytest.mark.parametrize("asked", ["", ".", "x" * 22, "x" * 22 + "." + "n" * 22])
def test_who_was_not_there_is_not_greeted(asked: str) -> None:
    browser = Greeted()
    assert browser.sessions.greet(asked, browser.cookies) is None


def test_nobody_is_greeted_without_the_cookie_or_a_minute_after_the_last_page() -> None:
    browser = Greeted()
    asked = f"{browser.id}.{'n' * 22}"
    assert browser.sessions.greet(asked, []) is None
    assert browser.sessions.greet(asked.replace("n" * 22, "short"), browser.cookies) is None
    browser.now += 60
    assert browser.sessions.greet(asked, browser.cookies) is None


def test_a_greeting_counts_for_a_minute_and_not_after_a_logout() -> None:
    for ends in (lambda one: setattr(one, "now", one.now + 61), lambda one: one.sessions.leave(one.cookies)):
        browser = Greeted()
        browser.greeted()
        ends(browser)
        with pytest.raises(AssertionError):
            browser.signed("GET", 1)


@pytest.mark.parametrize("name", ["token", "code"])
def test_a_signature_proves_nothing_where_a_link_or_the_token_was_begun_with(name: str) -> None:
    """They are used up by their own proof."""
    browser = Browser()
    secret = browser.login.token
    if name == "code":
        link = new_link("", secret, browser.login.start, browser.now).partition("#")[2]
        name, secret = f"code.{link[:16]}", link[16:]
    own, _ = browser.sessions.begin(name, "n" * 22, ORIGIN, browser.cookies) or ("", "")
    browser.id, browser.key = own, proof(secret, "session", "n" * 22, own)
    with pytest.raises(AssertionError):
        browser.signed("GET", 1)

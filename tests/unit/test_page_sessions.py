"""At stake: what a browser has kept of a page opens one again only where that page is there, or was just now."""

from __future__ import annotations

import pytest

from agentctl.interfaces.web.login import Login, new_token, proof
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

"""Who gets in: nobody without the token, nobody from another site, and nothing that can be guessed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from rankscope.errors import UsageError
from rankscope_dashboard.auth import COOKIE, cookie_holds, make_cookie, same_text
from rankscope_dashboard.server import ServerOptions, check_options
from support.command import rankscope
from support.dashboard_server import DashboardServer, running_server

TOKEN = "a-secret-of-sixteen-or-more"  # noqa: S105
ROUTES = [
    ("GET", "/api/v1/runs"),
    ("POST", "/api/v1/runs"),
    ("GET", "/api/v1/runs/20260101T000000-000000000000"),
    ("DELETE", "/api/v1/runs/20260101T000000-000000000000"),
    ("PUT", "/api/v1/runs/20260101T000000-000000000000/files/0"),
    ("GET", "/api/v1/openapi.json"),
    ("GET", "/"),
    ("GET", "/?run=1&view=overview"),
    ("GET", "/_stcore/health"),
    ("GET", "/_stcore/host-config"),
    ("PUT", "/_stcore/upload_file/a/b"),
    ("GET", "/static/index.html"),
    ("GET", "/nowhere"),
]

FOREIGN_TARGETS = ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:x", "/a\nb"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DashboardServer]:
    with running_server(tmp_path_factory.mktemp("locked") / "store", token=TOKEN) as server:
        yield server


@pytest.fixture(scope="module")
def open_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DashboardServer]:
    with running_server(tmp_path_factory.mktemp("open") / "store") as server:
        yield server


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize("header", [None, "Bearer wrong", "Bearer", "Basic YTpi", f"Bearer {TOKEN}x", TOKEN])
def test_no_route_without_the_token(
    server: DashboardServer, method: str, path: str, header: str | None
) -> None:
    headers = {} if header is None else {"authorization": header}
    answer = httpx.request(method, server.url + path, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["error"] == "unauthorized"


def test_a_made_up_cookie_opens_nothing(server: DashboardServer) -> None:
    for value in ("", "x", "99999999999.abc", make_cookie("another token of length")):
        answer = httpx.get(f"{server.url}/api/v1/runs", cookies={COOKIE: value})
        assert answer.status_code == 401


def test_the_token_opens_every_route(server: DashboardServer) -> None:
    headers = {"authorization": f"Bearer {TOKEN}"}
    assert httpx.get(f"{server.url}/api/v1/runs", headers=headers).status_code == 200
    assert httpx.get(f"{server.url}/", headers=headers).status_code == 200
    assert httpx.delete(f"{server.url}{ROUTES[2][1]}", headers=headers).status_code == 404


def test_health_needs_no_token(server: DashboardServer) -> None:
    assert httpx.get(f"{server.url}/api/v1/health").json()["status"] == "ok"


def test_a_page_sends_a_browser_to_the_login_and_back(server: DashboardServer) -> None:
    with httpx.Client(base_url=server.url, headers={"accept": "text/html"}) as browser:
        sent = browser.get("/?run=7&view=overlap")
        assert sent.status_code == 303
        form = browser.get(sent.headers["location"])
        assert 'value="/?run=7&amp;view=overlap"' in form.text
        wrong = browser.post("/login", data={"token": "nonsense", "next": "/?run=7"})
        assert (wrong.status_code, COOKIE in browser.cookies) == (401, False)
        right = browser.post("/login", data={"token": TOKEN, "next": "/?run=7&view=overlap"})
        assert (right.status_code, right.headers["location"]) == (303, "/?run=7&view=overlap")
        assert "httponly" in right.headers["set-cookie"].lower()
        assert "samesite=lax" in right.headers["set-cookie"].lower()
        assert TOKEN not in right.headers["set-cookie"]
        assert browser.get("/api/v1/runs").status_code == 200


def test_a_link_with_the_token_loses_it_at_once(server: DashboardServer) -> None:
    with httpx.Client(base_url=server.url) as browser:
        answer = browser.get("/", params={"run": "7", "token": TOKEN})
        assert (answer.status_code, answer.headers["location"]) == (303, "/?run=7")
        assert browser.get("/api/v1/runs").status_code == 200
    assert httpx.get(f"{server.url}/", params={"token": "wrong"}).status_code == 401


@pytest.mark.parametrize("target", FOREIGN_TARGETS)
def test_the_login_leads_to_no_other_site(server: DashboardServer, target: str) -> None:
    answer = httpx.post(f"{server.url}/login", data={"token": TOKEN, "next": target})
    assert answer.headers["location"] == "/"


def test_the_login_form_shows_hostile_text_as_text(server: DashboardServer) -> None:
    form = httpx.get(f"{server.url}/login", params={"next": '"><script>alert(1)</script>'})
    assert "<script>alert" not in form.text


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"origin": "http://127.0.0.1:1"},  # another server on this machine
    ],
)
def test_other_sites_cannot_use_the_browser_of_a_visitor(
    server: DashboardServer, open_server: DashboardServer, headers: dict[str, str]
) -> None:
    for target, cookies in ((server, {COOKIE: make_cookie(TOKEN)}), (open_server, {})):
        answer = httpx.post(f"{target.url}/api/v1/runs", headers=headers, cookies=cookies, content=b"{}")
        assert (answer.status_code, answer.json()["error"]) == (403, "other-site")


def test_the_pages_own_requests_pass(open_server: DashboardServer) -> None:
    headers = {"origin": open_server.url, "sec-fetch-site": "same-origin"}
    answer = httpx.post(f"{open_server.url}/api/v1/runs", headers=headers, json={"name": "x"})
    assert answer.status_code == 201


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8501", "127.0.0.1.evil.example", ""])
def test_without_a_token_the_server_answers_to_its_own_name_only(
    open_server: DashboardServer, host: str
) -> None:
    answer = httpx.get(f"{open_server.url}/api/v1/runs", headers={"host": host})
    assert answer.status_code in (400, 421)  # no name at all is no HTTP


def test_the_pages_socket_is_closed_to_others(server: DashboardServer, open_server: DashboardServer) -> None:
    upgrade = {
        "connection": "Upgrade",
        "upgrade": "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    refused = httpx.get(f"{server.url}/_stcore/stream", headers=upgrade)
    assert refused.status_code == 403
    foreign = httpx.get(
        f"{open_server.url}/_stcore/stream", headers={**upgrade, "origin": "https://evil.example"}
    )
    assert foreign.status_code == 403


def test_answers_say_how_browsers_must_take_them(server: DashboardServer) -> None:
    for path in ("/api/v1/health", "/login", "/api/v1/runs"):
        headers = httpx.get(server.url + path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "SAMEORIGIN"


def test_cookies_end_and_hold_for_one_token_only() -> None:
    cookie = make_cookie(TOKEN, now=1_000)
    month = 30 * 24 * 3600
    assert cookie_holds(cookie, TOKEN, now=1_000 + month - 1)
    assert not cookie_holds(cookie, TOKEN, now=1_000 + month)
    assert not cookie_holds(cookie, TOKEN + "x", now=1_000)
    assert not cookie_holds("9" + cookie, TOKEN, now=1_000)  # a later end, the old signature


def test_equal_texts_whatever_their_characters() -> None:
    assert same_text("ü", "ü")
    assert not same_text("u", "ü")
    assert not same_text("\ud800", "x")


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::", "example.org", ""])  # noqa: S104
def test_a_server_for_others_needs_a_token(host: str) -> None:
    with pytest.raises(UsageError, match="a token is required"):
        check_options(ServerOptions(store="x", host=host))
    check_options(ServerOptions(store="x", host=host, token=TOKEN))


def test_a_token_that_can_be_guessed_is_refused() -> None:
    with pytest.raises(UsageError, match="can be guessed"):
        check_options(ServerOptions(store="x", token="short"))  # noqa: S106


def test_the_command_refuses_before_it_listens(tmp_path: Path) -> None:
    done = rankscope("dashboard", "--store", tmp_path / "s", "--host", "0.0.0.0", RANKSCOPE_TOKEN="")  # noqa: S104
    assert done.returncode == 2
    assert "a token is required" in done.stderr
    empty = tmp_path / "token"
    empty.touch()
    done = rankscope("dashboard", "--store", tmp_path / "s", "--token-file", empty)
    assert (done.returncode, "is empty" in done.stderr) == (2, True)

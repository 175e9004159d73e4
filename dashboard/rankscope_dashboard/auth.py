"""Who may come in: a token for programs, a signed cookie for browsers, and nobody from other sites.

Without a token the server listens on this machine only, and then still refuses requests that other web pages
make the user's browser send.
"""

from __future__ import annotations

import hashlib
import hmac
import html
import time
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request, cookie_parser
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "rankscope_access"
LOGIN_PATH = "/login"
SHORTEST_TOKEN = 16
_COOKIE_SECONDS = 30 * 24 * 3600
_OPEN_PATHS = frozenset({LOGIN_PATH, "/api/v1/health"})
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_MOST_LOGIN_BYTES = 8192

_SECURITY_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "SAMEORIGIN",
    "referrer-policy": "same-origin",
}


class Access:
    """ASGI middleware that lets in those who know the token.

    Args:
        app: what is protected.
        token: the token; None lets everybody on this machine in.
        hosts: names by which the server may be called where there is no token.
    """

    def __init__(self, app: ASGIApp, token: str | None, hosts: frozenset[str]) -> None:
        self._app = app
        self._token = token
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        refusal = self._refuse(scope)
        if refusal is None:
            await self._app(scope, receive, _with_security_headers(send))
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": "not allowed"})
        else:
            await refusal(scope, receive, _with_security_headers(send))

    def _refuse(self, scope: Scope) -> Response | None:
        """The answer to a request that may not pass; None if it may."""
        headers = Headers(scope=scope)
        if self._token is None and _host_name(headers.get("host", "")) not in self._hosts:
            return _error(421, "wrong-host", "this server answers to the name localhost only")
        bearer = headers.get("authorization", "")
        if self._token is not None and bearer.lower().startswith("bearer "):
            # Browsers add this header for no other site, so where it comes from does not matter.
            return None if same_text(bearer[7:].strip(), self._token) else self._ask_for_token(scope, headers)
        if _is_from_another_site(scope, headers):
            return _error(403, "other-site", "the request comes from a page of another site")
        if self._token is None or scope["path"] in _OPEN_PATHS:
            return None
        if cookie_holds(_cookie(headers), self._token):
            return None
        return self._follow_link(scope) or self._ask_for_token(scope, headers)

    def _follow_link(self, scope: Scope) -> Response | None:
        """For a page's link with ?token=...: the cookie, and the same link without the token."""
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        token = dict(query).get("token")
        if self._token is None or token is None or scope["type"] != "http" or scope["method"] != "GET":
            return None
        if not same_text(token, self._token):
            return None
        rest = urlencode([pair for pair in query if pair[0] != "token"])
        response = RedirectResponse(_local_path(scope["path"]) + (f"?{rest}" if rest else ""), 303)
        _set_cookie(response, self._token, scope)
        return response

    def _ask_for_token(self, scope: Scope, headers: Headers) -> Response:
        is_page = (
            scope["type"] == "http" and scope["method"] == "GET" and "text/html" in headers.get("accept", "")
        )
        if is_page and not scope["path"].startswith("/api/"):
            query = scope["query_string"].decode("latin-1")
            wanted = _local_path(scope["path"]) + (f"?{query}" if query else "")
            return RedirectResponse(f"{LOGIN_PATH}?next={quote(wanted, safe='')}", 303)
        response = _error(
            401, "unauthorized", "the token is missing or wrong; send it as Authorization: Bearer TOKEN"
        )
        response.headers["www-authenticate"] = "Bearer"
        return response


class Login:
    """The page that asks a browser for the token."""

    def __init__(self, token: str | None) -> None:
        self._token = token

    async def show(self, request: Request) -> Response:
        """The empty form."""
        return _login_page(request.query_params.get("next", "/"), "", 200)

    async def accept(self, request: Request) -> Response:
        """The cookie for the right token, the form again for a wrong one."""
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > _MOST_LOGIN_BYTES:
                return _login_page("/", "That is no token.", 413)
        fields = dict(parse_qsl(body.decode("utf-8", "replace")))
        wanted = _local_path(fields.get("next", "/"))
        if self._token is None:
            return RedirectResponse(wanted, 303)
        if not same_text(fields.get("token", "").strip(), self._token):
            return _login_page(wanted, "That is not the token.", 401)
        response = RedirectResponse(wanted, 303)
        _set_cookie(response, self._token, request.scope)
        return response


def same_text(given: str, expected: str) -> bool:
    """Whether two texts are equal, in a time that does not depend on where they differ."""
    digests = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in (given, expected)]
    return hmac.compare_digest(*digests)


def make_cookie(token: str, now: float | None = None) -> str:
    """A value that only who knows the token can make: when it ends, and a signature of that."""
    ends = str(int((time.time() if now is None else now) + _COOKIE_SECONDS))
    return f"{ends}.{_sign(token, ends)}"


def cookie_holds(value: str, token: str, now: float | None = None) -> bool:
    """Whether a cookie was made with this token and has not ended."""
    ends, _, signature = value.partition(".")
    if not same_text(signature, _sign(token, ends)) or not (ends.isascii() and ends.isdigit()):
        return False
    return int(ends) > (time.time() if now is None else now)


def _sign(token: str, text: str) -> str:
    return hmac.new(
        token.encode(), f"rankscope cookie {text}".encode("utf-8", "replace"), "sha256"
    ).hexdigest()


def _cookie(headers: Headers) -> str:
    return cookie_parser(headers.get("cookie", "")).get(COOKIE, "")


def _set_cookie(response: Response, token: str, scope: Scope) -> None:
    response.set_cookie(
        COOKIE,
        make_cookie(token),
        max_age=_COOKIE_SECONDS,
        httponly=True,
        samesite="lax",
        secure=scope.get("scheme") in ("https", "wss"),
    )


def _host_name(host: str) -> str:
    """The name in a Host header or an Origin, without the port."""
    name = host.rpartition("@")[2]
    if name.startswith("["):
        return name[1:].partition("]")[0].lower()
    return name.partition(":")[0].lower()


def _is_from_another_site(scope: Scope, headers: Headers) -> bool:
    is_harmless = scope["type"] == "http" and scope["method"] in _SAFE_METHODS
    origin = headers.get("origin")
    if is_harmless or origin is None:
        return not is_harmless and headers.get("sec-fetch-site") in ("cross-site", "same-site")
    return origin.partition("://")[2].lower() != headers.get("host", "").lower()


def _local_path(path: str) -> str:
    r"""The path if it stays on this server, else "/": "//other.example" and "/\\other.example" would not."""
    is_local = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return quote(path, safe="/?&=%~:+,;@!$'()*") if is_local else "/"


def _error(status: int, kind: str, message: str) -> Response:
    return JSONResponse({"error": kind, "message": message}, status)


def _with_security_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _SECURITY_HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers


def _login_page(wanted: str, message: str, status: int) -> Response:
    return HTMLResponse(
        f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>rankscope</title>
<meta name="viewport" content="width=device-width">
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px system-ui, sans-serif; display: grid; place-items: center; min-height: 90vh; margin: 0; }}
form {{ display: grid; gap: .75rem; width: min(22rem, 90vw); }}
input, button {{ font: inherit; padding: .5rem; }}
p {{ margin: 0; }}
</style></head><body>
<form method="post" action="{LOGIN_PATH}">
<h1>rankscope</h1>
<label for="token">Token of this dashboard</label>
<input id="token" name="token" type="password" autocomplete="current-password" autofocus required>
<input type="hidden" name="next" value="{html.escape(wanted)}">
<button type="submit">Open</button>
<p role="alert">{html.escape(message)}</p>
</form></body></html>""",
        status,
    )

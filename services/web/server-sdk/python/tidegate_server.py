"""Tidegate for Python back ends: sealed tokens, webhooks and the REST API. Needs `pip install cryptography`.

The same calls as the npm package @tidegate/server. Python 3.9 and later.
"""

from __future__ import annotations

import base64
import binascii
import calendar
import email.utils
import hashlib
import hmac
import http.client
import json
import math
import random
import re
import struct
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
import zlib
from dataclasses import dataclass
from typing import Any, Callable, Iterator, Literal, Mapping, Optional, Sequence, Union

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

Json = dict[str, Any]
Reason = Literal["missing", "unreadable", "expired", "wrong_binding", "already_used"]

_LABEL = b"foil-sealed-results-v2\0"
_NONCE, _TAG, _ID, _HEADER, _RECIPIENT = 12, 16, 32, 19, 92
_MAX_PAYLOAD = 4 * 1024 * 1024


class TokenError(Exception):
    """The token is not sealed to this key, or was changed."""


class WebhookError(Exception):
    """The delivery is not signed with the secret, is too old, or was changed. Answer 401."""


class _Unset:
    pass


_UNSET = _Unset()


@dataclass(frozen=True)
class Verification:
    """`session` is None if `ok` is false; `message` is for your log, not for the visitor."""

    ok: bool
    session: Optional[Json] = None
    reason: Optional[Reason] = None
    message: str = ""


def verify_token(
    token: Optional[str],
    *,
    secret_key: str,
    max_age: float = 300,
    binding: Union[str, None, _Unset] = _UNSET,
    seen: Optional[Callable[[str, int], bool]] = None,
    now: Optional[float] = None,
) -> Verification:
    """Opens a sealed token and verifies that it is recent and belongs to this request.

    `max_age`: seconds that a token is good for after its decision, and that clocks may differ.
    `binding`: the text that the page passed to `getSession({ binding })`.
    `seen(id, ttl)` makes a token count once: it adds the id to a store that all your processes share, in one atomic
    step, for `ttl` seconds, and returns True if the id was there before. With Redis:
    `lambda id, ttl: redis.set(id, 1, nx=True, ex=ttl) is None`. If it raises, so does this call.
    """
    if token is None or token == "":
        return _refused("missing", "there is no token: the page could not reach Tidegate, or left it out")
    try:
        session = open_token(token, secret_key)
    except TokenError as error:
        return _refused("unreadable", str(error))
    decision = session["decision"]
    age = (time.time() if now is None else now) - _epoch(decision["evaluated_at"])
    if not abs(age) <= max_age:
        return _refused("expired", f"the token is {age:.0f} s old, and may be {max_age:g} s old")
    made_with = (session.get("hand_off") or {}).get("binding")
    # A binding that is None was lost, as with a session that ended, and matches no token.
    if not isinstance(binding, _Unset) and made_with != _sha256_hex(binding):
        return _refused("wrong_binding", "the token was made with another binding, or without one")
    # A refused token is not used up.
    if seen is not None and seen(decision["event_id"], math.ceil(2 * max_age)):
        return _refused("already_used", f"the token {decision['event_id']} was used before")
    return Verification(ok=True, session=session)


def _refused(reason: Reason, message: str) -> Verification:
    return Verification(ok=False, reason=reason, message=message)


def _sha256_hex(text: Optional[str]) -> str:
    return "" if text is None else hashlib.sha256(text.encode()).hexdigest()


def _epoch(iso: str) -> float:
    whole, _, fraction = iso.rstrip("Z").partition(".")
    seconds = time.strptime(whole, "%Y-%m-%dT%H:%M:%S")
    return calendar.timegm(seconds) + float(f"0.{fraction or 0}")


def open_token(token: str, secret_key: str) -> Json:
    """Returns what the token says, without verifying its age or use. Raises TokenError."""
    if not isinstance(secret_key, str) or secret_key == "":
        raise TypeError("open_token needs a secret key (sk_live_… or sk_test_…)")
    if not isinstance(token, str):
        raise TokenError("the token is not a string")
    try:
        data = base64.b64decode(token, validate=True)
    except (binascii.Error, ValueError) as error:
        raise TokenError("the token is not base64") from error
    hashed = hashlib.sha256(secret_key.encode()).hexdigest().encode()
    key = hashlib.sha256(hashed + b"\0sealed-results").digest()
    try:
        if data[:1] == b"\1":
            compressed = AESGCM(key).decrypt(data[1 : 1 + _NONCE], data[1 + _NONCE :], None)
        else:
            compressed = _open_recipient(data, hashed, key)
        session = json.loads(_inflate(compressed))
        # Only a holder of the key can make another payload.
        _epoch(session["decision"]["evaluated_at"])
        if not isinstance(session["decision"]["event_id"], str):
            raise TokenError("the token has no decision")
        return session
    except (InvalidTag, ValueError, KeyError, TypeError, AttributeError, zlib.error) as error:
        raise TokenError("the token was changed, or is none") from error


def _open_recipient(data: bytes, hashed: bytes, key: bytes) -> bytes:
    # Version 2: a random content key encrypts the payload, and the key of each recipient encrypts the content key.
    if data[:1] != b"\2" or len(data) < _HEADER:
        raise TokenError("this is not a sealed token")
    _, count, nonce, length = struct.unpack_from(">BH12sI", data)
    end = _HEADER + length + _TAG
    if count < 1 or len(data) != end + count * _RECIPIENT:
        raise TokenError("the token is cut, or has too much")
    recipients = [data[at : at + _RECIPIENT] for at in range(end, len(data), _RECIPIENT)]
    own_id = hashlib.sha256(hashed + b"\0sealed-results-recipient-id").digest()
    own = next((one for one in recipients if one[:_ID] == own_id), None)
    if own is None:
        raise TokenError("the token is sealed to other keys: of another organization or environment")
    wrapped = own[_ID + _NONCE :]
    content_key = AESGCM(key).decrypt(own[_ID : _ID + _NONCE], wrapped, _LABEL + b"recipient\0" + own_id)
    bound = data[:_HEADER] + b"".join(one[:_ID] for one in recipients)
    return AESGCM(content_key).decrypt(nonce, data[_HEADER:end], _LABEL + b"payload\0" + bound)


def _inflate(compressed: bytes) -> bytes:
    # Stops at _MAX_PAYLOAD, so that a small token cannot fill the memory.
    inflating = zlib.decompressobj()
    plain = inflating.decompress(compressed, _MAX_PAYLOAD)
    if inflating.unconsumed_tail:
        raise TokenError("the token holds more than 4 MiB")
    if not inflating.eof:
        raise TokenError("the token was changed, or is none")
    return plain


_TOLERANCE = 300


def verify_webhook(
    body: Union[bytes, str],
    headers: Mapping[str, str],
    secret: Union[str, Sequence[str]],
    *,
    now: Optional[float] = None,
) -> Json:
    """Verifies a webhook delivery and returns its event. Raises WebhookError.

    `body` is the raw body: JSON that was parsed and written again has other bytes. `secret` is `whsec_…`, or during a
    rotation a list of the old and the new one.
    """
    if not isinstance(body, (bytes, str)):
        raise TypeError("verify_webhook needs the raw body, as bytes or str, not a parsed object")
    lower = {name.lower(): value for name, value in headers.items()}
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    id, timestamp, signatures = (lower.get(name) for name in names)
    if not id or not timestamp or not signatures:
        raise WebhookError("a header is missing: webhook-id, webhook-timestamp or webhook-signature")
    if not re.fullmatch(r"[0-9]{1,12}", timestamp):
        raise WebhookError("webhook-timestamp is not a number of Unix seconds")
    age = (time.time() if now is None else now) - int(timestamp)
    if not abs(age) <= _TOLERANCE:
        raise WebhookError(f"webhook-timestamp is {age:.0f} s old, more than {_TOLERANCE}")
    raw = body.encode() if isinstance(body, str) else body
    signed = f"{id}.{timestamp}.".encode() + raw
    for one in [secret] if isinstance(secret, str) else secret:
        try:
            key = base64.b64decode(one[6:] if one.startswith("whsec_") else one, validate=True)
        except (binascii.Error, ValueError) as error:
            raise TypeError("secret must be whsec_ and base64") from error
        if not key:
            raise TypeError("secret must be whsec_ and base64, and is empty")
        expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        if any(hmac.compare_digest(entry.encode(), expected.encode()) for entry in signatures.split(" ")):
            return json.loads(raw)
    raise WebhookError("no signature matches: another secret, or a changed body")


class ApiError(Exception):
    """The API refused the request. `request_id` finds it in the server's log; `code` is listed at /docs/errors."""

    def __init__(self, status: int, error: Json) -> None:
        super().__init__(error.get("message") or f"Tidegate answered {status}")
        self.status = status
        self.code: str = error.get("code", "unknown")
        self.request_id: Optional[str] = error.get("request_id")
        self.details: Json = error.get("details") or {}
        self.is_retryable = status == 429 or status >= 500 or error.get("retryable") is True


class UnavailableError(Exception):
    """Tidegate could not be reached, or answered 429 or 5xx after all retries."""


def fail_closed(error: UnavailableError) -> Any:
    """For `when_unavailable`: the call raises, and your code refuses what it cannot check."""
    raise error


def fail_open(error: UnavailableError) -> Any:
    """For `when_unavailable`: the call returns None, and your code goes on without Tidegate."""
    return None


# A wait that a server asks for is honored up to this many seconds. Beyond it the call fails at once.
_MAX_WAIT = 30.0


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Redirects would take the secret key to another host."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Client:
    """A client of the REST API. Members of answers are those of `/docs/api`.

    `when_unavailable` is called when Tidegate cannot be reached, or answers 429 or 5xx after all retries; the call
    returns what it returns. Pass `fail_closed`, `fail_open` or a function of your own. Lists raise in any case.
    """

    def __init__(
        self,
        *,
        url: str,
        secret_key: str,
        when_unavailable: Callable[[UnavailableError], Any],
        timeout: float = 5,
        retries: int = 2,
    ) -> None:
        if not re.fullmatch(r"sk_[\x21-\x7e]+", secret_key):
            raise TypeError("secret_key must be a secret key (sk_live_… or sk_test_…)")
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or parts.query or parts.fragment:
            raise TypeError("url must be http or https, without credentials, query or fragment")
        if not timeout > 0 or retries < 0:
            raise TypeError("timeout must be above 0, and retries 0 or more")
        self._url = url.rstrip("/")
        self._secret_key = secret_key
        self._when_unavailable = when_unavailable
        self._timeout = timeout
        self._retries = retries
        self._opener = urllib.request.build_opener(_NoRedirect)

    def get_session(self, session_id: str, **query: Any) -> Json:
        """Scope `sessions:read`."""
        return self._one("GET", f"/v1/sessions/{_segment(session_id)}", query=query)

    def list_sessions(self, **query: Any) -> Iterator[Json]:
        """Newest decision first; asks for the next page as you iterate. Scope `sessions:list`."""
        return self._list("/v1/sessions", query)

    def count_sessions(self, **query: Any) -> Json:
        """Scope `sessions:list`."""
        return self._one("GET", "/v1/sessions/aggregates", query=query)

    def set_user(self, session_id: str, client_user_id: Optional[str]) -> Json:
        """Sets your id of the end user; None clears it. Scope `sessions:update`."""
        body = {"client_user_id": client_user_id}
        return self._one("PATCH", f"/v1/sessions/{_segment(session_id)}", body=body)

    def get_visitor(self, visitor_id: str) -> Json:
        """Scope `fingerprints:read`."""
        return self._one("GET", f"/v1/fingerprints/{_segment(visitor_id)}")

    def list_visitors(self, **query: Any) -> Iterator[Json]:
        """Scope `fingerprints:list`."""
        return self._list("/v1/fingerprints", query)

    def create_mark(self, mark: Json) -> Json:
        """Says what sessions turned out to be. Scope `sessions:mark`."""
        return self._one("POST", "/v1/marks", body=mark)

    def remove_mark(self, mark_id: str) -> Json:
        return self._one("DELETE", f"/v1/marks/{_segment(mark_id)}")

    def score_requests(self, requests: Sequence[Json]) -> list[Json]:
        """Scores requests that run no JavaScript, 1 to 50 at a time, in their order. Scope `requests:score`."""
        return self._one("POST", "/v1/requests/score", body={"requests": list(requests)})

    def _one(self, method: str, path: str, query: Optional[Json] = None, body: Optional[Json] = None) -> Any:
        try:
            return self._send(method, path, query, body)["data"]
        except UnavailableError as error:
            return self._when_unavailable(error)

    def _list(self, path: str, query: Json) -> Iterator[Json]:
        cursor: Optional[str] = None
        while True:
            page = self._send("GET", path, {**query, "cursor": cursor}, None)
            yield from page["data"]
            cursor = page["pagination"].get("next_cursor")
            if cursor is None:
                return

    def _send(self, method: str, path: str, query: Optional[Json], body: Optional[Json]) -> Json:
        present = {name: value for name, value in (query or {}).items() if value is not None}
        text = urllib.parse.urlencode(present, doseq=True)
        headers = {"Authorization": f"Bearer {self._secret_key}"}
        if method != "GET":
            # A retry of a mark that was made returns the first answer.
            headers["Idempotency-Key"] = str(uuid.uuid4())
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        url = self._url + path + (f"?{text}" if text else "")
        for attempt in range(self._retries + 1):
            request = urllib.request.Request(url, data=data, headers=headers, method=method)
            retry_after: Optional[float] = None
            cause: Exception
            try:
                with self._opener.open(request, timeout=self._timeout) as response:
                    body_text = response.read()
                try:
                    return json.loads(body_text)
                except ValueError as error:
                    cause, problem = error, "the answer is not JSON"
            except urllib.error.HTTPError as answer:
                cause = ApiError(answer.code, _error_in(answer))
                if not cause.is_retryable:
                    raise cause from None
                problem = f"Tidegate answered {answer.code}"
                retry_after = _retry_after(answer.headers.get("Retry-After"))
            except (OSError, http.client.HTTPException) as error:
                cause, problem = error, "Tidegate cannot be reached, or its answer broke off"
            wait = 0.2 * 2**attempt * (0.5 + random.random()) if retry_after is None else retry_after
            if attempt == self._retries or wait > _MAX_WAIT:
                break
            time.sleep(wait)
        raise UnavailableError(f"{method} {path} failed: {problem}") from cause


def _segment(id: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_]+", id):
        raise TypeError(f"not an id: {id!r}")
    return id


def _error_in(answer: urllib.error.HTTPError) -> Json:
    try:
        error = json.loads(answer.read())["error"]
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        # A proxy in between answers as it likes.
        return {}
    return error if isinstance(error, dict) else {}


def _retry_after(header: Optional[str]) -> Optional[float]:
    # Seconds or a date, as RFC 9110 has it.
    if header is None:
        return None
    if header.isdigit():
        return float(header)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(header).timestamp() - time.time())
    except (TypeError, ValueError):
        return None

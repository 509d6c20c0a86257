"""Tidegate for Python back ends: sealed tokens, webhooks and the REST API. Needs `pip install cryptography`.

Has the same calls as the npm package @tidegate/server. Requires Python 3.9 or later.
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
    """The token is not sealed to this key, or was modified."""


class WebhookError(Exception):
    """The delivery is not signed with the secret, is too old, or was modified. Respond with 401."""


class _Unset:
    pass


_UNSET = _Unset()


@dataclass(frozen=True)
class Verification:
    """Result of `verify_token`. `session` is None unless `ok`; `message` is for your log, not for the visitor."""

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

    `max_age`: seconds after its decision for which a token is valid; also the tolerance for a clock that is behind.
    `binding`: the text that the page passed to `getSession({ binding })`.
    `seen(id, ttl)` makes a token single-use: it atomically adds the id, for `ttl` seconds, to a store that all your
    processes share, and returns True if the id was already there. With Redis:
    `lambda id, ttl: redis.set(id, 1, nx=True, ex=ttl) is None`. If it raises, this call raises the same error.
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
    token_binding = (session.get("hand_off") or {}).get("binding")
    # A `binding` of None or "" matches no token: the caller has lost it, for example because the user's session ended.
    if not isinstance(binding, _Unset) and token_binding != _sha256_hex(binding):
        return _refused("wrong_binding", "the token was made with another binding, or without one")
    # Checked last, so that a refused token is not used up.
    if seen is not None and seen(decision["event_id"], math.ceil(2 * max_age)):
        return _refused("already_used", f"the token {decision['event_id']} was used before")
    return Verification(ok=True, session=session)


def _refused(reason: Reason, message: str) -> Verification:
    return Verification(ok=False, reason=reason, message=message)


def _sha256_hex(text: Optional[str]) -> str:
    return "" if not text else hashlib.sha256(text.encode()).hexdigest()


def _epoch(iso: str) -> float:
    date_time, _, fraction = iso.rstrip("Z").partition(".")
    seconds = time.strptime(date_time, "%Y-%m-%dT%H:%M:%S")
    return calendar.timegm(seconds) + float(f"0.{fraction or 0}")


def open_token(token: str, secret_key: str) -> Json:
    """Returns the session in the token. Does not verify age, binding or single use. Raises TokenError."""
    if not isinstance(secret_key, str) or secret_key == "":
        raise TypeError("open_token needs a secret key (sk_live_… or sk_test_…)")
    if not isinstance(token, str):
        raise TokenError("the token is not a string")
    try:
        data = base64.b64decode(token, validate=True)
    except (binascii.Error, ValueError) as error:
        raise TokenError("the token is not base64") from error
    secret_hash = hashlib.sha256(secret_key.encode()).hexdigest().encode()
    key = hashlib.sha256(secret_hash + b"\0sealed-results").digest()
    try:
        if data[:1] == b"\1":
            compressed = AESGCM(key).decrypt(data[1 : 1 + _NONCE], data[1 + _NONCE :], None)
        else:
            compressed = _open_recipient(data, secret_hash, key)
        session = json.loads(_inflate(compressed))
        # A payload without these members can only come from a holder of the key.
        _epoch(session["decision"]["evaluated_at"])
        if not isinstance(session["decision"]["event_id"], str):
            raise TokenError("the token has no decision")
        return session
    except (InvalidTag, ValueError, KeyError, TypeError, AttributeError, zlib.error) as error:
        raise TokenError("the token was modified, or is not a sealed token") from error


def _open_recipient(data: bytes, secret_hash: bytes, key: bytes) -> bytes:
    # Version 2: a random content key encrypts the payload; each recipient's key wraps the content key.
    if data[:1] != b"\2" or len(data) < _HEADER:
        raise TokenError("this is not a sealed token")
    _, count, nonce, length = struct.unpack_from(">BH12sI", data)
    end = _HEADER + length + _TAG
    if count < 1 or len(data) != end + count * _RECIPIENT:
        raise TokenError("the token has the wrong length")
    recipients = [data[at : at + _RECIPIENT] for at in range(end, len(data), _RECIPIENT)]
    recipient_id = hashlib.sha256(secret_hash + b"\0sealed-results-recipient-id").digest()
    recipient = next((entry for entry in recipients if entry[:_ID] == recipient_id), None)
    if recipient is None:
        raise TokenError("the token is sealed to the keys of another organization or environment")
    wrapped = recipient[_ID + _NONCE :]
    content_key = AESGCM(key).decrypt(recipient[_ID : _ID + _NONCE], wrapped, _LABEL + b"recipient\0" + recipient_id)
    associated = data[:_HEADER] + b"".join(entry[:_ID] for entry in recipients)
    return AESGCM(content_key).decrypt(nonce, data[_HEADER:end], _LABEL + b"payload\0" + associated)


def _inflate(compressed: bytes) -> bytes:
    # Limited to _MAX_PAYLOAD, so that a small token can't exhaust memory.
    inflater = zlib.decompressobj()
    plain = inflater.decompress(compressed, _MAX_PAYLOAD)
    if inflater.unconsumed_tail:
        raise TokenError("the token contains more than 4 MiB")
    if not inflater.eof:
        raise TokenError("the token was modified, or is not a sealed token")
    return plain


_TOLERANCE_SECONDS = 300


def verify_webhook(
    body: Union[bytes, str],
    headers: Mapping[str, str],
    secret: Union[str, Sequence[str]],
    *,
    now: Optional[float] = None,
) -> Json:
    """Verifies a webhook delivery and returns its event. Raises WebhookError.

    `body` is the raw request body, because re-serialized JSON has different bytes. `secret` is `whsec_…`, or a list of
    the old and the new secret during a rotation.
    """
    if not isinstance(body, (bytes, str)):
        raise TypeError("verify_webhook needs the raw body, as bytes or str, not a parsed object")
    lowercase_headers = {name.lower(): value for name, value in headers.items()}
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    id, timestamp, signatures = (lowercase_headers.get(name) for name in names)
    if not id or not timestamp or not signatures:
        raise WebhookError("a header is missing: webhook-id, webhook-timestamp or webhook-signature")
    if not re.fullmatch(r"[0-9]{1,12}", timestamp):
        raise WebhookError("webhook-timestamp is not a number of Unix seconds")
    age = (time.time() if now is None else now) - int(timestamp)
    if not abs(age) <= _TOLERANCE_SECONDS:
        raise WebhookError(f"webhook-timestamp is {age:.0f} s old, more than {_TOLERANCE_SECONDS}")
    raw = body.encode() if isinstance(body, str) else body
    signed = f"{id}.{timestamp}.".encode() + raw
    for entry in [secret] if isinstance(secret, str) else secret:
        try:
            key = base64.b64decode(entry[6:] if entry.startswith("whsec_") else entry, validate=True)
        except (binascii.Error, ValueError) as error:
            raise TypeError("secret must be whsec_ and base64") from error
        if not key:
            raise TypeError("secret must be whsec_ and base64, and is empty")
        expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        if any(hmac.compare_digest(signature.encode(), expected.encode()) for signature in signatures.split(" ")):
            return json.loads(raw)
    raise WebhookError("no signature matches: the secret is different, or the body was modified")


class ApiError(Exception):
    """Error response of the API. Search the server's log for `request_id`; codes are listed at /docs/errors."""

    def __init__(self, status: int, error: Json) -> None:
        super().__init__(error.get("message") or f"Tidegate returned status {status}")
        self.status = status
        self.code: str = error.get("code", "unknown")
        self.request_id: Optional[str] = error.get("request_id")
        self.details: Json = error.get("details") or {}
        self.is_retryable = status == 429 or status >= 500 or error.get("retryable") is True


class UnavailableError(Exception):
    """Tidegate could not be reached, or still returned 429 or 5xx after all retries."""


def fail_closed(error: UnavailableError) -> Any:
    """For `when_unavailable`: the call raises, so your code rejects requests that it can't check."""
    raise error


def fail_open(error: UnavailableError) -> Any:
    """For `when_unavailable`: the call returns None, so your code continues without Tidegate."""
    return None


# A longer Retry-After makes the call fail without further retries.
_MAX_WAIT_SECONDS = 30.0


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects, which could send the secret key to another host."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Client:
    """Client of the REST API. Returns the `data` of responses as documented at `/docs/api`.

    `when_unavailable` is called if Tidegate can't be reached, or still returns 429 or 5xx after all retries. The call
    then returns its result. Pass `fail_closed`, `fail_open` or your own function. Lists always raise instead.
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
        """Returns a session. Scope `sessions:read`."""
        return self._request("GET", f"/v1/sessions/{_segment(session_id)}", query=query)

    def list_sessions(self, **query: Any) -> Iterator[Json]:
        """Iterates over sessions, newest decision first, fetching pages as needed. Scope `sessions:list`."""
        return self._iterate("/v1/sessions", query)

    def count_sessions(self, **query: Any) -> Json:
        """Returns session counts. Scope `sessions:list`."""
        return self._request("GET", "/v1/sessions/aggregates", query=query)

    def set_user(self, session_id: str, client_user_id: Optional[str]) -> Json:
        """Sets your user id for the session; None clears it. Scope `sessions:update`."""
        body = {"client_user_id": client_user_id}
        return self._request("PATCH", f"/v1/sessions/{_segment(session_id)}", body=body)

    def get_visitor(self, visitor_id: str) -> Json:
        """Returns a visitor. Scope `fingerprints:read`."""
        return self._request("GET", f"/v1/fingerprints/{_segment(visitor_id)}")

    def list_visitors(self, **query: Any) -> Iterator[Json]:
        """Iterates over visitors, fetching pages as needed. Scope `fingerprints:list`."""
        return self._iterate("/v1/fingerprints", query)

    def create_mark(self, mark: Json) -> Json:
        """Labels sessions with what they turned out to be. Scope `sessions:mark`."""
        return self._request("POST", "/v1/marks", body=mark)

    def remove_mark(self, mark_id: str) -> Json:
        return self._request("DELETE", f"/v1/marks/{_segment(mark_id)}")

    def score_requests(self, requests: Sequence[Json]) -> list[Json]:
        """Scores 1 to 50 requests of clients that run no JavaScript; results keep the order. Scope `requests:score`."""
        return self._request("POST", "/v1/requests/score", body={"requests": list(requests)})

    def _request(self, method: str, path: str, query: Optional[Json] = None, body: Optional[Json] = None) -> Any:
        try:
            return self._send(method, path, query, body)["data"]
        except UnavailableError as error:
            return self._when_unavailable(error)

    def _iterate(self, path: str, query: Json) -> Iterator[Json]:
        cursor: Optional[str] = None
        while True:
            page = self._send("GET", path, {**query, "cursor": cursor}, None)
            yield from page["data"]
            cursor = page["pagination"].get("next_cursor")
            if cursor is None:
                return

    def _send(self, method: str, path: str, query: Optional[Json], body: Optional[Json]) -> Json:
        parameters = {name: value for name, value in (query or {}).items() if value is not None}
        query_string = urllib.parse.urlencode(parameters, doseq=True)
        headers = {"Authorization": f"Bearer {self._secret_key}"}
        if method != "GET":
            # A retry of a completed request returns the first response instead of creating a second mark.
            headers["Idempotency-Key"] = str(uuid.uuid4())
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        url = self._url + path + (f"?{query_string}" if query_string else "")
        for attempt in range(self._retries + 1):
            request = urllib.request.Request(url, data=data, headers=headers, method=method)
            retry_after: Optional[float] = None
            cause: Exception
            try:
                with self._opener.open(request, timeout=self._timeout) as response:
                    response_body = response.read()
                try:
                    return json.loads(response_body)
                except ValueError as error:
                    cause, problem = error, "the response is not JSON"
            except urllib.error.HTTPError as response:
                cause = ApiError(response.code, _error_in(response))
                if not cause.is_retryable:
                    raise cause from None
                problem = f"Tidegate returned status {response.code}"
                retry_after = _retry_after(response.headers.get("Retry-After"))
            except (OSError, http.client.HTTPException) as error:
                cause, problem = error, "Tidegate cannot be reached, or its response was truncated"
            wait_seconds = 0.2 * 2**attempt * (0.5 + random.random()) if retry_after is None else retry_after
            if attempt == self._retries or wait_seconds > _MAX_WAIT_SECONDS:
                break
            time.sleep(wait_seconds)
        raise UnavailableError(f"{method} {path} failed: {problem}") from cause


def _segment(id: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_]+", id):
        raise TypeError(f"not an id: {id!r}")
    return id


def _error_in(response: urllib.error.HTTPError) -> Json:
    try:
        error = json.loads(response.read())["error"]
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        # The response may come from a proxy.
        return {}
    return error if isinstance(error, dict) else {}


def _retry_after(header: Optional[str]) -> Optional[float]:
    # RFC 9110: seconds or an HTTP date.
    if header is None:
        return None
    if header.isdigit():
        return float(header)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(header).timestamp() - time.time())
    except (TypeError, ValueError):
        return None

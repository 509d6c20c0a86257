import base64, hashlib, hmac, json, os, re, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRETS = os.environ["WEBHOOK_SECRETS"].split(",")
MAX_BODY_BYTES = 1024 * 1024
seen, lock = set(), threading.Lock()


def handle(event):
    print("handled", event["id"], event["type"], flush=True)


def is_genuine(headers, body):
    event_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not event_id or not re.fullmatch("[0-9]{1,12}", timestamp):
        return False
    if abs(time.time() - int(timestamp)) > 300:
        return False
    message = f"{event_id}.{timestamp}.".encode() + body
    genuine = False
    for secret in SECRETS:
        key = base64.b64decode(secret.removeprefix("whsec_"))
        digest = base64.b64encode(hmac.new(key, message, hashlib.sha256).digest())
        for entry in headers.get("webhook-signature", "").split(" "):
            genuine |= hmac.compare_digest(entry.encode(), b"v1," + digest)
    return genuine


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        length = self.headers.get("content-length", "")
        if not re.fullmatch("[0-9]{1,7}", length) or int(length) > MAX_BODY_BYTES:
            self.close_connection = True
            return self.answer(413)
        try:
            body = self.rfile.read(int(length))
            self.answer(self.take(body))
        except Exception as error:
            self.log_error("%s", error)
            self.answer(500)

    def take(self, body):
        if not is_genuine(self.headers, body):
            return 401
        event = json.loads(body)
        with lock:
            if event["id"] not in seen:
                handle(event)
                seen.add(event["id"])
        return 204

    def answer(self, status):
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()


ThreadingHTTPServer(("", int(os.environ.get("PORT", "3000"))), Receiver).serve_forever()

import base64, hashlib, hmac, json, os, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRETS = os.environ["WEBHOOK_SECRETS"].split(",")
seen, lock = set(), threading.Lock()


def handle(event):
    print("handled", event["id"], event["type"], flush=True)


def is_genuine(headers, body):
    event_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not event_id or not timestamp.isascii() or not timestamp.isdigit():
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
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
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

import base64, hashlib, hmac, json, os, re, secrets, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

SECRETS = os.environ["WEBHOOK_SECRETS"].split(",")
MAX_BODY_BYTES = 1024 * 1024
accounts, lock = {}, threading.Lock()


def create_account(signup):
    print("created", signup["gate_session_id"], signup["gate_account_id"], flush=True)
    return {"ACME_API_KEY": "acme_" + secrets.token_hex(24)}


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


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def seal(outputs, delivery):
    private_key = X25519PrivateKey.generate()
    shared = private_key.exchange(X25519PublicKey.from_public_bytes(decode(delivery["public_key"])))
    salt, iv = os.urandom(32), os.urandom(12)
    key = HKDF(algorithm=SHA256(), length=32, salt=salt, info=b"foil-gate-delivery:v1").derive(shared)
    text = json.dumps({"version": 1, "outputs": outputs}).encode()
    sealed = AESGCM(key).encrypt(iv, text, None)
    return {
        "version": 1,
        "algorithm": "x25519-hkdf-sha256/aes-256-gcm",
        "key_id": delivery["key_id"],
        "ephemeral_public_key": encode(private_key.public_key().public_bytes_raw()),
        "salt": encode(salt),
        "iv": encode(iv),
        "ciphertext": encode(sealed[:-16]),
        "tag": encode(sealed[-16:]),
    }


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        length = self.headers.get("content-length", "")
        if not re.fullmatch("[0-9]{1,7}", length) or int(length) > MAX_BODY_BYTES:
            self.close_connection = True
            return self.answer(413)
        try:
            body = self.rfile.read(int(length))
            self.answer(*self.take(body))
        except Exception as error:
            self.log_error("%s", error)
            self.answer(500)

    def take(self, body):
        if not is_genuine(self.headers, body):
            return (401,)
        event = json.loads(body)
        if event["type"] != "gate.session.approved":
            return (204,)
        signup = event["data"]
        with lock:
            if signup["gate_session_id"] not in accounts:
                accounts[signup["gate_session_id"]] = create_account(signup)
            outputs = accounts[signup["gate_session_id"]]
        return 200, {"encrypted_delivery": seal(outputs, signup["delivery"])}

    def answer(self, status, answer=None):
        body = b"" if answer is None else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


ThreadingHTTPServer(("", int(os.environ.get("PORT", "3000"))), Receiver).serve_forever()

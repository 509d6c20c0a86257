import type { AsyncClientCrypto } from '../../../infra/wire/collect/client.ts'
import type { BodyInput, ClientDocumentKeys } from '../../../infra/wire/collect/client-crypto.ts'
import {
  type AnswerKey,
  type Answers,
  answerKeyText,
  answerText,
  associatedData,
  type Bytes,
  encodeFrame,
  equalBytes,
  fromBase64Url,
  keyBytes,
  keyLabels,
  saltInput,
  tagBytes,
  toBase64Url,
  utf8,
} from '../../../infra/wire/collect/protocol.ts'
import { isRealmAttached, type Subtle, subtle } from './realm.ts'
import { withTimeoutOrNull } from './support.ts'

// If the page removes the realm, its promises never settle.
const timeoutMs = 2000
const hash = 'SHA-256'

const loadScriptCrypto = () => import('../../../infra/wire/collect/client-crypto.ts')
type ScriptCrypto = Awaited<ReturnType<typeof loadScriptCrypto>>

/**
 * Runs `native` with Web Crypto, which uses other threads, and falls back to `script`, which blocks the page for 30 ms.
 * Web Crypto needs a secure context; X25519 needs Chromium 133, Firefox 130 or Safari 17.
 */
async function nativeOrScript<T>(
  native: (subtle: Subtle) => Promise<T>,
  script: (crypto: ScriptCrypto) => T,
): Promise<T> {
  const available = isRealmAttached() ? subtle : undefined
  const result = available && (await withTimeoutOrNull(timeoutMs, () => native(available)))
  return result ?? script(await loadScriptCrypto())
}

/** Returns the client's crypto. While `isLeaving`, a script seals bodies, to finish before the page is gone. */
export function createWebCrypto(isLeaving: () => boolean): AsyncClientCrypto {
  return {
    createKeyPair(random) {
      const privateKey = random(keyBytes)
      return nativeOrScript(
        async (subtle) => {
          const publicKey = toBase64Url(await x25519(subtle, privateKey, basePoint))
          return { privateKey, publicKey }
        },
        (crypto) => crypto.createKeyPair(() => privateKey),
      )
    },
    deriveDocumentKeys: (keyPair, server) =>
      nativeOrScript(
        async (subtle) => {
          const point = fromBase64Url(server.serverPublicKey)
          const secret = await x25519(subtle, keyPair.privateKey, point)
          return deriveKeys(subtle, secret, saltInput(server.address))
        },
        (crypto) => crypto.deriveDocumentKeys(keyPair, server),
      ),
    sealBody: async (body) =>
      isLeaving()
        ? (await loadScriptCrypto()).sealBody(body)
        : nativeOrScript(
            (subtle) => seal(subtle, body),
            (crypto) => crypto.sealBody(body),
          ),
    verifyResponse: (keys, text, responseHmac) =>
      nativeOrScript(
        async (subtle) => {
          const mac = await macOf(subtle, copy(keys.serverToClient), text)
          return equalBytes(mac, fromBase64Url(responseHmac))
        },
        (crypto) => crypto.verifyResponse(keys, text, responseHmac),
      ),
  }
}

/** Computes the MAC over the answers, like `answerMac` of the protocol's client. */
export function signAnswers(key: AnswerKey, answers: Answers): Promise<string> {
  return nativeOrScript(
    async (subtle) =>
      toBase64Url(await macOf(subtle, utf8(answerKeyText(key)), answerText(answers))),
    (crypto) => crypto.answerMac(key, answers),
  )
}

/** Returns the SHA-256 of the bytes. */
export function digestOf(bytes: Bytes): Promise<Uint8Array> {
  return nativeOrScript<Uint8Array>(
    async (subtle) => new Uint8Array(await subtle.digest(hash, bytes)),
    (crypto) => crypto.hashOf(bytes),
  )
}

async function deriveKeys(
  subtle: Subtle,
  secret: Bytes,
  saltText: string,
): Promise<ClientDocumentKeys> {
  const salt = await subtle.digest(hash, utf8(saltText))
  const key = await subtle.importKey('raw', secret, 'HKDF', false, ['deriveBits'])
  const derive = async (label: string) => {
    const algorithm = { name: 'HKDF', hash, salt, info: utf8(label) }
    return new Uint8Array(await subtle.deriveBits(algorithm, key, keyBytes * 8))
  }
  return {
    clientToServer: await derive(keyLabels.clientToServer),
    serverToClient: await derive(keyLabels.serverToClient),
  }
}

async function seal(subtle: Subtle, body: BodyInput): Promise<Bytes> {
  const { address, kind, seq, nonce, iv, plaintext } = body
  const key = await subtle.importKey('raw', copy(body.key), 'AES-GCM', false, ['encrypt'])
  const additionalData = utf8(associatedData(address, kind, seq))
  const algorithm = { name: 'AES-GCM', iv: copy(iv), additionalData }
  const sealed = new Uint8Array(await subtle.encrypt(algorithm, key, copy(plaintext)))
  return encodeFrame({
    nonce: fromBase64Url(nonce),
    iv,
    ciphertext: sealed.subarray(0, sealed.length - tagBytes),
    tag: sealed.subarray(sealed.length - tagBytes),
  })
}

async function macOf(subtle: Subtle, key: Bytes, text: string): Promise<Uint8Array> {
  const algorithm = { name: 'HMAC', hash }
  const imported = await subtle.importKey('raw', key, algorithm, false, ['sign'])
  return new Uint8Array(await subtle.sign('HMAC', imported, utf8(text)))
}

const curve = { name: 'X25519' }
// RFC 7748, section 6.1.
const basePoint = new Uint8Array(keyBytes)
basePoint[0] = 9
// The bytes before the key in PKCS #8 (RFC 8410, section 7).
const pkcs8Header = [48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, 110, 4, 34, 4, 32]

// Computes the X25519 shared secret. Rejects for a low-order point.
async function x25519(subtle: Subtle, privateKey: Uint8Array, point: Bytes): Promise<Bytes> {
  const pkcs8 = new Uint8Array(pkcs8Header.length + keyBytes)
  pkcs8.set(pkcs8Header)
  pkcs8.set(privateKey, pkcs8Header.length)
  const [privateHandle, publicHandle] = await Promise.all([
    subtle.importKey('pkcs8', pkcs8, curve, false, ['deriveBits']),
    subtle.importKey('raw', point, curve, false, []),
  ])
  const algorithm = { ...curve, public: publicHandle }
  return new Uint8Array(await subtle.deriveBits(algorithm, privateHandle, keyBytes * 8))
}

// Copies, because the types of Web Crypto exclude shared memory.
const copy = (bytes: Uint8Array): Bytes => new Uint8Array(bytes)

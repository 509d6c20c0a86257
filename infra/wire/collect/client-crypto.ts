import { gcm } from '@noble/ciphers/aes.js'
import { hkdf } from '@noble/hashes/hkdf.js'
import { hmac } from '@noble/hashes/hmac.js'
import { sha256 } from '@noble/hashes/sha2.js'
import {
  type AnswerKey,
  type Answers,
  answerKeyText,
  answerText,
  associatedData,
  type BodyKind,
  type Bytes,
  type DocumentAddress,
  encodeFrame,
  equalBytes,
  fromBase64Url,
  ivBytes,
  keyBytes,
  keyLabels,
  saltInput,
  tagBytes,
  toBase64Url,
  utf8,
} from './protocol.ts'
import { x25519 } from './x25519.ts'

export type ClientRandom = (size: number) => Uint8Array

export interface KeyPair {
  privateKey: Uint8Array
  publicKey: string
}

export interface ClientDocumentKeys {
  clientToServer: Uint8Array
  serverToClient: Uint8Array
}

/** Client side of the key schedule and framing. Implemented by this module and by node-client-crypto.ts. */
export interface ClientCrypto {
  createKeyPair(random: ClientRandom): KeyPair
  /** Derives a document's keys. Throws if the server's public key is a low-order point. */
  deriveDocumentKeys(keyPair: KeyPair, server: ServerPart): ClientDocumentKeys
  sealBody(input: BodyInput): Bytes
  verifyResponse(keys: ClientDocumentKeys, text: string, responseHmac: string): boolean
}

interface ServerPart {
  address: DocumentAddress
  serverPublicKey: string
}

export const hashOf: (bytes: Bytes) => Uint8Array = sha256

export function createKeyPair(random: ClientRandom): KeyPair {
  const privateKey = random(keyBytes)
  return { privateKey, publicKey: toBase64Url(x25519.getPublicKey(privateKey)) }
}

export function deriveDocumentKeys(
  keyPair: KeyPair,
  { address, serverPublicKey }: ServerPart,
): ClientDocumentKeys {
  const secret = x25519.getSharedSecret(keyPair.privateKey, fromBase64Url(serverPublicKey))
  const salt = sha256(utf8(saltInput(address)))
  return {
    clientToServer: hkdf(sha256, secret, salt, utf8(keyLabels.clientToServer), keyBytes),
    serverToClient: hkdf(sha256, secret, salt, utf8(keyLabels.serverToClient), keyBytes),
  }
}

export interface BodyInput {
  key: Uint8Array
  address: DocumentAddress
  kind: BodyKind
  seq: number
  nonce: string
  iv: Uint8Array
  plaintext: Uint8Array
}

export function sealBody({ key, address, kind, seq, nonce, iv, plaintext }: BodyInput): Bytes {
  if (iv.length !== ivBytes) throw new Error('iv must have 12 bytes')
  const sealed = gcm(key, iv, utf8(associatedData(address, kind, seq))).encrypt(plaintext)
  return encodeFrame({
    nonce: fromBase64Url(nonce),
    iv,
    ciphertext: sealed.subarray(0, sealed.length - tagBytes),
    tag: sealed.subarray(sealed.length - tagBytes),
  })
}

export function verifyResponse(
  keys: ClientDocumentKeys,
  text: string,
  responseHmac: string,
): boolean {
  return equalBytes(hmac(sha256, keys.serverToClient, utf8(text)), fromBase64Url(responseHmac))
}

/**
 * Returns base64url(HMAC-SHA256), which binds answers to one document (docs/reference/collect-protocol.md, section 7).
 */
export function answerMac(key: AnswerKey, answers: Answers): string {
  return toBase64Url(hmac(sha256, utf8(answerKeyText(key)), utf8(answerText(answers))))
}

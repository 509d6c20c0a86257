import {
  createCipheriv,
  createHmac,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  diffieHellman,
  hash,
  hkdfSync,
} from 'node:crypto'
import type { ClientCrypto } from './client-crypto.ts'
import {
  associatedData,
  encodeFrame,
  equalBytes,
  fromBase64Url,
  keyBytes,
  keyLabels,
  saltInput,
} from './protocol.ts'

// Raw keys rather than DER: OpenSSL's decoders cost as much as the curve.
const privateKeyOf = (scalar: Uint8Array) =>
  createPrivateKey({ key: Buffer.from(scalar), format: 'raw-private', asymmetricKeyType: 'x25519' })
const publicKeyOf = (text: string) =>
  createPublicKey({ key: Buffer.from(text, 'base64url'), format: 'raw-public', asymmetricKeyType: 'x25519' })

/**
 * OpenSSL for clients that run in Node: the same bytes as noble, at a small part of its processor time. Symmetric keys
 * go in as key objects, since Node finds out by an exception that bytes are none.
 */
/**
 * The client's part with node:crypto, for programs that share a machine with the server that they measure. An agreement
 * by noble takes thirty times as long, 1.7 ms, so the server and these use node:crypto. Pages need noble, because Web
 * Crypto is missing outside of secure contexts, and X25519 in browsers that are still in use.
 */
export const nodeClientCrypto: ClientCrypto = {
  createKeyPair(random) {
    const privateKey = random(keyBytes)
    const publicKey = createPublicKey(privateKeyOf(privateKey)).export({ format: 'raw-public' })
    return { privateKey, publicKey: publicKey.toString('base64url') }
  },
  deriveDocumentKeys({ privateKey }, { address, serverPublicKey }) {
    const publicKey = publicKeyOf(serverPublicKey)
    const secret = createSecretKey(diffieHellman({ privateKey: privateKeyOf(privateKey), publicKey }))
    const salt = hash('sha256', saltInput(address), 'buffer')
    const derive = (label: string) => new Uint8Array(hkdfSync('sha256', secret, salt, label, keyBytes))
    return {
      clientToServer: derive(keyLabels.clientToServer),
      serverToClient: derive(keyLabels.serverToClient),
    }
  },
  sealBody({ key, address, kind, seq, nonce, iv, plaintext }) {
    const cipher = createCipheriv('aes-256-gcm', createSecretKey(key), iv)
    cipher.setAAD(Buffer.from(associatedData(address, kind, seq)))
    const ciphertext = Buffer.concat([cipher.update(plaintext), cipher.final()])
    return encodeFrame({ nonce: fromBase64Url(nonce), iv, ciphertext, tag: cipher.getAuthTag() })
  },
  verifyResponse({ serverToClient }, text, responseHmac) {
    const hmac = createHmac('sha256', createSecretKey(serverToClient)).update(text).digest()
    return equalBytes(hmac, fromBase64Url(responseHmac))
  },
}

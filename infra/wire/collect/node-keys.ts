import {
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  diffieHellman,
  hash,
  hkdfSync,
  type KeyObject,
} from 'node:crypto'
import { type DocumentAddress, keyBytes, keyLabels, saltInput } from './protocol.ts'

// The key schedule with node:crypto, for the server and for clients in Node. Keys are raw rather than DER, because
// OpenSSL's decoders cost as much as the curve operation.
const asymmetricKeyType = 'x25519'

export function privateKeyOf(scalar: Uint8Array): KeyObject {
  return createPrivateKey({ key: Buffer.from(scalar), format: 'raw-private', asymmetricKeyType })
}

/** Returns the raw public key in base64url. */
export function publicKeyOf(privateKey: KeyObject): string {
  return createPublicKey(privateKey).export({ format: 'raw-public' }).toString('base64url')
}

/**
 * Derives a document's keys. Throws for a low-order public key, because OpenSSL rejects an all-zero secret (RFC 7748,
 * section 6.1).
 */
export function deriveKeys(
  privateKey: KeyObject,
  publicKey: string,
  address: DocumentAddress,
): Record<keyof typeof keyLabels, Uint8Array> {
  const raw = Buffer.from(publicKey, 'base64url')
  const peerKey = createPublicKey({ key: raw, format: 'raw-public', asymmetricKeyType })
  const secret = createSecretKey(diffieHellman({ privateKey, publicKey: peerKey }))
  const salt = hash('sha256', saltInput(address), 'buffer')
  const derive = (label: string) =>
    new Uint8Array(hkdfSync('sha256', secret, salt, label, keyBytes))
  return {
    clientToServer: derive(keyLabels.clientToServer),
    serverToClient: derive(keyLabels.serverToClient),
  }
}

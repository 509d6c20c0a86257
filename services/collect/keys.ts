import {
  createHash,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  diffieHellman,
  hkdfSync,
  type KeyObject,
} from 'node:crypto'
import {
  type DocumentAddress,
  keyBytes,
  keyLabels,
  saltInput,
} from '../../infra/collect-protocol/constants.ts'
import type { MasterKey } from '../../infra/crypto/keyring.ts'

// Raw keys rather than DER: OpenSSL's decoders cost as much as the curve.
const asymmetricKeyType = 'x25519'

export interface ServerKeyPair {
  privateKey: KeyObject
  /** base64url, as sent. */
  publicKey: string
}

/** One key a direction; see docs/collect-protocol.md. */
export interface DocumentKeys {
  clientToServer: KeyObject
  serverToClient: KeyObject
}

/** The server's key pair of a session: any node with the master key derives the same. */
export function sessionKeyPair(master: MasterKey, sessionId: string): ServerKeyPair {
  const scalar = hkdfSync('sha256', master.secretKey('collect-x25519'), '', sessionId, keyBytes)
  return keyPairOf(Buffer.from(scalar))
}

/** The key pair of a raw X25519 private key. */
export function keyPairOf(scalar: Buffer): ServerKeyPair {
  const privateKey = createPrivateKey({ key: scalar, format: 'raw-private', asymmetricKeyType })
  const publicKey = createPublicKey(privateKey).export({ format: 'raw-public' })
  return { privateKey, publicKey: publicKey.toString('base64url') }
}

/** The keys of a document; undefined when the client's key is a low-order point (all-zero shared secret). */
export function agreeDocumentKeys(
  privateKey: KeyObject,
  { address, clientPublicKey }: { address: DocumentAddress; clientPublicKey: string },
): DocumentKeys | undefined {
  const secret = sharedSecret(privateKey, clientPublicKey)
  if (!secret) return undefined
  const salt = createHash('sha256').update(saltInput(address)).digest()
  const derive = (label: string) =>
    createSecretKey(Buffer.from(hkdfSync('sha256', secret, salt, label, keyBytes)))
  return {
    clientToServer: derive(keyLabels.clientToServer),
    serverToClient: derive(keyLabels.serverToClient),
  }
}

function sharedSecret(privateKey: KeyObject, clientPublicKey: string): KeyObject | undefined {
  const key = Buffer.from(clientPublicKey, 'base64url')
  const publicKey = createPublicKey({ key, format: 'raw-public', asymmetricKeyType })
  try {
    return createSecretKey(diffieHellman({ privateKey, publicKey }))
  } catch {
    // OpenSSL refuses an all-zero result (RFC 7748, section 6.1).
    return undefined
  }
}

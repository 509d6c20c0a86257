import {
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  diffieHellman,
  hash,
  hkdfSync,
  type KeyObject,
} from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { MasterKey } from '../../infra/crypto/keyring.ts'
import { type DocumentAddress, keyBytes, keyLabels, saltInput } from '../../infra/wire/collect/protocol.ts'

// Raw keys rather than DER: OpenSSL's decoders cost as much as the curve.
const asymmetricKeyType = 'x25519'

export interface ServerKeyPair {
  privateKey: KeyObject
  /** base64url, as sent. */
  publicKey: string
}

export interface DocumentKeys {
  clientToServer: KeyObject
  serverToClient: KeyObject
}

export type ServerKeys = (master: MasterKey, openedAt: number) => ServerKeyPair

const epochMs = 60 * 60 * 1000
// The hours that documents of a session's lifetime were opened in, under a few master keys.
const keptKeyPairs = 100

/**
 * One key pair an hour and master key, which any node derives alike: making one costs more than the rest of an
 * open. Documents still have keys of their own, by their client's key and the salt.
 */
export function createServerKeys(): ServerKeys {
  const known = new LRUCache<string, ServerKeyPair>({ max: keptKeyPairs })
  return (master, openedAt) => {
    const epoch = Math.floor(openedAt / epochMs)
    const name = `${master.id} ${epoch}`
    const keyPair = known.get(name) ?? deriveKeyPair(master, epoch)
    known.set(name, keyPair)
    return keyPair
  }
}

function deriveKeyPair(master: MasterKey, epoch: number): ServerKeyPair {
  const scalar = hkdfSync('sha256', master.secretKey('collect-x25519'), '', `epoch ${epoch}`, keyBytes)
  return keyPairOf(Buffer.from(scalar))
}

export function keyPairOf(scalar: Buffer): ServerKeyPair {
  const privateKey = createPrivateKey({ key: scalar, format: 'raw-private', asymmetricKeyType })
  const publicKey = createPublicKey(privateKey).export({ format: 'raw-public' })
  return { privateKey, publicKey: publicKey.toString('base64url') }
}

// Every 255-bit number that stands for a point of order 1, 2, 4 or 8 of Curve25519 or its twist
// (https://cr.yp.to/ecdh.html#validate), little-endian; the last two are p and p + 1, that is 0 and 1 again.
const lowOrderPoints = new Set([
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0100000000000000000000000000000000000000000000000000000000000000',
  'e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800',
  '5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
])

export function isLowOrder(publicKey: string): boolean {
  const bytes = Buffer.from(publicKey, 'base64url')
  // X25519 ignores the top bit (RFC 7748, section 5).
  bytes.writeUInt8(bytes.readUInt8(keyBytes - 1) & 0x7f, keyBytes - 1)
  return lowOrderPoints.has(bytes.toString('hex'))
}

export function agreeDocumentKeys(
  privateKey: KeyObject,
  { address, clientPublicKey }: { address: DocumentAddress; clientPublicKey: string },
): DocumentKeys | undefined {
  const secret = sharedSecret(privateKey, clientPublicKey)
  if (!secret) return undefined
  const salt = hash('sha256', saltInput(address), 'buffer')
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

import { createSecretKey, hkdfSync, type KeyObject } from 'node:crypto'
import type { MasterKey } from '../../infra/crypto/keyring.ts'
import { createLru } from '../../infra/lru.ts'
import { deriveKeys, privateKeyOf, publicKeyOf } from '../../infra/wire/collect/node-keys.ts'
import { type DocumentAddress, keyBytes } from '../../infra/wire/collect/protocol.ts'

export interface ServerKeyPair {
  privateKey: KeyObject
  /** base64url, as sent. */
  publicKey: string
}

export interface DocumentKeys {
  clientToServer: KeyObject
  serverToClient: KeyObject
}

/** Returns the key pair for documents opened at `openedAt`, epoch milliseconds. */
export type ServerKeys = (master: MasterKey, openedAt: number) => ServerKeyPair

const epochMs = 60 * 60 * 1000
// Covers the hours of a session's lifetime under a few master keys.
const maxCachedKeyPairs = 100

/**
 * Creates the cache of server key pairs. There is one per hour and master key, derived identically on every node,
 * because deriving one costs more than the rest of opening a document. Documents still get separate keys, from the
 * client's key and the salt.
 */
export function createServerKeys(): ServerKeys {
  const cache = createLru<string, ServerKeyPair>(maxCachedKeyPairs)
  return (master, openedAt) => {
    const epoch = Math.floor(openedAt / epochMs)
    const name = `${master.id} ${epoch}`
    const keyPair = cache.get(name) ?? deriveKeyPair(master, epoch)
    cache.set(name, keyPair)
    return keyPair
  }
}

function deriveKeyPair(master: MasterKey, epoch: number): ServerKeyPair {
  const scalar = hkdfSync(
    'sha256',
    master.secretKey('collect-x25519'),
    '',
    `epoch ${epoch}`,
    keyBytes,
  )
  const privateKey = privateKeyOf(new Uint8Array(scalar))
  return { privateKey, publicKey: publicKeyOf(privateKey) }
}

// Every 255-bit encoding of a point of order 1, 2, 4 or 8 of Curve25519 or its twist
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

/**
 * Returns true for a key of low order: the shared secret would be zero, and anyone could derive the document's keys.
 */
export function isLowOrder(publicKey: string): boolean {
  const bytes = Buffer.from(publicKey, 'base64url')
  // X25519 ignores the top bit (RFC 7748, section 5).
  bytes.writeUInt8(bytes.readUInt8(keyBytes - 1) & 0x7f, keyBytes - 1)
  return lowOrderPoints.has(bytes.toString('hex'))
}

/** Throws if the client key is of low order. */
export function agreeDocumentKeys(
  privateKey: KeyObject,
  { address, clientPublicKey }: { address: DocumentAddress; clientPublicKey: string },
): DocumentKeys {
  const { clientToServer, serverToClient } = deriveKeys(privateKey, clientPublicKey, address)
  return {
    clientToServer: createSecretKey(clientToServer),
    serverToClient: createSecretKey(serverToClient),
  }
}

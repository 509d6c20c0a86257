import { x25519 } from '@noble/curves/ed25519.js'
import { describe, expect, test } from 'vitest'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import { agreeDocumentKeys, createServerKeys, isLowOrder } from '../../../services/collect/keys.ts'
import { firstMasterKey } from './collect-app.ts'

const { current } = createKeyring(firstMasterKey)
const hour = 60 * 60 * 1000
const noon = 500_000 * hour
const address = { sessionId: 'sid_01j00000000000000000000000', documentId: 'document' }
const base64url = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64url')

describe('the server key pair', () => {
  const publicKey = (openedAt: number) => createServerKeys()(current, openedAt).publicKey

  test('is the same on all nodes within an hour, and changes with the next', () => {
    expect(publicKey(noon + hour - 1)).toBe(publicKey(noon))
    expect(publicKey(noon + hour)).not.toBe(publicKey(noon))
    expect(publicKey(noon - 1)).not.toBe(publicKey(noon))
  })

  test('differs between master keys', () => {
    const other = createKeyring(Buffer.alloc(32, 2).toString('base64')).current
    expect(createServerKeys()(other, noon).publicKey).not.toBe(publicKey(noon))
  })

  test('yields different keys for each document with the same client key', () => {
    const { privateKey } = createServerKeys()(current, noon)
    const clientPublicKey = base64url(x25519.getPublicKey(Buffer.alloc(32, 3)))
    const keys = ['one', 'two'].map((documentId) =>
      agreeDocumentKeys(privateKey, { address: { ...address, documentId }, clientPublicKey }),
    )
    const exported = keys.flatMap((pair) => [
      pair.clientToServer.export(),
      pair.serverToClient.export(),
    ])
    expect(new Set(exported.map((bytes) => bytes.toString('hex'))).size).toBe(4)
  })
})

/** Returns a number as a public key: 32 bytes, little-endian. */
function encoded(u: bigint): string {
  const bytes = Buffer.from(u.toString(16).padStart(64, '0'), 'hex').reverse()
  return base64url(bytes)
}

const p = 2n ** 255n - 19n
const ofOrder8 = [
  325606250916557431795983626356110631294008115727848805560023387167927233504n,
  39382357235489614581723060781553021112529911719440698176882885853963445705823n,
]

describe('low-order points', () => {
  const agree = (clientPublicKey: string) =>
    agreeDocumentKeys(createServerKeys()(current, noon).privateKey, { address, clientPublicKey })

  test.each([0n, 1n, ...ofOrder8, p - 1n, p, p + 1n])(
    '%s is detected, with and without its top bit',
    (u) => {
      for (const key of [encoded(u), encoded(u + 2n ** 255n)]) {
        expect(isLowOrder(key)).toBe(true)
        expect(() => agree(key)).toThrow()
      }
    },
  )

  // Every other encoding above p, and neighbors of the listed numbers.
  const others = Array.from({ length: 17 }, (_, i) => p + 2n + BigInt(i))
  test.each([2n, 9n, p - 2n, ...ofOrder8.map((u) => u + 1n), ...others])(
    '%s is not of low order',
    (u) => {
      for (const key of [encoded(u), encoded(u + 2n ** 255n)]) {
        expect(isLowOrder(key)).toBe(false)
        expect(agree(key)).toBeDefined()
      }
    },
  )
})

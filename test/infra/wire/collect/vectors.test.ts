import { createDecipheriv, createHmac } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { gcm } from '@noble/ciphers/aes.js'
import { x25519 } from '@noble/curves/ed25519.js'
import { hmac } from '@noble/hashes/hmac.js'
import { sha256 } from '@noble/hashes/sha2.js'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createKeyring } from '../../../../infra/crypto/keyring.ts'
import { deflateRaw } from '../../../../infra/wire/collect/client.ts'
import type { ClientCrypto } from '../../../../infra/wire/collect/client-crypto.ts'
import * as noble from '../../../../infra/wire/collect/client-crypto.ts'
import { nodeClientCrypto } from '../../../../infra/wire/collect/node-client-crypto.ts'
import {
  associatedData,
  type BodyKind,
  bodyPath,
  decodeFrame,
  fingerprintText,
  fromBase64Url,
  ivBytes,
  keyBytes,
  resultText,
  saltInput,
  toBase64Url,
  utf8,
} from '../../../../infra/wire/collect/protocol.ts'
import { observationsSchema } from '../../../../schemas/observations.ts'
import { agreeDocumentKeys, createServerKeys } from '../../../../services/collect/keys.ts'
import { createNonce, readNonce } from '../../../../services/collect/nonces.ts'
import {
  openDocumentId,
  sealContinuityId,
  sealDocumentId,
} from '../../../../services/collect/sealed-ids.ts'
import vectors from '../../../fixtures/collect-protocol/vectors.json' with { type: 'json' }
import { fastCheckSettings } from '../../../support/bad-delivery.ts'

const { sessionId, documentId } = vectors
const address = { sessionId, documentId }
const bytes = (hex: string) => Uint8Array.from(Buffer.from(hex, 'hex'))
const hex = (value: Uint8Array) => Buffer.from(value).toString('hex')
const keyring = createKeyring(vectors.masterKey)
const openedAt = 1_800_000_000_000

/** Returns the parts of a hex-encoded frame. */
function partsOf(body: string) {
  const frame = decodeFrame(bytes(body))
  if (typeof frame === 'string') throw new Error(frame)
  return { ...frame, nonceText: toBase64Url(frame.nonce) }
}

test('the worked example in the documentation has these values', async () => {
  const page = await readFile(
    path.resolve(import.meta.dirname, '../../../../docs/reference/collect-protocol.md'),
    'utf8',
  )
  const [body] = vectors.bodies
  const { masterKey: _, bodies: __, fingerprint: ___, result, ...values } = vectors
  const shown = [
    ...Object.values(values),
    body?.nonce,
    body?.plaintext,
    body?.ciphertext,
    body?.tag,
    result.responseHmac,
  ]
  for (const value of shown) expect(page).toContain(value)
})

describe.each([
  ['noble', noble],
  ['node:crypto', nodeClientCrypto],
])('the client side (%s)', (_, clientCrypto) => {
  const { createKeyPair, deriveDocumentKeys, sealBody, verifyResponse } = clientCrypto
  const keyPair = createKeyPair(() => bytes(vectors.clientPrivateKey))
  const keys = deriveDocumentKeys(keyPair, { address, serverPublicKey: vectors.serverPublicKey })

  test('key schedule', () => {
    expect(keyPair.publicKey).toBe(vectors.clientPublicKey)
    const secret = x25519.getSharedSecret(
      keyPair.privateKey,
      fromBase64Url(vectors.serverPublicKey),
    )
    expect(hex(secret)).toBe(vectors.sharedSecret)
    expect(hex(sha256(utf8(saltInput(address))))).toBe(vectors.salt)
    expect(hex(keys.clientToServer)).toBe(vectors.clientToServerKey)
    expect(hex(keys.serverToClient)).toBe(vectors.serverToClientKey)
  })

  test.each(vectors.bodies)('body $seq, $kind', (vector) => {
    const kind: BodyKind = vector.kind === 'results' ? 'results' : 'batches'
    expect(bodyPath(address, kind)).toBe(vector.path)
    expect(associatedData(address, kind, vector.seq)).toBe(vector.aad)
    const { seq, nonce } = vector
    const input = { key: keys.clientToServer, address, kind, seq, nonce }
    const body = sealBody({ ...input, iv: bytes(vector.iv), plaintext: bytes(vector.plaintext) })
    expect(hex(body)).toBe(vector.body)
    const { iv, ciphertext, tag, nonceText } = partsOf(vector.body)
    const parts = { iv: hex(iv), ciphertext: hex(ciphertext), tag: hex(tag), nonce: nonceText }
    expect(vector).toMatchObject(parts)
    const opened = gcm(keys.clientToServer, iv, utf8(vector.aad)).decrypt(
      Buffer.concat([ciphertext, tag]),
    )
    expect(hex(opened)).toBe(vector.plaintext)
  })

  test('rejects a low-order point as server key', () => {
    const serverPublicKey = toBase64Url(new Uint8Array(keyBytes))
    expect(() => deriveDocumentKeys(keyPair, { address, serverPublicKey })).toThrow()
  })

  test('responses', () => {
    const { fingerprint, result } = vectors
    expect(fingerprintText(fingerprint, fingerprint)).toBe(fingerprint.text)
    expect(resultText(result, result)).toBe(result.text)
    for (const { text, responseHmac } of [fingerprint, result]) {
      expect(toBase64Url(hmac(sha256, keys.serverToClient, utf8(text)))).toBe(responseHmac)
      expect(verifyResponse(keys, text, responseHmac)).toBe(true)
      expect(verifyResponse(keys, `${text} `, responseHmac)).toBe(false)
    }
  })
})

test('both clients create the same keys and bodies', async () => {
  const random32 = fc.uint8Array({ minLength: keyBytes, maxLength: keyBytes })
  const inputs = fc.record({
    client: random32,
    server: random32,
    seq: fc.nat(),
    sessionId: fc.string(),
    documentId: fc.string(),
    iv: fc.uint8Array({ minLength: ivBytes, maxLength: ivBytes }),
    nonce: fc.uint8Array({ maxLength: 255 }),
    text: fc.string(),
    json: fc.json(),
  })
  type Input = typeof inputs extends fc.Arbitrary<infer Part> ? Part : never
  const outputOf = async (crypto: ClientCrypto, compress: typeof deflateRaw, part: Input) => {
    const { client, server, iv, nonce, seq, text, json } = part
    const address = { sessionId: part.sessionId, documentId: part.documentId }
    const serverPublicKey = noble.createKeyPair(() => server).publicKey
    const keyPair = crypto.createKeyPair(() => client)
    const keys = crypto.deriveDocumentKeys(keyPair, { address, serverPublicKey })
    const input = { key: keys.clientToServer, address, kind: 'batches', seq, iv } as const
    const plaintext = await compress(utf8(json))
    const body = crypto.sealBody({ ...input, nonce: toBase64Url(nonce), plaintext })
    const mac = toBase64Url(hmac(sha256, keys.serverToClient, utf8(text)))
    const verified = [text, `${text} `].map((received) =>
      crypto.verifyResponse(keys, received, mac),
    )
    return { keyPair, keys, body: hex(body), verified }
  }
  await fc.assert(
    fc.asyncProperty(inputs, async (part) => {
      const ofNode = await outputOf(nodeClientCrypto, async (json) => deflateRawSync(json), part)
      expect(ofNode).toEqual(await outputOf(noble, deflateRaw, part))
      expect(ofNode.verified).toEqual([true, false])
    }),
    fastCheckSettings(60),
  )
})

describe('the server side (node:crypto)', () => {
  const server = createServerKeys()(keyring.current, openedAt)
  const keys = agreeDocumentKeys(server.privateKey, {
    address,
    clientPublicKey: vectors.clientPublicKey,
  })

  test('key schedule', () => {
    expect(server.publicKey).toBe(vectors.serverPublicKey)
    expect(keys.clientToServer.export().toString('hex')).toBe(vectors.clientToServerKey)
    expect(keys.serverToClient.export().toString('hex')).toBe(vectors.serverToClientKey)
  })

  test('the server creates and opens the document id and the state id', () => {
    const tenant = {
      organizationId: 'org_01j00000000000000000000000',
      environment: 'test',
    } as const
    const scope = { ...tenant, sessionId, clientPublicKey: vectors.clientPublicKey }
    const opened = openDocumentId(documentId, scope, keyring)
    if (!opened) throw new Error('the document id does not open')
    const { facts } = opened
    expect(facts).toMatchObject({ platform: 'web', number: 1, openedAt })
    const sealer = { keyring, random: (size: number) => Buffer.alloc(size, 0xa5) }
    expect(sealDocumentId(facts, scope, sealer)).toBe(documentId)
    const { stateId } = vectors.fingerprint
    expect(sealContinuityId(String(facts.continuityId), tenant, sealer)).toBe(stateId)
  })

  test.each(vectors.bodies)('body $seq, $kind', (vector) => {
    const { nonce, iv, ciphertext, tag } = partsOf(vector.body)
    const owner = { nonceKey: keyring.current.secretKey('collect-nonce'), documentId }
    const contents = { seq: vector.seq, noBatchYet: vector.seq === 1 }
    expect(readNonce(owner, Buffer.from(nonce))).toEqual(contents)
    expect(createNonce(owner, { ...contents, now: openedAt + vector.seq })).toEqual(
      Buffer.from(nonce),
    )
    const decipher = createDecipheriv('aes-256-gcm', bytes(vectors.clientToServerKey), iv)
    decipher.setAAD(Buffer.from(vector.aad))
    decipher.setAuthTag(tag)
    const plaintext = Buffer.concat([decipher.update(ciphertext), decipher.final()])
    expect(plaintext.toString('hex')).toBe(vector.plaintext)
    const observations = JSON.parse(inflateRawSync(plaintext).toString())
    expect(observationsSchema.parse(observations)).toMatchObject({ version: 1 })
  })

  test('responses', () => {
    for (const { text, responseHmac } of [vectors.fingerprint, vectors.result]) {
      const mac = createHmac('sha256', bytes(vectors.serverToClientKey)).update(text)
      expect(mac.digest('base64url')).toBe(responseHmac)
    }
  })
})

test.each([0, 1, 2, 20, 55])('frames of %i bytes are too short', (length) => {
  const frame = new Uint8Array(length)
  if (length > 0) frame[0] = 1
  if (length > 1) frame[1] = 26
  expect(decodeFrame(frame)).toBe('too_short')
})

test('frames of another version are reported as such', () => {
  expect(decodeFrame(new Uint8Array(100).fill(2))).toBe('unknown_version')
})

import {
  createCipheriv,
  createHash,
  createHmac,
  createPublicKey,
  diffieHellman,
  hkdfSync,
} from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { createKeyring } from '../../../../infra/crypto/keyring.ts'
import { privateKeyOf, publicKeyOf } from '../../../../infra/wire/collect/node-keys.ts'
import {
  associatedData,
  type BodyKind,
  bodyPath,
  type DocumentAddress,
  fingerprintText,
  keyLabels,
  resultText,
  saltInput,
} from '../../../../infra/wire/collect/protocol.ts'
import { createServerKeys } from '../../../../services/collect/keys.ts'
import { issueNonce } from '../../../../services/collect/nonces.ts'
import { sealContinuity, sealDocumentId } from '../../../../services/collect/sealed-ids.ts'

// Makes vectors.json from fixed inputs, by node:crypto alone:
//   node_modules/.bin/node test/infra/wire/collect/generate-vectors.ts
const clientPrivateKey = Buffer.from([...Array(32).keys()].map((index) => index + 1))
const masterKey = Buffer.alloc(32, 0x42).toString('base64')
const sessionId = 'sid_01j00000000000000000000000'
const tenant = { organizationId: 'org_01j00000000000000000000000', environment: 'test' } as const
const openedAt = 1_800_000_000_000
// Raw deflate of {"version":1,"elapsed_ms":5} as one stored block, and of
// {"version":1,"elapsed_ms":2005,"behavior":{}} as zlib compresses it.
const storedPlaintext = '011c00e3ff7b2276657273696f6e223a312c22656c61707365645f6d73223a357d'
const compressedPlaintext =
  'ab562a4b2d2acecccf53b232d4514acd492c284e4d89cf2d56b232323030d5514a4acd482ccbcc2f52b2aaaead0500'

const hex = (bytes: Uint8Array | ArrayBuffer) => Buffer.from(new Uint8Array(bytes)).toString('hex')
const fixedRandom = (size: number) => Buffer.alloc(size, 0xa5)

/** Every input and derived value of one document, two bodies and two authenticated answers. */
export function buildVectors() {
  const keyring = createKeyring(masterKey)
  const privateKey = privateKeyOf(clientPrivateKey)
  const client = { privateKey, publicKey: publicKeyOf(privateKey) }
  const server = createServerKeys()(keyring.current, openedAt)
  const facts = {
    createdAt: openedAt,
    openedAt,
    platform: 'web' as const,
    number: 1,
    part: 1,
    continuityId: '7'.repeat(32),
  }
  const scope = { ...tenant, sessionId, clientPublicKey: client.publicKey }
  const documentId = sealDocumentId(facts, scope, { keyring, random: fixedRandom })
  const address = { sessionId, documentId }
  const publicKey = createPublicKey(client.privateKey)
  const sharedSecret = diffieHellman({ privateKey: server.privateKey, publicKey })
  const salt = createHash('sha256').update(saltInput(address)).digest()
  const derive = (label: string) => Buffer.from(hkdfSync('sha256', sharedSecret, salt, label, 32))
  const keys = {
    clientToServer: derive(keyLabels.clientToServer),
    serverToClient: derive(keyLabels.serverToClient),
  }
  const nonceKey = keyring.current.secretKey('collect-nonce')
  const nonce = (seq: number) =>
    issueNonce(
      { nonceKey, documentId },
      { seq, noBatchYet: seq === 1, now: openedAt + seq },
    ).toString('base64url')
  const stateId = sealContinuity(facts.continuityId, tenant, { keyring, random: fixedRandom })
  const answers = { address, key: keys.serverToClient }
  return {
    masterKey,
    clientPrivateKey: hex(clientPrivateKey),
    clientPublicKey: client.publicKey,
    serverPublicKey: server.publicKey,
    sessionId,
    documentId,
    sharedSecret: hex(sharedSecret),
    salt: hex(salt),
    clientToServerKey: hex(keys.clientToServer),
    serverToClientKey: hex(keys.serverToClient),
    bodies: [
      bodyVector({
        address,
        key: keys.clientToServer,
        kind: 'batches',
        seq: 1,
        nonce: nonce(1),
        plaintext: storedPlaintext,
      }),
      bodyVector({
        address,
        key: keys.clientToServer,
        kind: 'results',
        seq: 2,
        nonce: nonce(2),
        plaintext: compressedPlaintext,
      }),
    ],
    fingerprint: fingerprintVector({ ...answers, stateId, nonce: nonce(2) }),
    result: resultVector({ ...answers, nonce: nonce(3) }),
  }
}

interface BodyInput {
  address: DocumentAddress
  key: Buffer
  kind: BodyKind
  seq: number
  nonce: string
  plaintext: string
}

function bodyVector({ address, key, kind, seq, nonce, plaintext }: BodyInput) {
  const iv = Buffer.alloc(12, seq)
  const aad = associatedData(address, kind, seq)
  const cipher = createCipheriv('aes-256-gcm', key, iv)
  cipher.setAAD(Buffer.from(aad))
  const ciphertext = Buffer.concat([cipher.update(Buffer.from(plaintext, 'hex')), cipher.final()])
  const tag = cipher.getAuthTag()
  const nonceBytes = Buffer.from(nonce, 'base64url')
  const body = Buffer.concat([Buffer.from([1, nonceBytes.length]), nonceBytes, iv, ciphertext, tag])
  return {
    path: bodyPath(address, kind),
    kind,
    seq,
    nonce,
    plaintext,
    iv: hex(iv),
    aad,
    ciphertext: hex(ciphertext),
    tag: hex(tag),
    body: hex(body),
  }
}

interface AnswerInput {
  address: DocumentAddress
  key: Buffer
  nonce: string
}

function fingerprintVector({ address, key, stateId, nonce }: AnswerInput & { stateId: string }) {
  const answer = { sessionId: address.sessionId, stateId, timestamp: openedAt + 1 }
  const text = fingerprintText(answer, { seq: 1, nonce })
  return { seq: 1, nonce, ...answer, text, responseHmac: macOf(key, text) }
}

function resultVector({ address, key, nonce }: AnswerInput) {
  const answer = { sessionId: address.sessionId, sealedToken: 'AgABexample+token/==' }
  const text = resultText(answer, { seq: 2, nonce })
  return { seq: 2, nonce, ...answer, text, responseHmac: macOf(key, text) }
}

function macOf(key: Buffer, text: string): string {
  return createHmac('sha256', key).update(text).digest('base64url')
}

if (import.meta.main) {
  const file = path.resolve(import.meta.dirname, '../../../fixtures/collect-protocol/vectors.json')
  await writeFile(file, `${JSON.stringify(buildVectors(), null, 2)}\n`)
}

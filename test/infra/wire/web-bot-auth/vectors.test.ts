import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type AgentSignature,
  checkSignature,
  lifetimeProblem,
  readSignatures,
} from '../../../../infra/wire/web-bot-auth/check.ts'
import { readSignatureAgents } from '../../../../infra/wire/web-bot-auth/fields.ts'
import { directoryKeys, isSignedBy } from '../../../../infra/wire/web-bot-auth/keys.ts'
import v1 from '../../../fixtures/web-bot-auth/web_bot_auth_architecture_v1.json' with {
  type: 'json',
}
import v2 from '../../../fixtures/web-bot-auth/web_bot_auth_architecture_v2.json' with {
  type: 'json',
}
import agents from '../../../fixtures/web-bot-auth/web_bot_auth_signature_agent_v1.json' with {
  type: 'json',
}

interface Vector {
  key: { kty: string; x?: string }
  created_ms: number
  signature: string
  signature_input: string
  signature_agent?: string
}

const vectors: Vector[] = [...v1, ...v2]
const signedVectors = vectors.map(({ signature_agent, ...vector }, index) => {
  const agent = signature_agent ?? '"https://signature-agent.test"'
  return { ...vector, signature_agent: agent, isAgentCovered: signature_agent !== undefined, index }
})
const ed25519 = signedVectors.filter(({ key }) => key.kty === 'OKP')
const covered = ed25519.filter(({ isAgentCovered }) => isAgentCovered)

const baseUrls = ['https://example.com']
const hourMs = 60 * 60 * 1000

const requestOf = ({
  signature,
  signature_input,
  signature_agent,
}: (typeof signedVectors)[number]) => ({
  method: 'GET',
  target: '/path/to/resource',
  rawHeaders: Object.entries({
    Signature: signature,
    'Signature-Input': signature_input,
    'Signature-Agent': signature_agent,
  }).flat(),
})

function signatureIn(vector: (typeof signedVectors)[number]): AgentSignature {
  const read = readSignatures(requestOf(vector), baseUrls)
  const [first] = Array.isArray(read) ? read : []
  if (first?.status !== 'signed') throw new Error(`not read: ${JSON.stringify(read)}`)
  return first.signature
}

const keys = directoryKeys(JSON.stringify({ keys: vectors.map(({ key }) => key) })) ?? {}

function isSigned({ keyId, bases: [base = ''], bytes }: AgentSignature): boolean {
  return isSignedBy(keys[keyId]?.x ?? '', { base, bytes })
}

it('there are vectors with and without a covered agent', () => {
  expect(signedVectors.length).toBe(8)
  expect(ed25519.length).toBe(4)
  expect(covered.length).toBe(2)
  expect(Object.keys(keys)).toEqual(['poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U'])
})

describe.each(covered)('vector $index', (vector) => {
  const rules = { baseUrls, maxLifetimeMs: hourMs, now: vector.created_ms + 1000 }

  it('is signed by its key', () => {
    expect(signatureIn(vector)).toMatchObject({ agent: 'signature-agent.test' })
    expect(isSigned(signatureIn(vector))).toBe(true)
  })

  it('is rejected only for its lifetime', () => {
    const lifetimeMs = signatureIn(vector).expiresAt - vector.created_ms
    const expected =
      lifetimeMs > hourMs ? { status: 'invalid', reason: 'lifetime' } : { status: 'signed' }
    expect(checkSignature(requestOf(vector), rules)).toMatchObject(expected)
    const longer = { ...rules, maxLifetimeMs: lifetimeMs }
    expect(checkSignature(requestOf(vector), longer)).toMatchObject({ status: 'signed' })
    const atOnce = { maxLifetimeMs: lifetimeMs, now: vector.created_ms }
    expect(lifetimeProblem(signatureIn(vector), atOnce)).toBe(undefined)
  })

  it('does not verify with any bit of base or signature changed', () => {
    const signature = signatureIn(vector)
    const base = Buffer.from(signature.bases[0] ?? '', 'latin1')
    const changedAt = (bytes: Buffer, at: number, bit: number) => {
      const changed = Buffer.from(bytes)
      changed.writeUInt8(changed.readUInt8(at) ^ (1 << bit), at)
      return changed
    }
    const bits = fc.integer({ min: 0, max: 7 })
    const anyBit = () => fc.sample(bits, 1)[0] ?? 0
    for (let at = 0; at < base.length; at++) {
      const bases = [changedAt(base, at, anyBit()).toString('latin1')]
      expect(isSigned({ ...signature, bases }), `byte ${at} of the base`).toBe(false)
    }
    for (let at = 0; at < signature.bytes.length; at++) {
      const bytes = changedAt(signature.bytes, at, anyBit())
      expect(isSigned({ ...signature, bytes }), `byte ${at} of the signature`).toBe(false)
    }
  })
})

it.each(ed25519.filter(({ isAgentCovered }) => !isAgentCovered))(
  'vector $index is rejected because it does not cover the agent',
  (vector) => {
    expect(readSignatures(requestOf(vector), baseUrls)).toEqual([
      { status: 'invalid', reason: 'coverage' },
    ])
  },
)

it.each(signedVectors.filter(({ key, isAgentCovered }) => key.kty === 'RSA' && isAgentCovered))(
  'vector $index has an RSA signature, which is not supported',
  (vector) => {
    const expected = [{ status: 'unknown_key', reason: 'algorithm' }]
    expect(readSignatures(requestOf(vector), baseUrls)).toEqual(expected)
    const withoutAlg = {
      ...vector,
      signature_input: vector.signature_input.replace(';alg="rsa-pss-sha512"', ''),
    }
    expect(readSignatures(requestOf(withoutAlg), baseUrls)).toEqual(expected)
  },
)

it.each(agents)('Signature-Agent: $name', ({ header, entries }) => {
  const read = readSignatureAgents(header)
  const urls = read?.form === 'dictionary' ? [...read.urls] : []
  expect(
    urls.map(([label, { url, type }]) => ({ label, uri: url?.href.replace(/\/$/, ''), type })),
  ).toEqual(entries)
})

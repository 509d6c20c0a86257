import { expect, it } from 'vitest'
import { directoryKeys, isInForce } from '../../../../infra/wire/web-bot-auth/keys.ts'
import { verifyWithDirectory } from '../../../../services/scoring/identity/outcomes.ts'
import { agentSignature, createAgentKey } from '../../../support/agent-signature.ts'

const key = createAgentKey()
const now = 1_800_000_000_000
const seconds = now / 1000
const keysWith = (members: object) =>
  directoryKeys(JSON.stringify({ keys: [{ ...key.jwk, ...members }] })) ?? {}
const isUsable = (members: object, at = now) => {
  const [read] = Object.values(keysWith(members))
  return read !== undefined && isInForce(read, at)
}

it.each<[object, boolean]>([
  [{}, true],
  [{ use: 'sig', alg: 'EdDSA', kid: 'mine', key_ops: ['verify'] }, true],
  [{ use: 'enc' }, false],
  [{ use: 1 }, false],
  [{ key_ops: ['encrypt'] }, false],
  [{ key_ops: [] }, false],
  [{ key_ops: 'verify' }, false],
  [{ exp: seconds + 1 }, true],
  [{ exp: seconds }, false],
  [{ nbf: seconds }, true],
  [{ nbf: seconds + 1 }, false],
  [{ nbf: seconds - 10, exp: seconds + 10 }, true],
  [{ nbf: now - 10_000, exp: now + 10_000 }, true],
  [{ exp: now - 1 }, false],
  [{ exp: String(seconds + 1) }, false],
  [{ nbf: {} }, false],
  [{ exp: null, nbf: null }, true],
])('a directory key with %j is usable: %j', (members, expected) => {
  expect(isUsable(members)).toBe(expected)
})

it('an expired key of a cached directory verifies nothing and is fetched again', () => {
  const lines: [string, string][] = [['"@authority"', 'own.example']]
  const { Signature = '' } = agentSignature({ key, lines, created: seconds })
  const signed = { key_id: key.keyId, bases: ['b'], bytes: Signature.slice('sig1=:'.length, -1) }
  const known = {
    subject: 'https://agent.example',
    fetched_at: now,
    ends_at: now + 3_600_000,
    last_failure: null,
    result: { keys: keysWith({ exp: seconds + 60 }) },
  }
  const invalid = { status: 'invalid', reason: 'signature' }
  expect(verifyWithDirectory(signed, known, now + 59_000)).toMatchObject({ outcome: invalid })
  const unknown = { status: 'unknown_key', reason: 'key' }
  const later = verifyWithDirectory(signed, known, now + 600_000)
  expect(later).toMatchObject({ outcome: unknown, needsFetch: true })
})

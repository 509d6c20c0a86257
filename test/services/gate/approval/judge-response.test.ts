import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { generateDeliveryKeys, sealEnvelope } from '../../../../infra/wire/delivery-envelope.ts'
import { judgeResponse } from '../../../../services/gate/approval/decide.ts'

const { delivery } = generateDeliveryKeys()
const keyId = delivery.key_id
const secret = 'credential-of-the-service'
const envelope = sealEnvelope(
  { version: 1, outputs: { KEY: secret } },
  { delivery, random: randomBytes },
)
const other = sealEnvelope(
  { version: 1, outputs: {} },
  { delivery: generateDeliveryKeys().delivery, random: randomBytes },
)

const judge = (status: number, content: unknown) => {
  const text = typeof content === 'string' ? content : JSON.stringify(content)
  return judgeResponse({ status, body: Buffer.from(text) }, keyId)
}
const answer = (changes: object = {}) => ({ encrypted_delivery: { ...envelope, ...changes } })

test.each([200, 201, 202, 299])(
  'status %d with an envelope for this delivery is accepted',
  (status) => {
    expect(judge(status, { ...answer(), more: 1 })).toEqual({ kind: 'accepted', envelope })
  },
)

test('ignores additional members of the response', () => {
  expect(judge(200, answer({ [secret]: secret, note: { more: 1 } }))).toEqual({
    kind: 'accepted',
    envelope,
  })
})

const lowOrder = Buffer.alloc(32).toString('base64url')
const answers: [string, unknown, string][] = [
  ['nothing', '', 'is not JSON'],
  ['no JSON', `<html>${secret}`, 'is not JSON'],
  ['JSON that was cut off', JSON.stringify(answer()).slice(0, -5), 'is not JSON'],
  ['null', null, 'encrypted_delivery'],
  ['another object', { ok: secret }, 'encrypted_delivery'],
  ['an envelope that is not wrapped', envelope, 'encrypted_delivery'],
  [
    'credentials in the clear',
    { encrypted_delivery: { KEY: secret } },
    'encrypted_delivery.version',
  ],
  ['another algorithm', answer({ algorithm: secret }), 'encrypted_delivery.algorithm'],
  ['a short tag', answer({ tag: 'AAAA' }), 'encrypted_delivery.tag'],
  ['an envelope for another delivery', { encrypted_delivery: other }, 'another key'],
  ['a key of low order', answer({ ephemeral_public_key: lowOrder }), 'ephemeral_public_key'],
]
test.each(answers)('retries a 2xx without a valid envelope: %s', (_name, content, place) => {
  const judged = judge(200, content)
  expect(judged).toEqual({ kind: 'retry', problem: expect.stringContaining(place) })
  expect(JSON.stringify(judged)).not.toContain(secret)
})

const statuses: [string, number[]][] = [
  ['retry', [100, 199, 408, 409, 425, 429, 500, 502, 503, 504, 599]],
  ['refuse', [300, 301, 302, 307, 308, 400, 401, 403, 404, 405, 410, 422, 451, 499]],
]
test.each(statuses)('%s follows from the status, whatever the body', (kind, all) => {
  for (const status of all) {
    const problem = `The service answered with status ${status}.`
    expect(judge(status, answer())).toEqual({ kind, problem })
  }
})

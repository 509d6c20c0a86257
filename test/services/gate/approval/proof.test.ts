import { createHash, randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { sealToken } from '../../../../infra/wire/sealed-token.ts'
import { checkProof, openProof } from '../../../../services/gate/approval/proof.ts'

const hash = () => randomBytes(32).toString('hex')
const [ours, replaced] = [hash(), hash()]
const proofTime = Date.UTC(2026, 10, 21, 12)
const url = `https://gate.example/gate/consent/gate_${'0'.repeat(26)}`
const sessionId = `sid_${'0'.repeat(26)}`
const decisionId = `evt_${'0'.repeat(26)}`
const approveToken = 'gtapr_this'
const binding = createHash('sha256').update(approveToken).digest('hex')

interface Changes {
  decision?: object
  request?: object
  session_id?: unknown
  hand_off?: object | null
}

const payload = ({ decision, request, hand_off, ...rest }: Changes = {}) => ({
  object: 'session_verification',
  session_id: sessionId,
  decision: {
    event_id: decisionId,
    verdict: 'human',
    risk_score: 12,
    evaluated_at: new Date(proofTime - 1000).toISOString(),
    ...decision,
  },
  request: { url, ip_address: '192.0.2.1', ...request },
  hand_off:
    hand_off === null
      ? null
      : { challenge_answered: true, input_observed: true, binding, ...hand_off },
  ...rest,
})

const seal = (content: unknown, secretHashes = [ours]) =>
  sealToken({ payload: content, secretHashes, random: randomBytes })

const check = (changes: Changes = {}, rules = {}) =>
  checkProof(openProof(seal(payload(changes)), [ours]), {
    url,
    approveToken,
    now: proofTime,
    ...rules,
  })

const evaluated = (at: number) => ({ decision: { evaluated_at: new Date(at).toISOString() } })

test('accepts a new token of this page', () => {
  const proof = { verdict: 'human', riskScore: 12, sessionId, decisionId }
  expect(check()).toEqual(proof)
  expect(check({}, { sessionId })).toEqual(proof)
  expect(check({ decision: { verdict: 'inconclusive' } })).toEqual({
    ...proof,
    verdict: 'inconclusive',
  })
})

test('accepts a token that any of several secrets opens', () => {
  expect(openProof(seal(payload(), [replaced]), [ours, replaced])).toMatchObject({
    session_id: sessionId,
  })
})

describe('rejects', () => {
  const invalid = expect.objectContaining({ code: 'gate.svc_proof_invalid' })
  const tokens: [string, string][] = [
    ['nothing', ''],
    ['no token', 'x'.repeat(100)],
    ['a token for another recipient', seal(payload(), [hash()])],
    ['a modified token', seal(payload()).replace(/.{8}$/, 'AAAAAAAA')],
    ['a token without a decision', seal({ session_id: sessionId, request: { url } })],
    ['a token without a page', seal({ ...payload(), request: undefined })],
    ['a token with another verdict', seal(payload({ decision: { verdict: 'fine' } }))],
    ['an invalid score', seal(payload({ decision: { risk_score: 101 } }))],
    ['an invalid session id', seal(payload({ session_id: 'sid_x' }))],
    ['an invalid time', seal(payload({ decision: { evaluated_at: 'today' } }))],
    ['a list', seal([])],
  ]
  test.each(tokens)('%s', (_name, token) => {
    expect(() => openProof(token, [ours])).toThrow(invalid)
  })
  test('any token if there are no secrets', () => {
    expect(() => openProof(seal(payload()), [])).toThrow(invalid)
  })
  const claims: [string, Changes, object, RegExp][] = [
    ['the page of another signup', { request: { url: `${url.slice(0, -1)}1` } }, {}, /page/],
    ['a page below this one', { request: { url: `${url}/x` } }, {}, /page/],
    ['no page', { request: { url: 'about:blank' } }, {}, /page/],
    ['an invalid URL', { request: { url: '' } }, {}, /page/],
    ['another origin', { request: { url: url.replace('gate.', 'evil.') } }, {}, /page/],
    [
      'another session than the request names',
      {},
      { sessionId: `sid_${'1'.repeat(26)}` },
      /another session/,
    ],
    [
      'a time more than two minutes ago',
      evaluated(proofTime - 120_001),
      {},
      /older than two minutes/,
    ],
    ['a time in the future', evaluated(proofTime + 30_001), {}, /from the future/],
    ['a session without a hand-off', { hand_off: null }, {}, /challenge/],
    ['an unanswered challenge', { hand_off: { challenge_answered: false } }, {}, /did not answer/],
    ['a page without input', { hand_off: { input_observed: false } }, {}, /Nobody has used/],
    ['no approve token', { hand_off: { binding: null } }, {}, /another approve token/],
    ['another approve token', {}, { approveToken: 'gtapr_other' }, /another approve token/],
    [
      'the approve token instead of its hash',
      { hand_off: { binding: approveToken } },
      {},
      /another approve token/,
    ],
  ]
  test.each(claims)('one of %s', (_name, changes, rules, sentence) => {
    expect(() => check(changes, rules)).toThrow(invalid)
    expect(() => check(changes, rules)).toThrow(sentence)
  })
})

test("ignores query and fragment of the page's URL", () => {
  for (const added of ['?utm_source=mail', '#top', '?'])
    expect(check({ request: { url: url + added } })).toMatchObject({ sessionId })
  expect(check({}, { url: url.replace('gate.example', 'Gate.Example:443') })).toMatchObject({
    sessionId,
  })
})

test('accepts times up to their limits', () => {
  for (const at of [proofTime - 120_000, proofTime + 30_000])
    expect(check(evaluated(at))).toMatchObject({ sessionId })
})

test('a bot gets gate.bot_detected, whatever else is wrong, except for the page', () => {
  const bot = { decision: { verdict: 'bot' }, hand_off: { input_observed: false, binding: null } }
  expect(() => check(bot)).toThrow(expect.objectContaining({ code: 'gate.bot_detected' }))
  const elsewhere = { ...bot, request: { url: 'https://evil.example/' } }
  expect(() => check(elsewhere)).toThrow(
    expect.objectContaining({ code: 'gate.svc_proof_invalid' }),
  )
})

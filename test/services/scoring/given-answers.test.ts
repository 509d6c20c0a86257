import { createSecretKey, hash, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { questionsOf } from '../../../infra/challenges/challenges.ts'
import { createCodec } from '../../../infra/event-store/codec.ts'
import { answerMac } from '../../../infra/wire/collect/client-crypto.ts'
import { noLearnedAnswers } from '../../../projections/answers/learned.ts'
import { createMemoryDataKeys } from '../../support/memory-data-keys.ts'
import { visitorLink } from '../../support/session-scored.ts'
import { testSession } from './support/events.ts'
import { naturalInput } from './support/natural-input.ts'
import { evaluateState, scored, stateOf } from './support/sessions.ts'
import { answers, desktopChrome, withParts } from './support/snapshots.ts'

const marker = 'kzq7own'

// Returns the decision about a browser with an unusual value in every member.
function decided(countingKey = createSecretKey(randomBytes(32))) {
  const { challenge, timing_nonce: timingNonce } = answers
  const asked = questionsOf(challenge).map(({ id }) => ({ id, answer: `${marker} ${id}` }))
  const engine = [...asked, { id: 77_331_177, answer: marker }]
  const canvas = `drawn ${marker}`
  const answer_mac = answerMac({ challenge, timingNonce }, { canvas, engine })
  const user_agent = `curl-${marker}/1 ${desktopChrome.snapshot.navigator?.user_agent}`
  const client = withParts(desktopChrome, {
    navigator: { user_agent },
    webgl: { renderer: `card ${marker}` },
    proofs: { canvas_challenge_hash: canvas, engine_answers: engine, answer_mac },
  })
  const state = stateOf(testSession('marker', { client }), naturalInput)
  const evaluation = evaluateState(state, { learned: noLearnedAnswers })
  return scored(state, evaluation, { visitor: visitorLink(), countingKey })
}

test('an encoded decision has no client text in plaintext, and its digests reveal no network', async () => {
  const keys = createMemoryDataKeys()
  const codec = createCodec(undefined, { sealing: { keys, random: randomBytes } })
  const { event, meta, data } = decided()
  expect(data.given_answers).toMatchObject({
    network_digest: expect.stringMatching(/^[0-9a-f]{16}$/),
  })
  expect(JSON.stringify(data.attribution)).toContain(marker)
  await codec.prepareKeys([event])
  const { value } = codec.toRecord(event, meta)
  for (const text of [marker, '77331177']) expect(value.includes(text)).toBe(false)
  const prefix = data.network.ip_address?.replace(/\d+$/, '0') ?? ''
  for (const guess of [prefix, `${prefix}/24`, prefix.replace(/\.0$/, '')])
    expect(value.includes(hash('sha256', guess).slice(0, 16))).toBe(false)
})

test('digests of visitors and networks depend on the counting key', () => {
  const key = createSecretKey(randomBytes(32))
  const digests = (under = key) => decided(under).data.given_answers
  expect(digests()).toEqual(digests())
  const others = digests(createSecretKey(randomBytes(32)))
  expect(others?.engine_answers).toEqual(digests()?.engine_answers)
  expect(others?.visitor_digest).not.toBe(digests()?.visitor_digest)
  expect(others?.network_digest).not.toBe(digests()?.network_digest)
})

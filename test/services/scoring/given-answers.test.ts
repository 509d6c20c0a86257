import { createSecretKey, hash, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { questionsOf } from '../../../infra/challenges/challenges.ts'
import { createCodec } from '../../../infra/event-store/codec.ts'
import { noNetwork } from '../../../infra/ip/network.ts'
import { answerMac } from '../../../infra/wire/collect/client-crypto.ts'
import type { VisitorLink } from '../../../schemas/events.ts'
import { scoredEvent } from '../../../services/scoring/scored-event.ts'
import { evaluate } from '../../../services/scoring/signals/evaluate.ts'
import { hashesOf } from '../../../services/scoring/signals/repeats.ts'
import { createMemoryDataKeys } from '../../support/memory-data-keys.ts'
import { sessionScored } from '../../support/session-scored.ts'
import { batch, opened, startedAt, testSession } from './support/events.ts'
import { stateAfter } from './support/sessions.ts'
import { answers, desktopChrome, withParts } from './support/snapshots.ts'
import { naturalInput } from './support/taught.ts'

const own = 'kzq7own'
const visitor: VisitorLink | null = sessionScored().visitor

// A page whose browser says something of its own wherever it is asked.
function decided(countingKey = createSecretKey(randomBytes(32))) {
  const { challenge, timing_nonce: timingNonce } = answers
  const asked = questionsOf(challenge).map(({ id }) => ({ id, answer: `${own} ${id}` }))
  const engine = [...asked, { id: 77_331_177, answer: own }]
  const canvas = `drawn ${own}`
  const answer_mac = answerMac({ challenge, timingNonce }, { canvas, engine })
  const user_agent = `curl-${own}/1 ${desktopChrome.snapshot.navigator?.user_agent}`
  const client = withParts(desktopChrome, {
    navigator: { user_agent },
    webgl: { renderer: `card ${own}` },
    proofs: { canvas_challenge_hash: canvas, engine_answers: engine, answer_mac },
  })
  const session = testSession('own', { client })
  const observations = {
    version: 1,
    elapsed_ms: 500,
    snapshot: client.snapshot,
    behavior: naturalInput,
  }
  const state = stateAfter([...opened(session), batch(session, { observations })])
  const evaluation = evaluate({ state, network: noNetwork.lookup(state.ip_address, startedAt) })
  const trigger = {
    decisionId: 'evt_x',
    reason: 'first' as const,
    final: true,
    onlyOnChange: false,
    at: startedAt,
  }
  const about = {
    state,
    trigger,
    evaluation,
    visitor,
    hashes: hashesOf(evaluation.facts),
    countingKey,
  }
  return scoredEvent({ ...about, evaluatedAt: startedAt, durationMs: 1 })
}

test('a decision has no text of its client in clear, and what others learn of it leads to no network', async () => {
  const keys = createMemoryDataKeys()
  const codec = createCodec(undefined, { sealing: { keys, random: randomBytes } })
  const { event, meta } = decided()
  if (event.type !== 'SessionScored') throw new Error(event.type)
  expect(event.data.given_answers).toMatchObject({
    network_digest: expect.stringMatching(/^[0-9a-f]{16}$/),
  })
  expect(JSON.stringify(event.data.attribution)).toContain(own)
  await codec.prepare([event])
  const { value } = codec.toRecord(event, meta)
  for (const text of [own, '77331177']) expect(value.includes(text)).toBe(false)
  const prefix = event.data.network.ip_address?.replace(/\d+$/, '0') ?? ''
  for (const guess of [prefix, `${prefix}/24`, prefix.replace(/\.0$/, '')])
    expect(value.includes(hash('sha256', guess).slice(0, 16))).toBe(false)
})

test('visitors and networks are told apart under one key, and not found under another', () => {
  const key = createSecretKey(randomBytes(32))
  const digests = (under = key) => {
    const { event } = decided(under)
    return event.type === 'SessionScored' ? event.data.given_answers : null
  }
  expect(digests()).toEqual(digests())
  const others = digests(createSecretKey(randomBytes(32)))
  expect(others?.engine_answers).toEqual(digests()?.engine_answers)
  expect(others?.visitor_digest).not.toBe(digests()?.visitor_digest)
  expect(others?.network_digest).not.toBe(digests()?.network_digest)
})

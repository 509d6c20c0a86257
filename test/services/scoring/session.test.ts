import { deflateRawSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { noNetwork } from '../../../infra/ip/network.ts'
import { startDecisions } from '../../../services/scoring/decide.ts'
import type { SessionEvent } from '../../../services/scoring/session/state.ts'
import { batch, handOff, idled, opened, startedAt, testSession } from './support/events.ts'
import { stateAfter } from './support/sessions.ts'
import { headlessChrome } from './support/snapshots.ts'
import { taught } from './support/taught.ts'

/** The decisions that a session's events lead to, given one batch of records each. */
function decisionsAfter(events: SessionEvent[]) {
  const { apply, decisions, changed } = startDecisions(new Map(), {
    learned: taught,
    network: noNetwork,
    now: startedAt,
  })
  for (const event of events) apply(event)
  return {
    state: [...changed.values()][0],
    made: decisions.map(({ trigger, evaluation }) => ({
      id: trigger.decisionId,
      final: trigger.final,
      verdict: evaluation.score.verdict,
      slugs: evaluation.fired.map(({ slug }) => slug),
    })),
  }
}

const session = testSession('session')
const start = opened(session)
const bot = { observations: { version: 1, elapsed_ms: 1, snapshot: headlessChrome.snapshot } }
const nothing = { observations: { version: 1, elapsed_ms: 1 } }
const moved = {
  version: 1,
  elapsed_ms: 900,
  behavior: { mouse: { events: 30, moves: 30, clicks: 1 } },
}
const bomb = deflateRawSync(Buffer.alloc(5 * 1024 * 1024, 32))

describe('a session', () => {
  it('given only its opening, has no decision', () => {
    expect(decisionsAfter(start).made).toEqual([])
  })

  it('given a first batch without a snapshot, waits for one', () => {
    const { made } = decisionsAfter([...start, batch(session, nothing), batch(session, { seq: 2 })])
    expect(made).toMatchObject([{ final: false, verdict: 'human' }])
  })

  it('given later batches, decides again only when the verdict changes', () => {
    const events = [
      ...start,
      batch(session),
      batch(session, { seq: 2, ...nothing }),
      batch(session, { seq: 3, ...bot }),
    ]
    expect(decisionsAfter(events).made.map(({ verdict }) => verdict)).toEqual(['human', 'bot'])
  })

  it('given a bot once, stays one when its next page hides the driver', () => {
    const events = [
      ...start,
      batch(session, bot),
      batch(session, { seq: 2 }),
      handOff(session, { seq: 3 }),
    ]
    expect(decisionsAfter(events).made.map(({ verdict }) => verdict)).toEqual(['bot', 'bot'])
  })

  it('given a hand-off, is final: later batches decide nothing, another hand-off decides anew', () => {
    const [first, second] = [handOff(session), handOff(session, { seq: 4 })]
    const { made, state } = decisionsAfter([
      ...start,
      batch(session),
      first,
      batch(session, { seq: 3, ...bot }),
      second,
    ])
    expect(made.map(({ id, final, verdict }) => [id, final, verdict])).toEqual([
      [expect.any(String), false, 'human'],
      [first.data.decision_id, true, 'human'],
      [second.data.decision_id, true, 'bot'],
    ])
    expect(state).toMatchObject({ final: true, decisions: 3 })
  })

  it('given a hand-off with no snapshot at all, is inconclusive', () => {
    const { made } = decisionsAfter([...start, handOff(session, { seq: 1 })])
    expect(made).toMatchObject([{ final: true, verdict: 'inconclusive' }])
  })

  it('given the same body twice, counts it once', () => {
    const events = [...start, batch(session), handOff(session), handOff(session), batch(session)]
    expect(decisionsAfter(events).made).toHaveLength(2)
    expect(stateAfter(events).batches).toBe(2)
  })

  it('given another body under a used number, keeps the first and tells of the conflict', () => {
    const events = [
      ...start,
      batch(session),
      batch(session, { ...bot, at: startedAt + 300 }),
      handOff(session),
    ]
    const { made } = decisionsAfter(events)
    expect(made.at(-1)?.slugs).toContain('conflicting_replay')
    expect(made.at(-1)?.slugs).not.toContain('webdriver_detected')
  })

  it.each([
    ['a deflate bomb', bomb],
    ['garbage', Buffer.from('not deflated')],
    ['an empty body', Buffer.alloc(0)],
    ['JSON of another kind', deflateRawSync('[1,2,3]')],
    ['JSON without an end to its nesting', deflateRawSync('['.repeat(500_000))],
    ['JSON of very many members', deflateRawSync(`[${'0,'.repeat(200_000)}0]`)],
    ['a megabyte of empty blocks', Buffer.alloc(1024 * 1024, Buffer.from('000000ffff', 'hex'))],
    ['half a JSON', deflateRawSync('{"version":1,')],
  ])('given %s, goes on and tells of it', (_, payload) => {
    const { made } = decisionsAfter([...start, batch(session, { payload }), handOff(session)])
    expect(made).toMatchObject([{ final: true, verdict: 'inconclusive' }])
    expect(made[0]?.slugs).toContain('unreadable_observations')
  })

  it('given input, is in the behavioural phase', () => {
    const state = stateAfter([
      ...start,
      batch(session),
      batch(session, { seq: 2, observations: moved }),
    ])
    expect(state.behavior?.mouse.moves).toBe(30)
    const more = stateAfter([
      ...start,
      batch(session, { observations: moved }),
      batch(session, { seq: 2, observations: moved }),
    ])
    expect(more.behavior?.mouse).toMatchObject({ moves: 60, clicks: 2 })
  })

  it('given half an hour of silence, is final; a body in between keeps it open', () => {
    const late = startedAt + 40 * 60_000
    const quiet = decisionsAfter([...start, batch(session), idled(session, { at: late })])
    expect(quiet.made.map(({ final }) => final)).toEqual([false, true])
    const alive = [
      ...start,
      batch(session),
      batch(session, { seq: 2, at: late - 1000, ...nothing }),
    ]
    expect(decisionsAfter([...alive, idled(session, { at: late })]).made).toHaveLength(1)
    expect(
      decisionsAfter([...alive, idled(session, { at: late, reason: 'expired' })]).made,
    ).toHaveLength(2)
  })

  it('given a hand-off, is not ended again', () => {
    const events = [
      ...start,
      batch(session),
      handOff(session),
      idled(session, { at: startedAt + 3_600_000 }),
    ]
    expect(decisionsAfter(events).made).toHaveLength(2)
  })

  it('given proofs of another document, tells of a stale snapshot', () => {
    const proofs = { challenge: 'challenge-of-another', timing_nonce: 'timing-1' }
    const snapshot = { ...session.client.snapshot, proofs }
    const { made } = decisionsAfter([
      ...start,
      batch(session, { observations: { version: 1, elapsed_ms: 1, snapshot } }),
    ])
    expect(made[0]?.slugs).toContain('stale_snapshot')
  })

  it('given only a later event, because the earlier ones are forgotten, still answers', () => {
    expect(decisionsAfter([handOff(session)]).made).toMatchObject([
      { final: true, verdict: 'inconclusive' },
    ])
  })
})

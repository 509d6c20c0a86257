import { describe, expect, it } from 'vitest'
import { noNetwork } from '../../../infra/ip/network.ts'
import { answerMac } from '../../../infra/wire/collect/client-crypto.ts'
import { startDecisions } from '../../../services/scoring/decide.ts'
import { scoredEvent } from '../../../services/scoring/scored-event.ts'
import type { SessionEvent } from '../../../services/scoring/session/state.ts'
import { batch, handOff, opened, startedAt, testSession } from './support/events.ts'
import { answers, desktopChrome, proofsOf } from './support/snapshots.ts'
import { taught } from './support/taught.ts'

const session = testSession('hand-off')
const start = opened(session)
const snapshot = desktopChrome.snapshot

/** What the last decision says of the hand-off that asked for it. */
function shownAfter(events: SessionEvent[]) {
  const { apply, decisions } = startDecisions(new Map(), {
    learned: taught,
    network: noNetwork,
    now: startedAt,
  })
  for (const event of events) apply(event)
  const decision = decisions.at(-1)
  if (!decision) throw new Error('there is no decision')
  const { event } = scoredEvent({
    ...decision,
    visitor: null,
    evaluatedAt: startedAt,
    durationMs: 1,
  })
  return event.type === 'SessionScored' ? event.data.hand_off : undefined
}

const seen = (parts: object) => ({ observations: { version: 1, elapsed_ms: 5, ...parts } })
const moved = { mouse: { events: 3, moves: 3 } }
const unused = { challenge_answered: true, input_observed: false, binding: null }
const changed = (proofs: object) =>
  seen({ snapshot: { ...snapshot, proofs: { ...snapshot.proofs, ...proofs } } })

describe('what a hand-off has shown', () => {
  it('is nothing of a decision that no hand-off asked for', () => {
    expect(shownAfter([...start, batch(session)])).toBeNull()
  })

  it('is no answered challenge without a snapshot, nor with one of another document', () => {
    expect(shownAfter([...start, handOff(session)])).toEqual({
      ...unused,
      challenge_answered: false,
    })
    const echo = { ...answers, answer_mac: null }
    const wrong = [
      { ...echo, challenge: null },
      { ...echo, challenge: 'other' },
      { ...echo, timing_nonce: null },
    ]
    for (const proofs of [...wrong, { answer_mac: 'a'.repeat(43) }, { engine_answers: [] }]) {
      const events = [...start, batch(session, changed(proofs)), handOff(session)]
      expect(shownAfter(events)).toMatchObject({ challenge_answered: false })
    }
    const next = { ...session, documentHash: 'next' }
    const [, document] = opened(next)
    const events = [...start, batch(session), ...(document ? [document] : []), handOff(next)]
    expect(shownAfter(events)).toMatchObject({ challenge_answered: false })
  })

  it('is an answered challenge where the browser cannot draw, and of an SDK that gives it back in clear', () => {
    const { engine_answers: engine } = proofsOf(snapshot.navigator?.user_agent ?? '')
    const asked = { challenge: answers.challenge, timingNonce: answers.timing_nonce }
    const answer_mac = answerMac(asked, { canvas: null, engine })
    const undrawn = { canvas_challenge_hash: null, engine_answers: engine, answer_mac }
    for (const proofs of [undrawn, { ...answers, answer_mac: null }]) {
      const events = [...start, batch(session, changed(proofs)), handOff(session)]
      expect(shownAfter(events)).toEqual(unused)
    }
  })

  it.each([
    ['a pointer', moved],
    ['a key', { keyboard: { events: 1, keys: 1 } }],
    ['a finger', { touch: { events: 2, touches: 1 } }],
    ['a screen reader', { mouse: { activations: 1 } }],
  ])('is input that %s made, in a batch or in the hand-off', (_name, behavior) => {
    const used = { ...unused, input_observed: true }
    expect(shownAfter([...start, batch(session), handOff(session, seen({ behavior }))])).toEqual(
      used,
    )
    const early = [...start, batch(session), batch(session, { seq: 2, ...seen({ behavior }) })]
    expect(shownAfter([...early, handOff(session, { seq: 3 })])).toEqual(used)
  })

  it.each([
    [
      'a script makes',
      { mouse: { events: 3, untrusted: 3, clicks: 3 }, keyboard: { events: 1, untrusted: 1 } },
    ],
    [
      'a page can make by itself',
      { scroll: { events: 9, distance: 400 }, form: { events: 2, changes: 2 } },
    ],
  ])('is no input that %s', (_name, behavior) => {
    expect(shownAfter([...start, batch(session), handOff(session, seen({ behavior }))])).toEqual(
      unused,
    )
  })

  it('is no input of another document of the session', () => {
    const next = { ...session, documentHash: 'next' }
    const [, document] = opened(next)
    const events = [
      ...start,
      batch(session),
      batch(session, { seq: 2, ...seen({ behavior: moved }) }),
      ...(document ? [document] : []),
      batch(next),
      handOff(next),
    ]
    expect(shownAfter(events)).toEqual(unused)
  })

  it('names what it is bound to, where that is a hash', () => {
    const bound = (binding: unknown) =>
      shownAfter([...start, batch(session), handOff(session, seen({ binding }))])?.binding
    const hash = 'ab'.repeat(32)
    expect(bound(hash)).toBe(hash)
    for (const other of ['x', hash.toUpperCase(), `${hash}0`, 7, null, [hash]])
      expect(bound(other)).toBeNull()
  })
})

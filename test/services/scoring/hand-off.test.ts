import { expect, it } from 'vitest'
import { answerMac } from '../../../infra/wire/collect/client-crypto.ts'
import type { SessionEvent } from '../../../services/scoring/session/state.ts'
import { batch, documentOpened, handOff, opened, testSession, visitOf } from './support/events.ts'
import { decisionsAfter, scored } from './support/sessions.ts'
import { answers, desktopChrome, proofsOf } from './support/snapshots.ts'

const session = testSession('hand-off')
const next = { ...session, documentHash: 'next' }
const start = opened(session)
const visit = visitOf(session)
const snapshot = desktopChrome.snapshot

/** Returns `hand_off` of the last decision. */
function shownAfter(...events: SessionEvent[]) {
  const decision = decisionsAfter(events).decisions.at(-1)
  if (!decision) throw new Error('there is no decision')
  return scored(decision.state, decision.evaluation, decision).data.hand_off
}

const seen = (observations: object) => ({ observations })
const moved = { mouse: { events: 3, moves: 3 } }
const unused = { challenge_answered: true, input_observed: false, binding: null }
const changed = (proofs: object) =>
  seen({ snapshot: { ...snapshot, proofs: { ...snapshot.proofs, ...proofs } } })

it('hand_off is null if no hand-off triggered the decision', () => {
  expect(shownAfter(...visit)).toBeNull()
})

it('challenge_answered is false without a snapshot, with wrong proofs, or with the snapshot of another document', () => {
  const unanswered = { ...unused, challenge_answered: false }
  expect(shownAfter(...start, handOff(session))).toEqual(unanswered)
  const echo = { ...answers, answer_mac: null }
  const wrong = [
    { ...echo, challenge: null },
    { ...echo, challenge: 'other' },
    { ...echo, timing_nonce: null },
    { answer_mac: 'a'.repeat(43) },
    { engine_answers: [] },
  ]
  for (const proofs of wrong)
    expect(shownAfter(...start, batch(session, changed(proofs)), handOff(session))).toEqual(
      unanswered,
    )
  expect(shownAfter(...visit, documentOpened(next), handOff(next))).toEqual(unanswered)
})

it('challenge_answered is true if the browser cannot draw, or the SDK echoes the challenge', () => {
  const { engine_answers: engine } = proofsOf(snapshot.navigator?.user_agent ?? '')
  const asked = { challenge: answers.challenge, timingNonce: answers.timing_nonce }
  const answer_mac = answerMac(asked, { canvas: null, engine })
  const undrawn = { canvas_challenge_hash: null, engine_answers: engine, answer_mac }
  for (const proofs of [undrawn, { ...answers, answer_mac: null }])
    expect(shownAfter(...start, batch(session, changed(proofs)), handOff(session))).toEqual(unused)
})

it.each([
  ['a pointer', moved],
  ['a key', { keyboard: { events: 1, keys: 1 } }],
  ['a finger', { touch: { events: 2, touches: 1 } }],
  ['a screen reader', { mouse: { activations: 1 } }],
])('input_observed is true for input from %s, in a batch or in the hand-off', (_name, behavior) => {
  const used = { ...unused, input_observed: true }
  expect(shownAfter(...visit, handOff(session, seen({ behavior })))).toEqual(used)
  const early = batch(session, { seq: 2, ...seen({ behavior }) })
  expect(shownAfter(...visit, early, handOff(session, { seq: 3 }))).toEqual(used)
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
])('input_observed is false for input that %s', (_name, behavior) => {
  expect(shownAfter(...visit, handOff(session, seen({ behavior })))).toEqual(unused)
})

it('input_observed ignores input in another document of the session', () => {
  const used = batch(session, { seq: 2, ...seen({ behavior: moved }) })
  const other = [documentOpened(next), batch(next), handOff(next)]
  expect(shownAfter(...visit, used, ...other)).toEqual(unused)
})

it('binding is the value that the client sent, if it is a hash', () => {
  const bound = (binding: unknown) =>
    shownAfter(...visit, handOff(session, seen({ binding })))?.binding
  const hash = 'ab'.repeat(32)
  expect(bound(hash)).toBe(hash)
  for (const other of ['x', hash.toUpperCase(), `${hash}0`, 7, null, [hash]])
    expect(bound(other)).toBeNull()
})

import { deflateRawSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { dueAt } from '../../../services/scoring/session/due.ts'
import type { SessionEvent } from '../../../services/scoring/session/state.ts'
import { batch, handOff, idled, opened, startedAt, testSession, visitOf } from './support/events.ts'
import { decisionsAfter, slugs, stateAfter } from './support/sessions.ts'
import { headlessChrome } from './support/snapshots.ts'

/** Returns a summary of the decisions that the events trigger. */
const summaryOf = (...events: SessionEvent[]) =>
  decisionsAfter(events).decisions.map(({ trigger: { decisionId: id, final }, evaluation }) => ({
    id,
    final,
    verdict: evaluation.score.verdict,
    slugs: slugs(evaluation),
  }))

const session = testSession('session')
const start = opened(session)
const visit = visitOf(session)
const bot = { observations: { snapshot: headlessChrome.snapshot } }
const nothing = { observations: {} }
const moved = { behavior: { mouse: { events: 30, moves: 30, clicks: 1 } } }
const bomb = deflateRawSync(Buffer.alloc(5 * 1024 * 1024, 32))

it('has no decision after only its opening', () => {
  expect(summaryOf(...start)).toEqual([])
})

it('waits for a snapshot if the first batch has none', () => {
  expect(summaryOf(...start, batch(session, nothing), batch(session, { seq: 2 }))).toMatchObject([
    { final: false, verdict: 'human' },
  ])
})

it('is decided again after later batches only if the verdict changes', () => {
  const later = [batch(session, { seq: 2, ...nothing }), batch(session, { seq: 3, ...bot })]
  expect(summaryOf(...visit, ...later)).toMatchObject([{ verdict: 'human' }, { verdict: 'bot' }])
})

it('stays a bot if its next page hides the driver', () => {
  const hidden = [batch(session, { seq: 2 }), handOff(session, { seq: 3 })]
  expect(summaryOf(...start, batch(session, bot), ...hidden)).toMatchObject([
    { verdict: 'bot' },
    { verdict: 'bot' },
  ])
})

it('is final after a hand-off: later batches change nothing, another hand-off is decided again', () => {
  const [first, second] = [handOff(session), handOff(session, { seq: 4 })]
  const events = [...visit, first, batch(session, { seq: 3, ...bot }), second]
  expect(summaryOf(...events)).toMatchObject([
    { final: false, verdict: 'human' },
    { id: first.data.decision_id, final: true, verdict: 'human' },
    { id: second.data.decision_id, final: true, verdict: 'bot' },
  ])
  const states = [...decisionsAfter(events).newStates.values()]
  expect(states).toMatchObject([{ final: true, decisions: 3 }])
})

it('is inconclusive at a hand-off without a snapshot or without earlier events', () => {
  const inconclusive = [{ final: true, verdict: 'inconclusive' }]
  expect(summaryOf(...start, handOff(session, { seq: 1 }))).toMatchObject(inconclusive)
  expect(summaryOf(handOff(session))).toMatchObject(inconclusive)
})

it('counts a repeated body once', () => {
  const events = [...visit, handOff(session), handOff(session), batch(session)]
  expect(summaryOf(...events)).toHaveLength(2)
  expect(stateAfter(events).batches).toBe(2)
})

it('keeps the first body of a sequence number and reports the conflict', () => {
  const other = batch(session, { ...bot, at: startedAt + 300 })
  const last = summaryOf(...visit, other, handOff(session)).at(-1)
  expect(last?.slugs).toContain('conflicting_replay')
  expect(last?.slugs).not.toContain('webdriver_detected')
})

it.each([
  ['a deflate bomb', bomb],
  ['garbage', Buffer.from('not deflated')],
  ['an empty body', Buffer.alloc(0)],
  ['other JSON', deflateRawSync('[1,2,3]')],
  ['endlessly nested JSON', deflateRawSync('['.repeat(500_000))],
  ['JSON with very many members', deflateRawSync(`[${'0,'.repeat(200_000)}0]`)],
  ['a megabyte of empty blocks', Buffer.alloc(1024 * 1024, Buffer.from('000000ffff', 'hex'))],
  ['truncated JSON', deflateRawSync('{"version":1,')],
])('continues after %s and reports it', (_, payload) => {
  const [decision, ...others] = summaryOf(...start, batch(session, { payload }), handOff(session))
  expect(decision).toMatchObject({ final: true, verdict: 'inconclusive' })
  expect(decision?.slugs).toContain('unreadable_observations')
  expect(others).toEqual([])
})

it('adds up input from several batches', () => {
  const events = [1, 2].map((seq) => batch(session, { seq, observations: moved }))
  expect(stateAfter([...start, ...events]).behavior?.mouse).toMatchObject({
    moves: 60,
    clicks: 2,
  })
})

it('is due 30 to 40 minutes after its last body, or at 24 hours', () => {
  const minute = 60_000
  const opened = { created_at: startedAt, last_activity_at: startedAt, final_at: null }
  const dueAfter = (minutes: number, final_at: number | null = null) => {
    const last_activity_at = startedAt + minutes * minute
    return (dueAt({ ...opened, last_activity_at, final_at }) - startedAt) / minute
  }
  for (let minutes = 0; minutes <= 1410; minutes++) {
    expect(dueAfter(minutes)).toBeGreaterThanOrEqual(minutes + 30)
    expect(dueAfter(minutes)).toBeLessThan(minutes + 40)
  }
  for (const [due, least] of [
    [dueAfter(1439), 1440],
    [dueAfter(5, startedAt), 1500],
  ] as const) {
    expect(due).toBeGreaterThanOrEqual(least)
    expect(due).toBeLessThan(least + 10)
  }
})

it('is final after half an hour of silence, unless a body keeps it open', () => {
  const late = startedAt + 40 * 60_000
  expect(summaryOf(...visit, idled(session, { at: late })).map(({ final }) => final)).toEqual([
    false,
    true,
  ])
  const alive = [...visit, batch(session, { seq: 2, at: late - 1000, ...nothing })]
  expect(summaryOf(...alive, idled(session, { at: late }))).toHaveLength(1)
  expect(summaryOf(...alive, idled(session, { at: late, reason: 'expired' }))).toHaveLength(2)
})

it('is not ended again after a hand-off', () => {
  const end = idled(session, { at: startedAt + 3_600_000 })
  expect(summaryOf(...visit, handOff(session), end)).toHaveLength(2)
})

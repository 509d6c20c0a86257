import { describe, expect, it } from 'vitest'
import { repeatsProjection } from '../../../projections/repeats/projection.ts'
import { sessionsProjection } from '../../../projections/sessions/projection.ts'
import type { Repeats } from '../../../schemas/events.ts'
import { withHistory } from '../../../services/scoring/signals/evaluate.ts'
import { hashesOf } from '../../../services/scoring/signals/repeats.ts'
import { repeatsOf } from '../../support/session-scored.ts'
import { type TestSession, testSession } from './support/events.ts'
import { openScoringDatabase } from './support/scoring.ts'
import { evaluateState, signalsOf, slugs, stateOf } from './support/sessions.ts'
import {
  type Client,
  desktopChrome,
  iphoneSafari,
  resistingFirefox,
  withParts,
} from './support/snapshots.ts'

const mouse = {
  events: 42,
  moves: 40,
  clicks: 2,
  interval_mean: 17.25,
  interval_std: 8.5,
  straightness: 1.2,
  speed_std: 0.7,
}
const keyboard = { events: 24, keys: 12, interval_mean: 120.5, interval_std: 31.2 }

const evaluated = (client: Client, behavior?: object) =>
  evaluateState(stateOf(testSession('evaluated', { client }), behavior))
const hashes = (client: Client, behavior?: object) => hashesOf(evaluated(client, behavior).facts)
const behaviorHash = (behavior?: object, client = desktopChrome) =>
  hashes(client, behavior).behavior_hash
const withRepeats = (repeats: Repeats | null) =>
  withHistory(evaluated(desktopChrome), { visitorSessions: 0, repeats, near: null })
const slugsWith = (repeats: Repeats | null) => slugs(withRepeats(repeats))
const judged = (repeats: Repeats) => withRepeats(repeats).score

const hashed = /^[0-9a-f]{64}(\.[0-9a-f]{16}){4}\.[\w-]+$/
// Compared only within a burst from one address.
const onlyNumbers = /^\.{5}[\w-]+$/

describe('hashes', () => {
  it('identify the machine regardless of window, zoom, connection and proofs', () => {
    const again = withParts(desktopChrome, {
      environment: { inner_width: 500, outer_height: 900, has_focus: false, pixel_ratio: 1.5 },
      navigator: { connection_rtt: 450 },
      audio: { voice_count: 0 },
      proofs: { challenge: 'challenge-2', timing_nonce: 'timing-2' },
    })
    expect(hashes(again).snapshot_hash).toBe(hashes(desktopChrome).snapshot_hash)
    const other = withParts(desktopChrome, { webgl: { renderer: 'another' } })
    expect(hashes(other).snapshot_hash).not.toBe(hashes(desktopChrome).snapshot_hash)
    expect(hashes(iphoneSafari).snapshot_hash).toMatch(/^[0-9a-f]{64}\.[0-9a-f]{16}$/)
  })

  it('identify input with at least 20 events and varying intervals', () => {
    expect(behaviorHash({ mouse })).toMatch(hashed)
    expect(behaviorHash({ mouse: { ...mouse, interval_std: 8.6 } })).not.toBe(
      behaviorHash({ mouse }),
    )
    expect(behaviorHash({ mouse: { ...mouse, events: 19 } })).toMatch(onlyNumbers)
    expect(behaviorHash({ mouse: { ...mouse, events: 10 }, keyboard })).toMatch(hashed)
    expect(behaviorHash({ mouse: { ...mouse, interval_std: 0 } })).toBeNull()
    expect(behaviorHash({ scroll: mouse })).toBeNull()
    expect(behaviorHash()).toBeNull()
  })

  it('ignore keys if the clock is rounded to 100 ms', () => {
    expect(behaviorHash({ keyboard })).toMatch(/^[0-9a-f]{64}/)
    expect(behaviorHash({ keyboard }, resistingFirefox)).toBeNull()
    expect(behaviorHash({ keyboard, mouse }, resistingFirefox)).toMatch(hashed)
  })
})

describe('repeats as evidence', () => {
  const once = repeatsOf(1)
  const many = (count: number) => ({ five_minutes: count, hour: count, day: count })

  it('fire no signal if nothing repeats or nothing was counted', () => {
    expect(slugsWith(once)).toEqual(slugsWith(null))
  })

  it('equal machines and a shared address are context and do not change the score', () => {
    const shared = repeatsOf(1, {
      snapshot_sessions: many(100),
      address_sessions: many(100),
      network_sessions: many(100),
      address_visitors: many(100),
      user_visitors: many(8),
    })
    expect(slugsWith(shared)).toEqual(
      expect.arrayContaining(['replayed_snapshot', 'velocity_address', 'user_many_visitors']),
    )
    expect(judged(shared)).toEqual(judged(once))
  })

  it('equal input is suspicious, and more so on an equal machine', () => {
    const behavior = repeatsOf(1, { behavior_sessions: { five_minutes: 1, hour: 1, day: 2 } })
    expect(judged(behavior).verdict).toBe('inconclusive')
    const whole = { ...behavior, snapshot_sessions: many(2) }
    expect(slugsWith(whole)).toEqual(
      expect.arrayContaining(['replayed_behavior', 'replayed_session', 'replayed_snapshot']),
    )
    expect(judged(whole).verdict).toBe('inconclusive')
    expect(judged(whole).risk).toBeGreaterThan(judged(behavior).risk)
  })

  it('many tabs, a family or a kiosk stay human; an improbable rate does not', () => {
    expect(judged(repeatsOf(1, { visitor_sessions: many(60) }))).toEqual(judged(once))
    expect(judged(repeatsOf(1, { visitor_sessions: many(61) })).verdict).toBe('inconclusive')
    expect(judged(repeatsOf(1, { visitor_users: many(9), visitor_addresses: many(9) }))).toEqual(
      judged(once),
    )
    const kiosk = judged(repeatsOf(1, { visitor_users: many(100), visitor_addresses: many(10) }))
    expect(kiosk.verdict).toBe('human')
    expect(kiosk.risk).toBeGreaterThan(judged(once).risk)
  })
})

const world = await openScoringDatabase(sessionsProjection, repeatsProjection)
await world.score()

describe('in the database', () => {
  const decided = (session: TestSession, behavior: object) => world.decided(session, behavior)

  it('a session replayed with fresh keys is inconclusive, and the original stays human', async () => {
    const human = await decided(testSession('human'), { mouse })
    expect(human).toMatchObject({
      verdict: 'human',
      repeats: {
        behavior_sessions: { day: 1 },
        address_sessions: { day: 1 },
        visitor_sessions: { day: 1 },
      },
    })
    const replayed = await decided(testSession('replayed', { ip: '198.51.100.7' }), { mouse })
    expect(replayed).toMatchObject({
      verdict: 'inconclusive',
      behavior_hash: human.behavior_hash,
      snapshot_hash: human.snapshot_hash,
      runtime_integrity: { replay_suspected: 'high_risk' },
      repeats: {
        behavior_sessions: { five_minutes: 2, hour: 2, day: 2 },
        snapshot_sessions: { five_minutes: 2 },
        address_sessions: { five_minutes: 1 },
      },
    })
    const elsewhere = await decided(testSession('elsewhere', { environment: 'test' }), { mouse })
    expect(elsewhere).toMatchObject({
      verdict: 'human',
      repeats: { behavior_sessions: { day: 1 } },
    })
  })

  it('a colleague with an equal machine and her own input stays human', async () => {
    const own = { mouse: { ...mouse, interval_mean: 18.75 } }
    const colleague = await decided(testSession('colleague'), own)
    expect(colleague.verdict).toBe('human')
    expect(colleague.repeats).toMatchObject({
      address_sessions: { day: 2 },
      network_sessions: { day: 2 },
      behavior_sessions: { day: 1 },
    })
    expect(signalsOf(colleague)).toContain('replayed_snapshot')
  })
})

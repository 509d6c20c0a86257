import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { noNetwork } from '../../../infra/ip/network.ts'
import type { Repeats } from '../../../schemas/events.ts'
import { evaluate, withHistory } from '../../../services/scoring/signals/evaluate.ts'
import { hashesOf } from '../../../services/scoring/signals/repeats.ts'
import { repeatsOf } from '../../support/session-scored.ts'
import { type Decisions, openDecisions } from './support/decisions.ts'
import { batch, opened, startedAt, type TestSession, testSession } from './support/events.ts'
import { slugs, stateAfter } from './support/sessions.ts'
import {
  type Client,
  desktopChrome,
  iphoneSafari,
  resistingFirefox,
  withParts,
} from './support/snapshots.ts'
import { taught } from './support/taught.ts'

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

function evaluated(client: Client, behavior?: object) {
  const session = testSession('evaluated', { client })
  const observations = { version: 1, elapsed_ms: 500, snapshot: client.snapshot, behavior }
  const state = stateAfter([...opened(session), batch(session, { observations })])
  return evaluate({ state, network: noNetwork.lookup(session.ip, startedAt), learned: taught })
}
const hashes = (client: Client, behavior?: object) => hashesOf(evaluated(client, behavior).facts)
const slugsWith = (repeats: Repeats | null) =>
  slugs(withHistory(evaluated(desktopChrome), { visitorSessions: 0, repeats, near: null }))
const judged = (repeats: Repeats) =>
  withHistory(evaluated(desktopChrome), { visitorSessions: 0, repeats, near: null }).score

const hashed = /^[0-9a-f]{64}(\.[0-9a-f]{16}){4}\.[\w-]+$/
// Compared within a burst of one address only.
const onlyNumbers = /^\.{5}[\w-]+$/

describe('what is compared', () => {
  it('the machine, whatever window, zoom, connection and proofs a visit has', () => {
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

  it('input, once there are 20 events whose intervals differ', () => {
    expect(hashes(desktopChrome, { mouse }).behavior_hash).toMatch(hashed)
    expect(
      hashes(desktopChrome, { mouse: { ...mouse, interval_std: 8.6 } }).behavior_hash,
    ).not.toBe(hashes(desktopChrome, { mouse }).behavior_hash)
    expect(hashes(desktopChrome, { mouse: { ...mouse, events: 19 } }).behavior_hash).toMatch(
      onlyNumbers,
    )
    expect(
      hashes(desktopChrome, { mouse: { ...mouse, events: 10 }, keyboard }).behavior_hash,
    ).toMatch(hashed)
    expect(hashes(desktopChrome, { mouse: { ...mouse, interval_std: 0 } }).behavior_hash).toBeNull()
    expect(hashes(desktopChrome, { scroll: mouse }).behavior_hash).toBeNull()
    expect(hashes(desktopChrome).behavior_hash).toBeNull()
  })

  it('keys alone are not enough where the clock is rounded to 100 ms', () => {
    expect(hashes(desktopChrome, { keyboard }).behavior_hash).toMatch(/^[0-9a-f]{64}/)
    expect(hashes(resistingFirefox, { keyboard }).behavior_hash).toBeNull()
    expect(hashes(resistingFirefox, { keyboard, mouse }).behavior_hash).toMatch(hashed)
  })
})

describe('what repeats as evidence', () => {
  const once = repeatsOf(1)
  const many = (count: number) => ({ five_minutes: count, hour: count, day: count })

  it('nothing in common, or nothing counted, says nothing', () => {
    expect(slugsWith(once)).toEqual(slugsWith(null))
  })

  it('equal machines and a shared address are context, and change no score', () => {
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

  it('equal behavior is doubtful, and more so on an equal machine', () => {
    const behavior = repeatsOf(1, { behavior_sessions: { five_minutes: 1, hour: 1, day: 2 } })
    expect(judged(behavior).verdict).toBe('inconclusive')
    const whole = { ...behavior, snapshot_sessions: many(2) }
    expect(slugsWith(whole)).toEqual(
      expect.arrayContaining(['replayed_behavior', 'replayed_session', 'replayed_snapshot']),
    )
    expect(judged(whole).verdict).toBe('inconclusive')
    expect(judged(whole).risk).toBeGreaterThan(judged(behavior).risk)
  })

  it('a person with many tabs, a family or a kiosk stays human; an improbable rate does not', () => {
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

describe('on a real database', () => {
  let decisions: Decisions

  beforeAll(async () => {
    decisions = await openDecisions()
  })
  afterAll(() => decisions?.close())

  const decided = (session: TestSession, behavior: object) =>
    decisions.decided(session, { behavior })

  it('a recorded session that is sent again under fresh keys is doubted, and the first stays what it was', async () => {
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

  it('a colleague with an equal machine at the same address, and input of her own, stays human', async () => {
    const own = { mouse: { ...mouse, interval_mean: 18.75 } }
    const colleague = await decided(testSession('colleague'), own)
    expect(colleague.verdict).toBe('human')
    expect(colleague.repeats).toMatchObject({
      address_sessions: { day: 2 },
      network_sessions: { day: 2 },
      behavior_sessions: { day: 1 },
    })
    expect(colleague.signals_fired.map(({ signal }) => signal)).toContain('replayed_snapshot')
  })
})

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  clientIdsOf,
  type MatchKind,
  type VisitorKeys,
  visitorKeysOf,
} from '../../../services/scoring/visitors/keys.ts'
import {
  type KnownVisitor,
  type Match,
  type MatchInput,
  matchVisitor,
} from '../../../services/scoring/visitors/match.ts'
import { components, vectorOf } from '../../../services/scoring/visitors/profile.ts'
import { testSession } from './support/events.ts'
import { stateOf } from './support/sessions.ts'
import * as clients from './support/snapshots.ts'
import {
  changedMac,
  elsewhere,
  hour,
  knownVisitor,
  mac,
  now,
  profileFor,
} from './support/visitors.ts'

const sessionId = testSession('new').id
const kinds: MatchKind[] = ['machine', 'drawing', 'fonts', 'place', 'network']
const keys: VisitorKeys = {
  presented: [],
  issued: 'issued',
  install: null,
  matchKeys: kinds.map((kind) => ({ kind, key: kind })),
}

/** The same machine with another canvas hash, as after an update. */
const updated = changedMac({ canvas: { hash: 'c-other' } })
const phone = profileFor(clients.iphoneSafari)
const a = knownVisitor('vid_a')
const aOf = (profile: KnownVisitor['profile']) => knownVisitor('vid_a', { profile })

function match(known: Record<string, KnownVisitor[]>, more: Partial<MatchInput> = {}) {
  const candidates = { byKey: (key: string) => known[key] ?? [] }
  return matchVisitor({ sessionId, keys, profile: mac, candidates, openedAt: now - 1000, ...more })
}

const expectDoubt = (found: Match) => {
  const doubt = { method: 'new', basis: 'probabilistic', confidence: 50 }
  expect(found).toMatchObject({ ...doubt, visitor: undefined })
}

describe('matchVisitor', () => {
  it('returns a new visitor whose id derives from the session if none is known', () => {
    const first = match({})
    expect(first).toMatchObject({ method: 'new', basis: null, visitor: undefined })
    expect(match({}).id).toBe(first.id)
  })

  const presenting = (...presented: string[]) => ({ keys: { ...keys, presented } })

  it('prefers a stored id to anything else', () => {
    const known = { kept: [a], machine: [knownVisitor('vid_b')] }
    const found = match(known, presenting('unknown', 'kept'))
    expect(found).toMatchObject({ id: 'vid_a', method: 'continuity', basis: 'deterministic' })
  })

  it('ignores the stored id of another device, and matches by fingerprint', () => {
    const alone = match({ kept: [aOf(phone)] }, presenting('kept'))
    expect(alone).toMatchObject({ method: 'new', hasCopiedId: true })
    const both = { kept: [aOf(phone)], machine: [knownVisitor('vid_b')] }
    const found = { id: 'vid_b', method: 'fingerprint', hasCopiedId: true }
    expect(match(both, presenting('kept'))).toMatchObject(found)
  })

  it.each([
    [
      'another user agent',
      { navigator: { user_agent: 'Mozilla/5.0 (X11; Linux x86_64) Firefox/153.0' } },
    ],
    ['another platform', { navigator: { platform: 'Linux x86_64' } }],
    [
      'another machine with the same system',
      { webgl: { renderer: 'a' }, canvas: { hash: 'b' }, audio: { hash: 'c' } },
    ],
  ])('matches a stored id despite %s', (_, parts) => {
    const found = match({ kept: [aOf(changedMac(parts))] }, presenting('kept'))
    expect(found).toMatchObject({ id: 'vid_a', basis: 'deterministic' })
  })

  it('matches a stored id if the visitor has no profile', () => {
    expect(match({ kept: [aOf(null)] }, presenting('kept')).id).toBe('vid_a')
  })

  it('matches an install id, unless it was copied to another model', () => {
    const native = { ...keys, install: 'install', matchKeys: [] }
    const found = (...install: KnownVisitor[]) => match({ install }, { keys: native })
    expect(found(a)).toMatchObject({ id: 'vid_a', method: 'native_persistent' })
    expect(found()).toMatchObject({ method: 'native_new' })
    expect(found(aOf(phone))).toMatchObject({ method: 'native_new', visitor: undefined })
    expect(found(aOf(phone), knownVisitor('vid_b')).id).toBe('vid_b')
  })

  it('matches an equal fingerprint, with more confidence in the same network', () => {
    const near = match({ machine: [a] })
    const far = match({ machine: [aOf(elsewhere)] })
    expect(near).toMatchObject({ id: 'vid_a', method: 'fingerprint', basis: 'probabilistic' })
    expect(far.id).toBe('vid_a')
    expect(far.confidence).toBeLessThan(near.confidence)
  })

  it.each([
    ['the time zone', { environment: { timezone: 'Asia/Tokyo' } }],
    [
      'the scale of the display',
      { environment: { screen_width: 1209, screen_height: 786, pixel_ratio: 2.5 } },
    ],
    ['the languages', { navigator: { languages: ['it', 'de'] } }],
    ['the drawing', { canvas: { hash: 'other' } }],
    ['the fonts', { fonts: { enumeration_hash: 'other' } }],
    ['a monitor', { environment: { screen_width: 2560, screen_height: 1440, pixel_ratio: 1 } }],
  ])('matches a fingerprint in which %s changed', (_, parts) => {
    const known = {
      fonts: [aOf(changedMac(parts))],
      drawing: [aOf(changedMac(parts))],
    }
    expect(match(known)).toMatchObject({ id: 'vid_a', method: 'fingerprint_evolution' })
  })

  it('returns a new visitor if too much changed', () => {
    const many = { screen_width: 800, screen_height: 600, pixel_ratio: 1, timezone: 'Asia/Tokyo' }
    const other = changedMac({
      environment: many,
      navigator: { languages: ['ja'], device_memory: 2 },
    })
    expect(match({ drawing: [aOf(other)] }).method).toBe('new')
    const firefox = profileFor(clients.desktopFirefox)
    expect(match({ fonts: [aOf({ ...firefox, network: mac.network })] }).method).toBe('new')
  })

  it('picks the later of two equal candidates if the earlier ended a day before', () => {
    const earlier = { first_seen_at: now - 120 * hour, last_seen_at: now - 115 * hour }
    const known = { machine: [knownVisitor('vid_a', earlier), knownVisitor('vid_b')] }
    expect(match(known).id).toBe('vid_b')
  })

  it.each([
    ['that were seen alternately', { first_seen_at: now - 99 * hour }],
    [
      'that were seen a few hours apart',
      { first_seen_at: now - 99 * hour, last_seen_at: now - 92 * hour },
    ],
    [
      'that an operator split',
      { first_seen_at: now - 200 * hour, last_seen_at: now - 150 * hour, apart_from: 'vid_b' },
    ],
  ])('is in doubt with two equal candidates %s', (_, more) => {
    for (const profile of [mac, elsewhere])
      expectDoubt(
        match({
          machine: [
            knownVisitor('vid_a', { profile: elsewhere, ...more }),
            knownVisitor('vid_b', { profile }),
          ],
        }),
      )
  })

  it.each([
    ['was seen in another network within the hour', elsewhere, { last_seen_at: now - 50 * 60_000 }],
    [
      'was seen within the hour, as with a private window',
      mac,
      { last_seen_at: now - 50 * 60_000 },
    ],
    ['is only a day old', mac, { first_seen_at: now - 20 * hour, last_seen_at: now - 20 * hour }],
  ])('is in doubt if the equal candidate %s', (_, profile, more) => {
    expectDoubt(match({ machine: [knownVisitor('vid_a', { profile, ...more })] }))
  })

  it('is in doubt if the session opened within an hour of the candidate, even if it was decided later', () => {
    const known = { machine: [knownVisitor('vid_a', { last_seen_at: now - 5 * hour })] }
    expect(match(known).id).toBe('vid_a')
    expectDoubt(match(known, { openedAt: now - 5 * hour + 1 }))
  })

  it('does not match a fingerprint shared by many in another network', () => {
    const crowd = Array.from({ length: 10 }, (_, index) => {
      const begun = now - (20 - index) * hour
      return knownVisitor(`vid_${index}`, {
        profile: updated,
        first_seen_at: begun,
        last_seen_at: begun,
      })
    })
    const far = crowd.map((one) => ({ ...one, profile: { ...updated, network: '198.51.100' } }))
    expect(match({ fonts: far }).method).toBe('new')
  })

  it('matches a uniform machine only in the same network', () => {
    const safari = profileFor(clients.desktopSafari)
    const here = { ...safari, network: '198.51.100' }
    expect(match({ place: [aOf(safari)] }, { profile: safari }).id).toBe('vid_a')
    expect(match({ machine: [aOf(here)] }, { profile: safari }).method).toBe('new')
  })

  it('only matches a visitor absent for an hour and known for a day', () => {
    const day = 24 * hour
    const seen = fc.record({ first: fc.nat(9 * day), days: fc.nat(9 * day), isHere: fc.boolean() })
    fc.assert(
      fc.property(fc.array(seen, { maxLength: 6 }), (visits) => {
        const known = visits.map(({ first, days, isHere }, i) => {
          const first_seen_at = now - first
          const last_seen_at = Math.min(now, first_seen_at + days)
          const profile = isHere ? mac : elsewhere
          return knownVisitor(`vid_${i}`, { profile, first_seen_at, last_seen_at })
        })
        const { visitor: found } = match({ machine: known })
        const isNear = (one: KnownVisitor, other: KnownVisitor) =>
          one.first_seen_at < other.last_seen_at + day &&
          other.first_seen_at < one.last_seen_at + day
        const areApart = known.every((one, i) =>
          known.slice(i + 1).every((other) => !isNear(one, other)),
        )
        if (!found) return
        expect(now - 1000 - found.last_seen_at).toBeGreaterThanOrEqual(hour)
        expect(now - 1000 - found.first_seen_at).toBeGreaterThanOrEqual(day)
        expect(areApart).toBe(true)
      }),
    )
  })
})

describe('a profile', () => {
  it.each([
    ['an iPhone', clients.iphoneSafari, []],
    ['an Android phone', clients.androidChrome, []],
    ['Firefox with fingerprinting resistance', clients.resistingFirefox, []],
    ['Brave', clients.brave, []],
    ['desktop Chrome', clients.desktopChrome, ['machine', 'drawing', 'fonts', 'place', 'network']],
    [
      'desktop Firefox',
      clients.desktopFirefox,
      ['machine', 'drawing', 'fonts', 'place', 'network'],
    ],
  ])('of %s has the right match keys', (_, client, expected) => {
    const shown = clientIdsOf(stateOf(testSession('s', { client })))
    expect(visitorKeysOf(shown, profileFor(client)).matchKeys.map(({ kind }) => kind)).toEqual(
      expected,
    )
  })

  it.each([
    ['a container', clients.bareChromium],
    ['headless Chrome', clients.headlessChrome],
    ['Safari on a Mac, because all report one graphics card', clients.desktopSafari],
  ])('of %s is not distinctive', (_, client) => {
    expect(profileFor(client).distinctive).toBe(false)
  })

  it('has different keys in other organizations and environments', () => {
    const state = clientIdsOf(stateOf(testSession('s')))
    const live = visitorKeysOf(state, mac)
    const test = visitorKeysOf({ ...state, environment: 'test' }, mac)
    const foreign = visitorKeysOf({ ...state, organization_id: 'org_other' }, mac)
    const machines = [live, test, foreign].map(({ matchKeys }) => matchKeys[0]?.key)
    expect(new Set(machines).size).toBe(3)
    expect(new Set([live.issued, test.issued, foreign.issued]).size).toBe(3)
  })

  it('is a vector with one number per component, equal for equal values', () => {
    const [one, two] = [vectorOf(mac), vectorOf(updated)]
    expect(one).toHaveLength(components.length)
    const differing = one.flatMap((value, index) =>
      value === two[index] ? [] : [components[index]],
    )
    expect(differing).toEqual(['canvas'])
    expect(vectorOf(null)).toEqual([])
  })
})

import { describe, expect, it } from 'vitest'
import { type KnownVisitor, type MatchInput, matchVisitor } from '../../../services/scoring/visitors/match.ts'
import {
  components,
  type Profile,
  profileOf,
  shownBy,
  type VisitorKeys,
  vectorOf,
  visitorKeysOf,
} from '../../../services/scoring/visitors/profile.ts'
import { batch, opened, testSession } from './support/events.ts'
import { evaluateClient, stateAfter } from './support/sessions.ts'
import * as clients from './support/snapshots.ts'

const sessionId = testSession('new').id
const keys: VisitorKeys = {
  presented: [],
  issued: 'issued',
  install: null,
  anchors: 'anchors',
  partial: ['machine', 'setup'],
}

function profileFor(client: clients.Client): Profile {
  const profile = profileOf(evaluateClient(client).facts)
  if (!profile) throw new Error('no snapshot')
  return profile
}

const mac = profileFor(clients.desktopChrome)
const elsewhere = { ...mac, network: '198.51.100' }
/** The same machine with another canvas, as after an update. */
const updated = profileFor(clients.withParts(clients.desktopChrome, { canvas: { hash: 'c-other' } }))
const other = profileFor(clients.desktopSafari)

function visitor(id: string, profile: Profile | null = mac): KnownVisitor {
  return { id, first_seen_at: 1, last_seen_at: 2, sessions: 3, profile }
}

function match(known: Record<string, KnownVisitor[]>, some: Partial<MatchInput> = {}) {
  const candidates = { byKey: (key: string) => known[key] ?? [] }
  return matchVisitor({ sessionId, keys, profile: mac, candidates, ...some })
}

describe('which visitor', () => {
  it('given nothing known, a new one whose id follows from the session', () => {
    const first = match({})
    expect(first).toMatchObject({ method: 'new', basis: null, visitor: undefined })
    expect(match({}).id).toBe(first.id)
  })

  it('given an id that the client kept, its visitor, before anything else', () => {
    const presented = ['unknown', 'kept']
    const found = match(
      { kept: [visitor('vid_a')], anchors: [visitor('vid_b')] },
      { keys: { ...keys, presented } },
    )
    expect(found).toMatchObject({ id: 'vid_a', method: 'continuity', basis: 'deterministic' })
  })

  it('given an install id, the visitor of that app', () => {
    const native = { ...keys, install: 'install' }
    expect(match({ install: [visitor('vid_a')] }, { keys: native })).toMatchObject({
      id: 'vid_a',
      method: 'native_persistent',
    })
    expect(match({}, { keys: native })).toMatchObject({ method: 'native_new' })
  })

  it('given equal anchors, the one visitor that has them, surer in the same network', () => {
    const near = match({ anchors: [visitor('vid_a')] })
    const far = match({ anchors: [visitor('vid_a', elsewhere)] })
    expect(near).toMatchObject({ id: 'vid_a', method: 'fingerprint', basis: 'probabilistic' })
    expect(far.id).toBe('vid_a')
    expect(far.confidence).toBeLessThan(near.confidence)
  })

  it('given two with equal anchors, the one in the same network, else a new one', () => {
    expect(match({ anchors: [visitor('vid_a', elsewhere), visitor('vid_b')] }).id).toBe('vid_b')
    expect(match({ anchors: [visitor('vid_a'), visitor('vid_b')] }).method).toBe('new')
    expect(match({ anchors: [visitor('vid_a', elsewhere), visitor('vid_b', elsewhere)] }).method).toBe('new')
  })

  it('given a likeness, the visitor it belongs to, unless two are alike', () => {
    const known = { machine: [visitor('vid_a', updated), visitor('vid_b', other)] }
    expect(match(known)).toMatchObject({
      id: 'vid_a',
      method: 'fingerprint_evolution',
      basis: 'probabilistic',
    })
    expect(match({ machine: [visitor('vid_a', updated), visitor('vid_b', updated)] }).method).toBe('new')
    expect(match({ setup: [visitor('vid_b', other)] }).method).toBe('new')
  })

  it('given a key that very many share, does not rely on it', () => {
    const crowd = Array.from({ length: 9 }, (_, index) =>
      visitor(`vid_${index}`, index === 0 ? updated : other),
    )
    expect(match({ machine: crowd }).method).toBe('new')
  })
})

describe('a profile', () => {
  it.each([
    ['a container', clients.bareChromium],
    ['headless Chrome', clients.headlessChrome],
    ['an iPhone', clients.iphoneSafari],
    ['an Android phone', clients.androidChrome],
    ['Firefox with resistance to fingerprinting', clients.resistingFirefox],
    ['Brave', clients.brave],
  ])('of %s is not distinctive and makes no anchors', (_, client) => {
    const profile = profileFor(client)
    expect(profile.distinctive).toBe(false)
    const session = testSession('s', { client })
    expect(visitorKeysOf(shownBy(stateAfter([...opened(session), batch(session)])), profile)).toMatchObject({
      anchors: null,
      partial: [],
    })
  })

  it.each([
    ['desktop Chrome', clients.desktopChrome],
    ['desktop Safari', clients.desktopSafari],
    ['desktop Firefox', clients.desktopFirefox],
    ['a Chromebook', clients.chromebook],
  ])('of %s is distinctive and is linked by its fingerprint', (_, client) => {
    const profile = profileFor(client)
    const session = testSession('s', { client })
    const found = visitorKeysOf(shownBy(stateAfter([...opened(session), batch(session)])), profile)
    expect(found.anchors).not.toBeNull()
    expect(match({ anchors: [visitor('vid_a', profile)] }, { profile })).toMatchObject({
      id: 'vid_a',
      method: 'fingerprint',
    })
  })

  it('keeps tenants apart: keys of other organizations and environments differ', () => {
    const state = shownBy(stateAfter([...opened(testSession('s')), batch(testSession('s'))]))
    const live = visitorKeysOf(state, mac)
    const test = visitorKeysOf({ ...state, environment: 'test' }, mac)
    const foreign = visitorKeysOf({ ...state, organization_id: 'org_other' }, mac)
    expect(new Set([live.anchors, test.anchors, foreign.anchors]).size).toBe(3)
    expect(new Set([live.issued, test.issued, foreign.issued]).size).toBe(3)
  })

  it('is a vector of one number a component, equal for equal values', () => {
    const [one, two] = [vectorOf(mac), vectorOf(updated)]
    expect(one).toHaveLength(components.length)
    const differing = one.flatMap((value, index) => (value === two[index] ? [] : [components[index]?.name]))
    expect(differing).toEqual(['canvas'])
    expect(vectorOf(null)).toEqual([])
  })
})

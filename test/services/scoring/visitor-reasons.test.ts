import { describe, expect, it } from 'vitest'
import { derivedId } from '../../../infra/ids.ts'
import { commonnessOf } from '../../../services/scoring/visitors/commonness.ts'
import type { LinkFacts } from '../../../services/scoring/visitors/earlier.ts'
import { explainLink } from '../../../services/scoring/visitors/explain.ts'
import type { MatchKind } from '../../../services/scoring/visitors/keys.ts'
import type { KnownVisitor } from '../../../services/scoring/visitors/match.ts'
import { components, type Profile } from '../../../services/scoring/visitors/profile.ts'
import { organizationId, testSession } from './support/events.ts'
import { brave, desktopFirefox } from './support/snapshots.ts'
import {
  changedMac,
  elsewhere,
  hour,
  knownVisitor,
  mac,
  now,
  profileFor,
} from './support/visitors.ts'

const session_id = testSession('explained').id
const began = derivedId('vid', session_id)
const restyled = changedMac({ fonts: { enumeration_hash: 'o' } })

/** Of a session that finds the visitors by the machine. */
function explain(some: Partial<LinkFacts>, known: KnownVisitor[] = [], counted: Profile[] = []) {
  const matchKeys: MatchKind[] = ['machine', 'drawing', 'fonts']
  const keys = {
    presented: [],
    issued: null,
    install: null,
    matchKeys: matchKeys.map((kind) => ({ kind, key: kind })),
  }
  const scope = { organization_id: organizationId, environment: 'live' } as const
  const times = { opened_at: now - 1000, linked_at: now }
  const link = {
    session_id,
    visitor_id: began,
    method: 'new',
    ...scope,
    ...times,
    profile: mac,
    keys,
  } as const
  const byKey = (key: string) => (key === 'machine' ? known : [])
  const byId = (id: string) => known.find((one) => one.id === id)
  const commonness = commonnessOf(counted)
  return explainLink({ ...link, ...some }, { earlier: { byKey, byId }, commonness })
}

const a = knownVisitor('vid_a')
const far = knownVisitor('vid_b', { profile: elsewhere })
const long = { first_seen_at: now - 99 * hour }

describe('what decided', () => {
  it.each([
    ['continuity', 'kept_id'],
    ['native_persistent', 'install_id'],
    ['fingerprint', 'look'],
    ['fingerprint_evolution', 'look'],
    ['existing', 'correction'],
    ['new', 'correction'],
  ] as const)('of a visitor of before by %s: %s', (method, decided_by) => {
    const { chosen, ...explanation } = explain({ visitor_id: 'vid_a', method }, [a])
    expect(explanation).toMatchObject({ session_id, decided_by, next: null })
    expect(chosen).toMatchObject({ visitor_id: 'vid_a', same_network: true })
  })

  it.each([
    ['new', [], 'nobody_before'],
    ['native_new', [], 'nobody_before'],
    ['new', [far], 'doubt'],
  ] as const)('of one that began by %s with candidates %j: %s', (method, known, decided_by) => {
    expect(explain({ method }, [...known])).toMatchObject({ decided_by, chosen: null })
  })
})

describe('the next candidate lost', () => {
  const by = (method: LinkFacts['method'], known: KnownVisitor[], visitor_id = 'vid_a') =>
    explain({ method, visitor_id }, known).next?.lost_because

  it('to an id, whatever its bits', () => {
    expect(by('continuity', [a, far])).toBe('kept_id_decides')
    expect(by('native_persistent', [{ ...a, profile: elsewhere }, knownVisitor('vid_b')])).toBe(
      'kept_id_decides',
    )
  })

  it('to one with more bits', () => {
    expect(by('fingerprint', [a, far])).toBe('less_likely')
  })

  it('as two had that look, of which the session is neither', () => {
    expect(by('new', [far, knownVisitor('vid_c', { ...long, profile: elsewhere })], began)).toBe(
      'look_of_several',
    )
  })

  it('as it was there within the hour, here or elsewhere', () => {
    const there = knownVisitor('vid_b', { profile: elsewhere, last_seen_at: now - 60_000 })
    expect(by('new', [there], began)).toBe('present_elsewhere')
    expect(by('new', [knownVisitor('vid_b', { last_seen_at: now - 60_000 })], began)).toBe(
      'present_elsewhere',
    )
  })

  it('as it began only a day before', () => {
    const young = knownVisitor('vid_b', {
      first_seen_at: now - 20 * hour,
      last_seen_at: now - 2 * hour,
    })
    expect(by('new', [young], began)).toBe('known_too_briefly')
  })

  it('as too little speaks for it', () => {
    const other = { ...restyled, network: '198.51.100' }
    const changed = other.components.map((hash, i) => (i > 4 && i < 10 ? `${hash}x` : hash))
    const unlike = knownVisitor('vid_b', { profile: { ...other, components: changed } })
    expect(by('new', [unlike], began)).toBe('too_little_evidence')
  })

  it('to a correction', () => {
    expect(by('existing', [a, far])).toBe('corrected')
    expect(by('new', [far], 'vid_gone')).toBe('corrected')
  })

  it('as it was not known then, where the same code would choose it now', () => {
    expect(by('new', [a], began)).toBe('known_since')
    expect(by('fingerprint', [far, knownVisitor('vid_c')], 'vid_b')).toBe('known_since')
  })
})

describe('what is compared', () => {
  it('every component is in one of the lists, with how many look so', () => {
    const known = [knownVisitor('vid_a', { profile: restyled })]
    const { chosen, of_visitors } = explain({ visitor_id: 'vid_a', method: 'fingerprint' }, known, [
      mac,
      restyled,
    ])
    const { agreed = [], changed = [], unknown = [] } = chosen?.components ?? {}
    expect([...agreed, ...changed, ...unknown].map(({ name }) => name).sort()).toEqual(
      components.toSorted(),
    )
    expect(changed).toEqual([{ name: 'fonts', visitors_with_it: 1 }])
    expect(agreed).toContainEqual({ name: 'canvas', visitors_with_it: 2 })
    expect(of_visitors).toBe(2)
  })

  it('nothing, where the session or the visitor told nothing of its machine', () => {
    const nothing = { visitor_id: 'vid_a', bits: null, same_network: null, components: null }
    const kept = { visitor_id: 'vid_a', method: 'continuity' } as const
    const silent = explain({ ...kept, profile: null }, [a])
    expect(silent).toMatchObject({ bits_needed: null, chosen: nothing, next: null })
    expect(explain(kept, [{ ...a, profile: null }]).chosen).toEqual(nothing)
    expect(explain(kept).chosen).toEqual(nothing)
  })

  it('bits that are no number are null: another browser, and a look that is hidden', () => {
    const firefox = { ...profileFor(desktopFirefox), network: mac.network }
    const kept = { visitor_id: 'vid_a', method: 'continuity' } as const
    const { chosen } = explain(kept, [{ ...a, profile: firefox }])
    expect(chosen?.bits).toBeNull()
    expect(chosen?.components?.changed).toContainEqual({ name: 'browser', visitors_with_it: 0 })
    const hidden = profileFor(brave)
    expect(explain({ profile: hidden }).bits_needed).toBeNull()
  })
})

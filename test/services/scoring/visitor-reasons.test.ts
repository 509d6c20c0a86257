import { describe, expect, it } from 'vitest'
import { derivedId } from '../../../infra/ids.ts'
import { countComponents } from '../../../services/scoring/visitors/component-counts.ts'
import type { LinkFacts } from '../../../services/scoring/visitors/earlier-visitors.ts'
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

/** Explains a session whose machine key finds the known visitors. */
function explain(extra: Partial<LinkFacts>, known: KnownVisitor[] = [], counted: Profile[] = []) {
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
  const componentCounts = countComponents(counted)
  return explainLink({ ...link, ...extra }, { earlier: { byKey, byId }, componentCounts })
}

const a = knownVisitor('vid_a')
const far = knownVisitor('vid_b', { profile: elsewhere })
const long = { first_seen_at: now - 99 * hour }

describe('decided_by', () => {
  it.each([
    ['continuity', 'kept_id'],
    ['native_persistent', 'install_id'],
    ['fingerprint', 'look'],
    ['fingerprint_evolution', 'look'],
    ['existing', 'correction'],
    ['new', 'correction'],
  ] as const)('of an existing visitor with method %s is %s', (method, decided_by) => {
    const { chosen, ...explanation } = explain({ visitor_id: 'vid_a', method }, [a])
    expect(explanation).toMatchObject({ session_id, decided_by, next: null })
    expect(chosen).toMatchObject({ visitor_id: 'vid_a', same_network: true })
  })

  it.each([
    ['new', [], 'nobody_before'],
    ['native_new', [], 'nobody_before'],
    ['new', [far], 'doubt'],
  ] as const)('of a new visitor by %s with candidates %j is %s', (method, known, decided_by) => {
    expect(explain({ method }, [...known])).toMatchObject({ decided_by, chosen: null })
  })
})

describe('lost_because', () => {
  const by = (method: LinkFacts['method'], known: KnownVisitor[], visitor_id = 'vid_a') =>
    explain({ method, visitor_id }, known).next?.lost_because

  it('is kept_id_decides if a stored id matched', () => {
    expect(by('continuity', [a, far])).toBe('kept_id_decides')
    expect(by('native_persistent', [{ ...a, profile: elsewhere }, knownVisitor('vid_b')])).toBe(
      'kept_id_decides',
    )
  })

  it('is less_likely if the chosen visitor has more bits', () => {
    expect(by('fingerprint', [a, far])).toBe('less_likely')
  })

  it('is look_of_several if two visitors have the fingerprint', () => {
    expect(by('new', [far, knownVisitor('vid_c', { ...long, profile: elsewhere })], began)).toBe(
      'look_of_several',
    )
  })

  it('is present_elsewhere if the candidate was seen within the hour, in any network', () => {
    const there = knownVisitor('vid_b', { profile: elsewhere, last_seen_at: now - 60_000 })
    expect(by('new', [there], began)).toBe('present_elsewhere')
    expect(by('new', [knownVisitor('vid_b', { last_seen_at: now - 60_000 })], began)).toBe(
      'present_elsewhere',
    )
  })

  it('is known_too_briefly if the candidate was first seen within a day', () => {
    const young = knownVisitor('vid_b', {
      first_seen_at: now - 20 * hour,
      last_seen_at: now - 2 * hour,
    })
    expect(by('new', [young], began)).toBe('known_too_briefly')
  })

  it('is too_little_evidence if the bits do not suffice', () => {
    const other = { ...restyled, network: '198.51.100' }
    const changed = other.components.map((hash, i) => (i > 4 && i < 10 ? `${hash}x` : hash))
    const unlike = knownVisitor('vid_b', { profile: { ...other, components: changed } })
    expect(by('new', [unlike], began)).toBe('too_little_evidence')
  })

  it('is corrected after a correction', () => {
    expect(by('existing', [a, far])).toBe('corrected')
    expect(by('new', [far], 'vid_gone')).toBe('corrected')
  })

  it("is known_since if today's data would choose the candidate", () => {
    expect(by('new', [a], began)).toBe('known_since')
    expect(by('fingerprint', [far, knownVisitor('vid_c')], 'vid_b')).toBe('known_since')
  })
})

describe('components and bits', () => {
  it('list every component once, with its count', () => {
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

  it('are null if the session or the visitor has no profile', () => {
    const nothing = { visitor_id: 'vid_a', bits: null, same_network: null, components: null }
    const kept = { visitor_id: 'vid_a', method: 'continuity' } as const
    const silent = explain({ ...kept, profile: null }, [a])
    expect(silent).toMatchObject({ bits_needed: null, chosen: nothing, next: null })
    expect(explain(kept, [{ ...a, profile: null }]).chosen).toEqual(nothing)
    expect(explain(kept).chosen).toEqual(nothing)
  })

  it('are null if the evidence is infinite: another browser, or a hidden fingerprint', () => {
    const firefox = { ...profileFor(desktopFirefox), network: mac.network }
    const kept = { visitor_id: 'vid_a', method: 'continuity' } as const
    const { chosen } = explain(kept, [{ ...a, profile: firefox }])
    expect(chosen?.bits).toBeNull()
    expect(chosen?.components?.changed).toContainEqual({ name: 'browser', visitors_with_it: 0 })
    const hidden = profileFor(brave)
    expect(explain({ profile: hidden }).bits_needed).toBeNull()
  })
})

import { describe, expect, test } from 'vitest'
import { scopes } from '../../../infra/access/principal.ts'
import {
  type ConsoleSession,
  expiresAt,
  isSessionOver,
  type Rights,
  requestedEnvironment,
  roles,
  scopesOf,
} from '../../../services/console/decide.ts'

const hour = 60 * 60 * 1000
const start = 1_800_000_000_000

const session: ConsoleSession = {
  id: 'csn_00000000000000000000000001',
  name: 'Ann',
  environments: ['test'],
  createdAt: start,
  lastUsedAt: start,
  endedAt: null,
  rights: { role: 'viewer' },
  organization: { id: 'org_1', name: 'Shop', status: 'active', capabilities: [] },
}

const key: Rights = {
  keyId: 'key_1',
  scopes: ['webhooks:read'],
  status: 'active',
  graceExpiresAt: null,
}

describe('a session goes on', () => {
  const twelve = 12 * hour
  const week = 7 * 24 * hour
  const busy = { lastUsedAt: start + week - 1 }
  test.each<[string, Partial<ConsoleSession>, now: number, over: boolean]>([
    ['at once', {}, start, false],
    ['while it was used within twelve hours', {}, start + twelve - 1, false],
    ['not when it was idle for twelve hours', {}, start + twelve, true],
    ['for seven days', busy, start + week - 1, false],
    ['no longer, however busy it was', busy, start + week, true],
    ['not when it was ended', { endedAt: start }, start, true],
    ['not when its organization is suspended', inOrganization('suspended'), start, true],
    ['not when its organization is deleted', inOrganization('deleted'), start, true],
    ['with its key', { rights: key }, start, false],
    ['not when its key is revoked', { rights: { ...key, status: 'revoked' } }, start, true],
    ['while its key rotates', { rights: rotating(start + 1) }, start, false],
    ['not when the grace of its key is over', { rights: rotating(start) }, start, true],
  ])('%s', (_, changes, now, over) => {
    expect(isSessionOver({ ...session, ...changes }, now)).toBe(over)
  })

  test('until the earlier of both', () => {
    expect(expiresAt(session)).toBe(start + twelve)
    expect(expiresAt({ ...session, ...busy })).toBe(start + week)
  })
})

function inOrganization(status: 'suspended' | 'deleted'): Partial<ConsoleSession> {
  return { organization: { ...session.organization, status } }
}

function rotating(graceExpiresAt: number): Rights {
  return { ...key, status: 'rotating', graceExpiresAt }
}

describe('rights', () => {
  test('are those of the role, or of the key as it is now', () => {
    expect(scopesOf(session)).toEqual(roles.viewer)
    expect(scopesOf({ rights: key })).toEqual(['webhooks:read'])
    const none = { ...key, scopes: [] }
    expect(scopesOf({ rights: none })).toEqual([
      'sessions:read',
      'sessions:update',
      'fingerprints:read',
    ])
  })

  test('an analyst has those of a viewer and more, and an admin all', () => {
    expect(roles.analyst).toEqual(expect.arrayContaining([...roles.viewer]))
    expect(roles.analyst.length).toBeGreaterThan(roles.viewer.length)
    expect(roles.admin).toEqual(['*'])
  })

  test('a viewer has no scope but of reading, and the export of a person is none of them', () => {
    expect(roles.viewer.filter((scope) => !/:(read|list)$/.test(scope))).toEqual([])
    const reading = scopes.filter((scope) => /:(read|list)$/.test(scope))
    expect(roles.viewer.toSorted()).toEqual(reading.toSorted())
  })
})

describe('the environment', () => {
  const both: ConsoleSession = { ...session, environments: ['live', 'test'] }

  test('is the one that is named', () => {
    expect(requestedEnvironment(both, 'live')).toBe('live')
    expect(requestedEnvironment(both, 'test')).toBe('test')
  })

  test('is refused where the session was not given it', () => {
    expect(() => requestedEnvironment(session, 'live')).toThrow(/no access to the environment live/)
  })

  test.each([undefined, '', 'Live', 'production', ['live', 'test'], 'live, test'])(
    'has to be named: %s',
    (named) => {
      expect(() => requestedEnvironment(both, named)).toThrow(/Tidegate-Environment/)
    },
  )
})

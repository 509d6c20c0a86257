import { describe, expect, test } from 'vitest'
import { scopes } from '../../../infra/access/principal.ts'
import {
  type ConsoleSession,
  isSessionOver,
  type Rights,
  requestedEnvironment,
  roles,
  scopesOf,
  sessionExpiry,
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
  endsAt: null,
}

describe('a console session', () => {
  const twelve = 12 * hour
  const week = 7 * 24 * hour
  const busy = { lastUsedAt: start + week - 1 }
  test.each<[string, Partial<ConsoleSession>, now: number, isOver: boolean]>([
    ['is valid at first', {}, start, false],
    ['is valid if it was used within twelve hours', {}, start + twelve - 1, false],
    ['expires after twelve idle hours', {}, start + twelve, true],
    ['is valid for almost seven days', busy, start + week - 1, false],
    ['expires after seven days, even if it is in use', busy, start + week, true],
    ['is over once revoked', { endedAt: start }, start, true],
    ['is over once its organization is suspended', inOrganization('suspended'), start, true],
    ['is over once its organization is deleted', inOrganization('deleted'), start, true],
    ['is valid with an active key', { rights: key }, start, false],
    ['is over once its key is revoked', { rights: { ...key, status: 'revoked' } }, start, true],
    ['is valid in the grace period of its key', { rights: rotating(start + 1) }, start, false],
    ['is over after the grace period of its key', { rights: rotating(start) }, start, true],
  ])('%s', (_, changes, now, isOver) => {
    expect(isSessionOver({ ...session, ...changes }, now)).toBe(isOver)
  })

  test('expires at the earlier of idle timeout and maximum age', () => {
    expect(sessionExpiry(session)).toBe(start + twelve)
    expect(sessionExpiry({ ...session, ...busy })).toBe(start + week)
  })
})

function inOrganization(status: 'suspended' | 'deleted'): Partial<ConsoleSession> {
  return { organization: { ...session.organization, status } }
}

function rotating(endsAt: number): Rights {
  return { ...key, status: 'rotating', endsAt }
}

describe('permissions', () => {
  test('are those of the role, or the current ones of the key', () => {
    expect(scopesOf(session)).toEqual(roles.viewer)
    expect(scopesOf({ rights: key })).toEqual(['webhooks:read'])
    const none = { ...key, scopes: [] }
    expect(scopesOf({ rights: none })).toEqual([
      'sessions:read',
      'sessions:update',
      'fingerprints:read',
    ])
  })

  test('of an analyst include those of a viewer, and an admin has all', () => {
    expect(roles.analyst).toEqual(expect.arrayContaining([...roles.viewer]))
    expect(roles.analyst.length).toBeGreaterThan(roles.viewer.length)
    expect(roles.admin).toEqual(['*'])
  })

  test('of a viewer are all scopes that end in :read or :list, and no others', () => {
    expect(roles.viewer.filter((scope) => !/:(read|list)$/.test(scope))).toEqual([])
    const reading = scopes.filter((scope) => /:(read|list)$/.test(scope))
    expect(roles.viewer.toSorted()).toEqual(reading.toSorted())
  })
})

describe('the requested environment', () => {
  const both: ConsoleSession = { ...session, environments: ['live', 'test'] }

  test('is the one in the header', () => {
    expect(requestedEnvironment(both, 'live')).toBe('live')
    expect(requestedEnvironment(both, 'test')).toBe('test')
  })

  test('throws if the session has no access to it', () => {
    expect(() => requestedEnvironment(session, 'live')).toThrow(/no access to the environment live/)
  })

  test.each([undefined, '', 'Live', 'production', ['live', 'test'], 'live, test'])(
    'throws if the header is %s',
    (header) => {
      expect(() => requestedEnvironment(both, header)).toThrow(/Tidegate-Environment/)
    },
  )
})

import { expect, it } from 'vitest'
import { connectionsOf } from '../../../services/server/connections.ts'
import { allRoles } from '../../../services/server/roles.ts'

const all = (isLogEmbedded: boolean) =>
  Object.fromEntries(
    allRoles.map((role) => [role, connectionsOf({ roles: [role], isLogEmbedded }).all]),
  )

it('uses few database connections for roles that need few', () => {
  expect(all(false)).toEqual({
    collect: 14,
    scoring: 8,
    projections: 12,
    api: 22,
    gate: 14,
    webhooks: 12,
  })
  expect(all(true)).toEqual({
    collect: 16,
    scoring: 12,
    projections: 16,
    api: 24,
    gate: 16,
    webhooks: 16,
  })
  expect(connectionsOf({ roles: allRoles, isLogEmbedded: true })).toEqual({
    all: 44,
    pool: 20,
    reads: 8,
  })
})

it('uses as many database connections as the setting allows, the rest for the shared pools', () => {
  const of = (roles: (typeof allRoles)[number][], max: number) =>
    connectionsOf({ roles, isLogEmbedded: false, max })
  expect(of(['scoring'], 20)).toEqual({ all: 20, pool: 18, reads: 0 })
  expect(of(['api'], 18)).toEqual({ all: 18, pool: 8, reads: 4 })
})

it('throws if the setting allows too few connections for a role', () => {
  const at = (max: number) => () => connectionsOf({ roles: ['collect'], isLogEmbedded: false, max })
  expect(at(14)()).toEqual({ all: 14, pool: 6, reads: 0 })
  expect(at(13)).toThrow(
    'DATABASE_MAX_CONNECTIONS must be at least 14 for the roles collect, got 13.',
  )
})

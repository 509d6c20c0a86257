import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readConfig } from '../../../infra/config.ts'
import { lookupHashes } from '../../../infra/crypto/api-keys.ts'
import { createLogger } from '../../../infra/telemetry.ts'
import { findKeyByLookupHash } from '../../../projections/organizations/queries.ts'
import { findDataExpiration } from '../../../projections/policies/queries.ts'
import { setDataPolicy } from '../../../services/organizations/data-policies.ts'
import { expireOldData } from '../../../services/organizations/retention-scheduler.ts'
import { type Organizations, startOrganizations } from './support.ts'

let world: Organizations
const day = 24 * 60 * 60 * 1000

beforeAll(async () => {
  world = await startOrganizations()
})
afterAll(() => world.stop())

const expire = (env: NodeJS.ProcessEnv = {}) =>
  expireOldData({
    ...world.base,
    ...world.deps,
    config: readConfig(env),
    logger: createLogger('silent'),
  })

test('the detail shows the policy, and keys of the organization follow it at once', async () => {
  const { organizationId, key, path: url } = await world.organization()
  const { revealedKey } = await world.issue({ organizationId, type: 'publishable' })
  const shortens = async () => {
    const found = await findKeyByLookupHash(
      world.base.pool,
      lookupHashes(world.deps.keyring, revealedKey),
    )
    return found?.principal.type === 'publishable' && found.principal.shortensAddresses
  }
  expect(await shortens()).toBe(false)
  const changes = { session_days: 30, shortens_addresses: true, allows_minimal_mode: true }
  await setDataPolicy({ ...world.deps, random: randomBytes }, { organizationId, changes })
  expect((await world.send({ url, key })).body.data.data_policy).toEqual({
    session_days: 30,
    decision_days: null,
    visitor_days: null,
    webhook_days: null,
    shortens_addresses: true,
    allows_minimal_mode: true,
    hidden_facts: null,
    facts_topic: false,
    changed_at: new Date(world.now.ms).toISOString(),
  })
  expect(await shortens()).toBe(true)
})

test('each day more has ended of who has days, by a policy or by the settings, and of nobody else', async () => {
  const own = await world.organization()
  const other = await world.organization()
  const changes = { visitor_days: 10, session_days: 0 }
  await setDataPolicy(
    { ...world.deps, random: randomBytes },
    { organizationId: own.organizationId, changes },
  )
  await expire()
  const today = world.now.ms - (world.now.ms % day)
  const endedOf = ({ organizationId }: { organizationId: string }) =>
    findDataExpiration(world.base.pool, organizationId)
  expect(await endedOf(own)).toMatchObject({
    visitors_before: today - 10 * day,
    sessions_before: null,
  })
  expect(await endedOf(other)).toBeUndefined()
  expect(await expire()).toBe(0)
  world.now.ms += day
  // What the operator keeps ends for those alone who say nothing themselves.
  await expire({ SESSION_RETENTION_DAYS: '5' })
  expect(await endedOf(own)).toMatchObject({
    visitors_before: today - 9 * day,
    sessions_before: null,
  })
  expect(await endedOf(other)).toMatchObject({
    visitors_before: null,
    sessions_before: today - 4 * day,
    decisions_before: today - 4 * day,
  })
})

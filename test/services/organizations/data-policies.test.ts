import { afterAll, expect, test } from 'vitest'
import { readConfig } from '../../../infra/config.ts'
import { lookupHashes } from '../../../infra/crypto/api-keys.ts'
import { findKeyByLookupHash } from '../../../projections/organizations/queries.ts'
import { findDataExpiration } from '../../../projections/policies/queries.ts'
import { setDataPolicy } from '../../../services/organizations/data-policies.ts'
import { defaultDataPolicy } from '../../../services/organizations/decide-data-policy.ts'
import { recordDataExpiry } from '../../../services/organizations/retention-scheduler.ts'
import { startApi } from '../../support/api.ts'

const day = 24 * 60 * 60 * 1000

const api = await startApi({ roles: ['api'] })
afterAll(() => api.stop())

const expire = (env: NodeJS.ProcessEnv = {}) =>
  recordDataExpiry({ ...api.deps, config: readConfig(env) })

test('the organization shows its policy, which applies to its keys at once', async () => {
  const { organizationId, key, path: url } = await api.organization()
  const { revealedKey } = await api.issue({ organizationId, type: 'publishable' })
  const shortens = async () => {
    const found = await findKeyByLookupHash(api.pool, lookupHashes(api.deps.keyring, revealedKey))
    return found?.principal.type === 'publishable' && found.principal.shortensAddresses
  }
  expect(await shortens()).toBe(false)
  const changes = { session_days: 30, shortens_addresses: true, allows_minimal_mode: true }
  await setDataPolicy(api.deps, { organizationId, changes })
  expect((await api.send({ url, key })).body.data.data_policy).toEqual({
    ...defaultDataPolicy,
    ...changes,
    kept_days: { session_days: 30, decision_days: 0, visitor_days: 0, webhook_days: 30 },
    changed_at: new Date(api.now.ms).toISOString(),
  })
  expect(await shortens()).toBe(true)
})

test('each day, data of organizations with a retention period expires, set by policy or by default, and no other data', async () => {
  const withPolicy = await api.organization()
  const other = await api.organization()
  const changes = { visitor_days: 10, session_days: 0 }
  await setDataPolicy(api.deps, { organizationId: withPolicy.organizationId, changes })
  await expire()
  const today = api.now.ms - (api.now.ms % day)
  const endedOf = ({ organizationId }: { organizationId: string }) =>
    findDataExpiration(api.pool, organizationId)
  expect(await endedOf(withPolicy)).toMatchObject({
    visitors_before: today - 10 * day,
    sessions_before: null,
  })
  expect(await endedOf(other)).toBeUndefined()
  expect(await expire()).toBe(0)
  api.now.ms += day
  // The operator's default applies only to organizations without their own setting.
  await expire({ SESSION_RETENTION_DAYS: '5' })
  expect(await endedOf(withPolicy)).toMatchObject({
    visitors_before: today - 9 * day,
    sessions_before: null,
  })
  expect(await endedOf(other)).toMatchObject({
    visitors_before: null,
    sessions_before: today - 4 * day,
    decisions_before: today - 4 * day,
  })
})

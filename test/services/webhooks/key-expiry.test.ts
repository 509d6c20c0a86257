import { randomBytes } from 'node:crypto'
import { afterAll, describe, expect, test } from 'vitest'
import { organizationsProjection } from '../../../projections/organizations/projection.ts'
import { webhooksProjection } from '../../../projections/webhooks/projection.ts'
import { listEvents } from '../../../projections/webhooks/queries.ts'
import {
  createOrganization,
  issueApiKey,
  revokeApiKey,
  rotateApiKey,
  updateApiKey,
} from '../../../services/organizations/commands.ts'
import { createEndpoint } from '../../../services/webhooks/endpoints/commands.ts'
import { raiseKeyExpiries } from '../../../services/webhooks/key-expiry.ts'
import { eventually } from '../../support/eventually.ts'
import { openTestLogs } from '../../support/logs.ts'
import { openProcesses } from '../../support/racing.ts'

const day = 86_400_000
const now = { ms: Date.now() }
const by = 'operator'
const environment = 'live'

describe.each(openTestLogs())('on $name', async (testLog) => {
  const projections = [organizationsProjection, webhooksProjection]
  const world = await openProcesses({ testLog, projections, clock: () => now.ms })
  afterAll(async () => {
    await world.close()
    await testLog.cleanup()
  })
  const deps = world.processOf(0)

  async function subscribedOrganization(event_types = ['key.expiring']) {
    const slug = `k-${randomBytes(6).toString('hex')}`
    const { organizationId } = await createOrganization(deps, { name: 'Keys', slug })
    const endpoint = { environment, name: 'All', url: 'https://a.example/', event_types } as const
    await createEndpoint(deps, { ...endpoint, organizationId })
    return organizationId
  }

  const issue = (organizationId: string, days: number | null) =>
    issueApiKey(deps, {
      organizationId,
      name: `Key of ${days} days`,
      environment,
      by,
      expires_at: days === null ? null : now.ms + days * day,
    })

  /** Runs the notifier in three processes at once, and returns the ids of the keys of all events, newest first. */
  async function notifiedKeys(organizationId: string) {
    await Promise.all(world.processes.map(raiseKeyExpiries))
    const events = await listEvents(world.pool, {
      organizationId,
      environment,
      since: 0,
      limit: 20,
    })
    return events.map(({ subject_id }) => subject_id)
  }

  // The read models lag behind the commands.
  const expectNotified = (organizationId: string, keyIds: string[]) =>
    eventually(async () => expect(await notifiedKeys(organizationId)).toEqual(keyIds))

  test('raises one event a week before a key expires, or at half of a shorter lifetime', async () => {
    const organizationId = await subscribedOrganization()
    const long = await issue(organizationId, 30)
    const short = await issue(organizationId, 4)
    await issue(organizationId, null)
    await expectNotified(organizationId, [])
    now.ms += 2 * day
    await expectNotified(organizationId, [short.keyId])
    now.ms += 21 * day - 1
    await expectNotified(organizationId, [short.keyId])
    now.ms += 1
    await expectNotified(organizationId, [long.keyId, short.keyId])
    await expectNotified(organizationId, [long.keyId, short.keyId])
  })

  test('raises another event for another expiry, and none for revoked keys', async () => {
    const organizationId = await subscribedOrganization()
    const { keyId } = await issue(organizationId, 4)
    const { keyId: revoked } = await issue(organizationId, 4)
    await revokeApiKey(deps, { organizationId, keyId: revoked, by })
    now.ms += 3 * day
    await expectNotified(organizationId, [keyId])
    await updateApiKey(deps, { organizationId, keyId, by, expires_at: now.ms + 2 * day })
    await expectNotified(organizationId, [keyId, keyId])
  })

  test('raises nothing for a rotated key that ends before it expires', async () => {
    const organizationId = await subscribedOrganization()
    const ends = await issue(organizationId, 4)
    const expires = await issue(organizationId, 4)
    now.ms += 1.9 * day
    await rotateApiKey(deps, { organizationId, keyId: ends.keyId, by })
    now.ms += 0.2 * day
    await expectNotified(organizationId, [expires.keyId])
    now.ms += 1.5 * day
    await rotateApiKey(deps, { organizationId, keyId: expires.keyId, by })
    await expectNotified(organizationId, [expires.keyId])
  })

  test('raises nothing without a subscribed endpoint', async () => {
    const organizationId = await subscribedOrganization(['session.result.persisted'])
    await issue(organizationId, 2)
    now.ms += 1.5 * day
    await expectNotified(organizationId, [])
  })
})

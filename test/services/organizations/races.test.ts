import { randomBytes } from 'node:crypto'
import { afterAll, expect, test } from 'vitest'
import { timeOrderedId } from '../../../infra/ids.ts'
import { organizationsProjection } from '../../../projections/organizations/projection.ts'
import { findKey, listKeys } from '../../../projections/organizations/queries.ts'
import {
  createOrganization,
  issueApiKey,
  revokeApiKey,
  rotateApiKey,
} from '../../../services/organizations/commands.ts'
import { rotationGraceMs } from '../../../services/organizations/decide-key.ts'
import { revokeEndedKeys } from '../../../services/organizations/key-end-scheduler.ts'
import { eventually } from '../../support/eventually.ts'
import { openTestLogs } from '../../support/logs.ts'
import { openProcesses, race } from '../../support/racing.ts'

const now = { ms: Date.now() }
const by = 'operator'
const live = { name: 'A', environment: 'live', by } as const

for (const testLog of openTestLogs()) {
  const processOf = (racer: number) => world.processOf(racer)
  const newOrganization = () => {
    const slug = `r-${randomBytes(6).toString('hex')}`
    return createOrganization(processOf(0), { name: 'Racing', slug })
  }
  async function newKey() {
    const { organizationId } = await newOrganization()
    const { keyId } = await issueApiKey(processOf(0), { ...live, organizationId })
    return { organizationId, keyId, by } as const
  }
  const keysOf = async ({ organizationId }: { organizationId: string }) =>
    (await listKeys(world.pool, organizationId, { limit: 200 })).rows
  const stateOf = (key: { organizationId: string; keyId: string }) =>
    findKey(world.pool, key.organizationId, key.keyId)

  const projections = [organizationsProjection]
  const world = await openProcesses({ testLog, projections, clock: () => now.ms })
  afterAll(async () => {
    await world.close()
    await testLog.cleanup()
  })

  test(`${testLog.name}: of 64 concurrent rotations of one key in three processes, one gets a replacement`, async () => {
    const key = await newKey()
    const codes = await race(64, (racer) => rotateApiKey(processOf(racer), key))
    expect(codes.toSorted()).toEqual(['done', ...Array(63).fill('request.conflict')])
    const keys = await keysOf(key)
    expect(keys.map((one) => [one.status, one.replaces_key_id]).toSorted()).toEqual([
      ['active', key.keyId],
      ['rotating', null],
    ])
  })

  test(`${testLog.name}: one rotation repeated concurrently is one rotation`, async () => {
    const key = await newKey()
    const same = randomBytes(32)
    const repeated = (racer: number) => {
      const random = (size: number) => Buffer.alloc(size, same)
      return rotateApiKey({ ...processOf(racer), random }, key)
    }
    expect(await race(8, repeated)).toEqual(Array(8).fill('done'))
    expect(await keysOf(key)).toHaveLength(2)
  })

  test(`${testLog.name}: an organization has at most 100 active keys, however many are requested at once`, async () => {
    const { organizationId } = await newOrganization()
    const issue = (racer: number) => {
      const type = racer % 2 ? 'publishable' : undefined
      const environment = racer % 3 ? 'live' : 'test'
      return issueApiKey(processOf(racer), { ...live, organizationId, environment, type })
    }
    const codes = await race(112, issue)
    expect(codes.filter((code) => code === 'done')).toHaveLength(100)
    expect(codes.filter((code) => code === 'request.conflict')).toHaveLength(12)
    expect(await keysOf({ organizationId })).toHaveLength(100)
  })

  test(`${testLog.name}: a key is revoked or rotated, but never replaced after it was revoked`, async () => {
    const key = await newKey()
    const codes = await race(8, (racer) =>
      racer % 2 ? revokeApiKey(processOf(racer), key) : rotateApiKey(processOf(racer), key),
    )
    const replaced = codes.filter((code, racer) => racer % 2 === 0 && code === 'done').length
    const replacements = (await keysOf(key)).filter((one) => one.replaces_key_id === key.keyId)
    expect(replacements).toHaveLength(replaced)
    expect(replaced).toBeLessThanOrEqual(1)
    expect(await stateOf(key)).toMatchObject({ status: 'revoked' })
  })

  test(`${testLog.name}: schedulers in several processes revoke a key once, after its grace period`, async () => {
    const key = await newKey()
    await rotateApiKey(processOf(0), key)
    const graceEnd = now.ms + rotationGraceMs
    now.ms = graceEnd - 1
    expect(await revokeEndedKeys(processOf(0))).toBe(0)
    now.ms = graceEnd + 7000
    const revoked = await eventually(async () => {
      await Promise.all(world.processes.map(revokeEndedKeys))
      const revoked = await stateOf(key)
      expect(revoked?.status).toBe('revoked')
      return revoked
    })
    expect(revoked).toMatchObject({ revoked_at: graceEnd, grace_expires_at: graceEnd })
    expect(await revokeEndedKeys(processOf(1))).toBe(0)
  })

  test(`${testLog.name}: concurrent scheduler runs of several processes revoke a key once`, async () => {
    const key = await newKey()
    await rotateApiKey(processOf(0), key)
    now.ms += rotationGraceMs
    const revokedCounts = await Promise.all(
      [...world.processes, ...world.processes].map(revokeEndedKeys),
    )
    expect(revokedCounts.reduce((sum, count) => sum + count)).toBe(1)
  })

  test(`${testLog.name}: a key that cannot be revoked now does not block others`, async () => {
    const keys = await Promise.all(
      [0, 1, 2].map(async () => {
        const key = await newKey()
        await rotateApiKey(processOf(0), key)
        now.ms += 1
        return key
      }),
    )
    now.ms += rotationGraceMs
    const { decideAs, ...process } = processOf(0)
    const failing: typeof decideAs = (actor) => (request) =>
      request.key === keys[0]?.organizationId
        ? Promise.reject(new Error('held'))
        : decideAs(actor)(request)
    await expect(revokeEndedKeys({ ...process, decideAs: failing })).rejects.toThrow('held')
    const statuses = () => Promise.all(keys.map(async (key) => (await stateOf(key))?.status))
    expect(await statuses()).toEqual(['rotating', 'revoked', 'revoked'])
    expect(await revokeEndedKeys({ ...process, decideAs })).toBe(1)
    expect(await statuses()).toEqual(['revoked', 'revoked', 'revoked'])
  })

  test(`${testLog.name}: a creation repeated concurrently creates one organization`, async () => {
    const random = (size: number) => Buffer.alloc(size, 7)
    const create = (racer: number) =>
      createOrganization({ ...processOf(racer), random }, { name: 'Same', slug: 'same' })
    expect(await race(8, create)).toEqual(Array(8).fill('done'))
    const { rows } = await world.pool.query(
      "select organization_id from read.organizations where slug = 'same'",
    )
    expect(rows).toEqual([{ organization_id: timeOrderedId('org', now.ms, random) }])
  })
}

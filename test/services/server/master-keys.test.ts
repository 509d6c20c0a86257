import { randomBytes } from 'node:crypto'
import { afterEach, expect, it } from 'vitest'
import { readConfig } from '../../../infra/config.ts'
import { generateApiKey, sealSecretHash } from '../../../infra/crypto/api-keys.ts'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import { resealDataKeys } from '../../../infra/event-store/data-key-backup.ts'
import { refuseOtherMasterKeys } from '../../../infra/event-store/data-key-table.ts'
import { WrongMasterKeys, writeCanary } from '../../../infra/event-store/master-key-canary.ts'
import { asId } from '../../../infra/ids.ts'
import { openCore } from '../../../services/server/dependencies.ts'
import { checkMasterKeys } from '../../../services/server/master-keys.ts'
import { organizationId } from '../../support/organization-rows.ts'
import { createTestDatabase, type TestDatabase } from '../../support/postgres.ts'
import { silent, testCause } from '../../support/projections.ts'

const newKey = () => randomBytes(32).toString('base64')
const databases: TestDatabase[] = []

afterEach(async () => {
  for (const database of databases.splice(0)) await database.drop()
})

async function newDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase()
  databases.push(database)
  return database
}

const open = ({ url }: Pick<TestDatabase, 'url'>, masterKeys: string) =>
  openCore({
    config: readConfig({ DATABASE_URL: url }),
    databaseUrl: url,
    masterKeys,
    logger: silent,
    clock: Date.now,
    random: randomBytes,
  })

type Opened = Awaited<ReturnType<typeof open>>

async function using(database: TestDatabase, masterKeys: string, work = async (_: Opened) => {}) {
  const core = await open(database, masterKeys)
  await work(core).finally(core.close)
}

const canaries = async ({ pool }: TestDatabase) =>
  (await pool.query('select sealed from tidegate.master_key_canary')).rowCount

/** Removes the canary, which installations of earlier releases do not have. */
const withoutCanary = ({ pool }: TestDatabase) =>
  pool.query('delete from tidegate.master_key_canary')

async function storeDataKey({ dataKeys }: Opened): Promise<void> {
  await dataKeys.ensure(['sid_1'])
}

async function storeApiKey({ pool, keyring }: Opened): Promise<void> {
  const keyId = asId('key', `key_${'2'.repeat(26)}`)
  const kind = { type: 'secret', environment: 'live' } as const
  const { key, lookupHash, preview } = generateApiKey({ ...kind, keyring, random: randomBytes })
  const sealed = sealSecretHash({ keyring, key, keyId, random: randomBytes })
  const { rows } = await pool.query<{ schema: string }>(
    `select schema_name as schema from tidegate.projection_builds
     where projection = 'organizations' and status = 'live'`,
  )
  await pool.query(
    `insert into ${rows[0]?.schema}.api_keys (key_id, organization_id, type, environment, name, client_target,
       scopes, lookup_hash, secret_hash_sealed, key_preview, status, created_at)
     values ($1, $2, 'secret', 'live', 'Server', 'browser', '["*"]', $3, $4, $5, 'active', 1)`,
    [keyId, organizationId, lookupHash, sealed, preview],
  )
}

async function recordOrganization({ log, codec }: Opened): Promise<void> {
  const data = { organization_id: organizationId, name: 'Acme', slug: 'acme', created_at: 1 }
  const meta = { eventId: 'evt_1', time: 1, organizationId, environment: null }
  await log.append([
    codec.toRecordWithCause({ type: 'OrganizationCreated', data }, meta, testCause),
  ])
}

it('the first master keys of an empty database are accepted, and others rejected without revealing a key', async () => {
  const [first, other] = [newKey(), newKey()]
  const database = await newDatabase()
  await using(database, first)
  const refusal: unknown = await open(database, other).catch((error: unknown) => error)
  expect(refusal).toBeInstanceOf(WrongMasterKeys)
  expect(String(refusal)).toMatch(/Restore the previous TIDEGATE_MASTER_KEYS/)
  for (const key of [first, other]) expect(String(refusal)).not.toContain(key)
  await using(database, `${other},${first}`)
  await expect(open(database, other)).rejects.toThrow(WrongMasterKeys)
  await using(database, first)
})

it.each([
  ['data keys', storeDataKey],
  ['API keys', storeApiKey],
])('an earlier installation with %s accepts no other master keys', async (_, store) => {
  const [right, wrong] = [newKey(), newKey()]
  const database = await newDatabase()
  await using(database, right, store)
  await withoutCanary(database)
  await expect(open(database, wrong)).rejects.toThrow(WrongMasterKeys)
  expect(await canaries(database)).toBe(0)
  await using(database, right)
  expect(await canaries(database)).toBe(1)
  await expect(open(database, wrong)).rejects.toThrow(WrongMasterKeys)
})

it('of two processes that start concurrently with different keys on an empty database, one starts', async () => {
  for (let round = 0; round < 5; round++) {
    const database = await newDatabase()
    const started = await Promise.allSettled(
      [newKey(), newKey()].map((keys) => open(database, keys)),
    )
    const cores = started.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
    for (const core of cores) await core.close()
    expect(cores).toHaveLength(1)
    const failed = started.find((result) => result.status === 'rejected')
    expect(failed?.reason).toBeInstanceOf(WrongMasterKeys)
  }
})

it('wrong keys are rejected while an earlier installation starts concurrently with the right ones', async () => {
  const [right, wrong] = [newKey(), newKey()]
  const database = await newDatabase()
  await using(database, right, storeDataKey)
  for (let round = 0; round < 5; round++) {
    await withoutCanary(database)
    const [good, bad] = await Promise.allSettled([open(database, right), open(database, wrong)])
    if (good.status === 'fulfilled') await good.value.close()
    expect([good.status, bad.status]).toEqual(['fulfilled', 'rejected'])
  }
})

it('a database that is rebuilt from its log gets no canary before it has a secret', async () => {
  const [right, wrong] = [newKey(), newKey()]
  const database = await newDatabase()
  await using(database, right, recordOrganization)
  await withoutCanary(database)
  await using(database, wrong)
  expect(await canaries(database)).toBe(0)
  await using(database, right, async (core) => {
    await storeApiKey(core)
    const restoring = { ...core, keyring: createKeyring(wrong) }
    await expect(checkMasterKeys(restoring)).rejects.toThrow(WrongMasterKeys)
    await checkMasterKeys(core)
  })
  expect(await canaries(database)).toBe(1)
})

it('a copy of the database accepts only the same master keys', async () => {
  const right = newKey()
  const database = await newDatabase()
  await using(database, right)
  const copy = await newDatabase()
  const { rows } = await database.pool.query('select sealed from tidegate.master_key_canary')
  const insert = 'insert into tidegate.master_key_canary (sealed) values ($1)'
  await copy.pool.query(insert, [rows[0]?.sealed])
  await expect(open(copy, newKey())).rejects.toThrow(WrongMasterKeys)
  await using(copy, right)
})

it('an old key can be removed once everything is sealed with the new one, and not before', async () => {
  const [old, next] = [newKey(), newKey()]
  const database = await newDatabase()
  await using(database, old, storeDataKey)
  await expect(open(database, next)).rejects.toThrow(WrongMasterKeys)
  await using(database, `${next},${old}`, async ({ pool, keyring, random }) => {
    await resealDataKeys(pool, { keyring, random, now: Date.now() })
    await writeCanary(pool, { keyring, random, replaces: true })
  })
  await using(database, next, ({ pool, keyring }) => refuseOtherMasterKeys(pool, keyring))
  await expect(open(database, old)).rejects.toThrow(WrongMasterKeys)
})

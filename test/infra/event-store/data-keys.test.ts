import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import { createCodec } from '../../../infra/event-store/codec.ts'
import {
  backUpDataKeys,
  InvalidBackup,
  resealDataKeys,
  restoreDataKeys,
} from '../../../infra/event-store/data-key-backup.ts'
import {
  eraseDataKeys,
  loadDataKeys,
  refuseOtherMasterKeys,
} from '../../../infra/event-store/data-key-table.ts'
import { createDataKeys, type DataKeys } from '../../../infra/event-store/data-keys.ts'
import { restoreKeyBackup } from '../../../infra/event-store/erasures.ts'
import type { EventLog } from '../../../infra/log/port.ts'
import { openPostgresLog } from '../../../infra/log/postgres/log.ts'
import { createPool } from '../../../infra/postgres/pool.ts'
import { digestKeyId } from '../../../projections/answers/digests.ts'
import { purgeDigestKeys } from '../../../services/scoring/learned.ts'
import { visitorErased } from '../../support/erased.ts'
import { createMemoryLog } from '../../support/memory-log.ts'
import { noSkips } from '../../support/no-skips.ts'
import { createTestDatabase } from '../../support/postgres.ts'
import { silent, testCause } from '../../support/projections.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const setting = randomBytes(32).toString('base64')
const clock = () => 1_800_000_000_000

const database = await createTestDatabase()
const folder = temporaryFolder('keys')
afterAll(() => database.drop())

const open = (masterKeys = setting, some: Partial<Parameters<typeof createDataKeys>[0]> = {}) =>
  createDataKeys({
    pool: database.pool,
    keyring: createKeyring(masterKeys),
    random: randomBytes,
    clock,
    ...some,
  })
const erase = (sessionId: string) => eraseDataKeys(database.pool, [visitorErased([sessionId])])

test('processes that create a key at the same time get the same one', async () => {
  const processes = [open(), open(), open()]
  const names = Array.from({ length: 50 }, (_, n) => `sid_once_${n}`)
  const orders = [names, names.toReversed(), [...names.slice(25), ...names.slice(0, 25)]]
  await Promise.all(processes.flatMap((keys, i) => orders[i]?.map((id) => keys.ensure([id]))))
  for (const id of names) {
    const [first, ...others] = processes.map((keys) => keys.get(id)?.export().toString('hex'))
    expect(first).toMatch(/^[0-9a-f]{64}$/)
    expect(others).toEqual([first, first])
  }
})

test('a missing key is found once it was created', async () => {
  const [reading, writing] = [open(), open()]
  await reading.load(['sid_before_encryption'])
  expect(reading.get('sid_before_encryption')).toBeUndefined()
  await writing.ensure(['sid_before_encryption'])
  await reading.load(['sid_before_encryption'])
  expect(reading.get('sid_before_encryption')?.symmetricKeySize).toBe(32)
})

describe('a new session', () => {
  const stored = async (sessionId: string) =>
    (await loadDataKeys(database.pool, [sessionId])).map((row) => row.session_id)
  const topic = 'tidegate.new'
  const recordOf = (key: string) => ({ topic, key, value: Buffer.from('first'), headers: {} })

  async function openBeside(): Promise<{ keys: DataKeys; log: EventLog }> {
    const { pool, url } = database
    const keys = open(setting, { isLogEmbedded: true })
    const log = await openPostgresLog({ pool, url, logger: silent, extraWrites: keys.takeInserts })
    await log.ensureTopics([{ topic, partitions: 4 }])
    return { keys, log }
  }

  test('has a stored key at once if the log is elsewhere', async () => {
    const keys = open()
    const ids = await Promise.all(Array.from({ length: 100 }, () => keys.newSession()))
    for (let n = 0; n < 200; n++) ids.push(await keys.newSession())
    expect(new Set(ids).size).toBe(300)
    const other = open()
    await other.load(ids)
    for (const id of ids) expect(other.get(id)?.export()).toEqual(keys.get(id)?.export())
    expect(keys.takeInserts(ids.map(recordOf))).toEqual([])
  })

  test('stores its key with its first record on the embedded log', async () => {
    const { keys, log } = await openBeside()
    const ids = await Promise.all(Array.from({ length: 50 }, () => keys.newSession()))
    const [first = ''] = ids
    expect(await stored(first)).toEqual([])
    await Promise.all(ids.map((id) => log.append([recordOf(id), recordOf(id)])))
    await log.append([recordOf(first)])
    const other = open()
    await other.load(ids)
    for (const id of ids) expect(other.get(id)?.export()).toEqual(keys.get(id)?.export())
    await log.close()
  })

  test('stores neither key nor record if one of them fails', async () => {
    const { keys, log } = await openBeside()
    const [taken, beside] = [await keys.newSession(), await keys.newSession()]
    await open().ensure([taken])
    const before = await log.endPositions(topic)
    const failed = await Promise.allSettled([taken, beside].map((id) => log.append([recordOf(id)])))
    expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(await log.endPositions(topic)).toEqual(before)
    expect(await stored(beside)).toEqual([])
    const givenUp = await keys.newSession()
    for (const id of [beside, givenUp]) keys.discard(id)
    expect(keys.get(givenUp)).toBeUndefined()
    expect(keys.takeInserts([recordOf(givenUp)])).toEqual([])
    await log.append([recordOf('sid_after')])
    await log.close()
  })
})

test('an erased session gets no new key, even if it never had one', async () => {
  const keys = open()
  await keys.ensure(['sid_2'])
  for (const id of ['sid_2', 'sid_old']) await erase(id)
  keys.evict(['sid_2'])
  await keys.ensure(['sid_2', 'sid_old'])
  expect([keys.get('sid_2'), keys.get('sid_old')]).toEqual([null, null])
})

test('a stored key opens only with the master key and for its own session', async () => {
  const keys = open()
  await keys.ensure(['sid_3'])
  await database.pool.query(
    `insert into tidegate_keys.session_keys select 'sid_4', made_at, sealed_key
     from tidegate_keys.session_keys where session_id = 'sid_3'`,
  )
  const others = open(randomBytes(32).toString('base64'))
  await others.load(['sid_3'])
  expect(others.get('sid_3')).toBeNull()
  await keys.loadOrMarkErased(['sid_4'])
  expect(keys.get('sid_4')).toBeNull()
})

test('keys are sealed under a daily subkey', async () => {
  const names = ['sid_day_1', 'sid_day_2']
  const day = 24 * 60 * 60 * 1000
  await open().ensure(['sid_day_1'])
  await open(setting, { clock: () => clock() + day }).ensure(['sid_day_2'])
  const rows = await loadDataKeys(database.pool, names)
  const days = rows.map(({ sealed_key }) => sealed_key?.readUInt16BE(4))
  const first = Math.floor(clock() / day)
  expect(days).toEqual([first, first + 1])
  const later = open()
  await later.load(names)
  for (const id of names) expect(later.get(id)?.symmetricKeySize).toBe(32)
  // The subkey of another day can't open it.
  await database.pool.query(
    `update tidegate_keys.session_keys set sealed_key = set_byte(sealed_key, 5, get_byte(sealed_key, 5) # 1)
     where session_id = 'sid_day_1'`,
  )
  const changed = open()
  await changed.load(['sid_day_1'])
  expect(changed.get('sid_day_1')).toBeNull()
  await erase('sid_day_1')
})

test('master keys that open only the oldest or the newest key are refused', async () => {
  const { pool } = database
  const added = randomBytes(32).toString('base64')
  const refuse = (masterKeys: string) => refuseOtherMasterKeys(pool, createKeyring(masterKeys))
  await open().ensure(['sid_a'])
  await expect(refuse(added)).rejects.toThrow('Restore the previous TIDEGATE_MASTER_KEYS')
  await refuse(`${added},${setting}`)
  await open(`${added},${setting}`).ensure(['sid_zz'])
  await expect(refuse(setting)).rejects.toThrow('Restore the previous TIDEGATE_MASTER_KEYS')
  await pool.query("delete from tidegate_keys.session_keys where session_id = 'sid_zz'")
  await refuse(setting)
})

test('a key leaves memory after an hour without use', async () => {
  let now = clock()
  const keys = open(setting, { clock: () => now })
  await keys.ensure(['sid_used'])
  for (let n = 0; n < 3; n++) {
    now += 40 * 60 * 1000
    expect(keys.get('sid_used')?.symmetricKeySize).toBe(32)
  }
  now += 61 * 60 * 1000
  expect(keys.get('sid_used')).toBeUndefined()
  await keys.loadOrMarkErased(['sid_used'])
  expect(keys.get('sid_used')?.symmetricKeySize).toBe(32)
})

test('only the digest keys of past months are purged', async () => {
  const [november, december] = [Date.UTC(2026, 10, 30), Date.UTC(2026, 11, 1)]
  const names = [november, december].map(digestKeyId)
  const keys = open()
  await keys.ensure([...names, 'sid_counted'])
  expect(await purgeDigestKeys(database.pool, december)).toBe(1)
  const later = open()
  await later.load([...names, 'sid_counted'])
  const left = [...names, 'sid_counted'].map((id) => later.get(id)?.symmetricKeySize)
  expect(left).toEqual([undefined, 32, 32])
})

test('creating a key or a session rejects with 503 while the database is down', async () => {
  const pool = createPool({ url: 'postgres://127.0.0.1:1/away' })
  const keys = open(setting, { pool })
  const refused = { code: 'service.unavailable' }
  await expect(keys.ensure(['sid_5'])).rejects.toMatchObject(refused)
  await expect(keys.newSession()).rejects.toMatchObject(refused)
  await pool.end()
})

test('a restore adds missing keys except those of erased sessions, and fails for a truncated backup', async () => {
  const file = path.join(folder, 'backup')
  const keys = open()
  await keys.ensure(['sid_6', 'sid_7'])
  const written = await backUpDataKeys(database.pool, { file, now: 5 })
  const again = backUpDataKeys(database.pool, { file, now: 6 })
  await expect(again).rejects.toMatchObject({ code: 'EEXIST' })
  await erase('sid_6')
  await database.pool.query("delete from tidegate_keys.session_keys where session_id = 'sid_7'")

  const restored = { madeAt: 5, rows: written, added: 1 }
  expect(await restoreDataKeys(database.pool, { file })).toEqual(restored)
  const after = open()
  await after.load(['sid_6', 'sid_7'])
  expect(after.get('sid_6')).toBeNull()
  expect(after.get('sid_7')?.export()).toEqual(keys.get('sid_7')?.export())

  const lines = (await readFile(file, 'utf8')).trimEnd().split('\n')
  for (const part of [lines.slice(0, -1), lines.slice(1), ['{}']]) {
    await writeFile(file, part.join('\n'))
    await expect(restoreDataKeys(database.pool, { file })).rejects.toThrow(InvalidBackup)
  }
})

test('a restore erases keys of erased sessions, ignores skipped records, and adds nothing if it fails', async () => {
  const file = path.join(folder, 'second')
  await open().ensure(['sid_erased', 'sid_lost'])
  await backUpDataKeys(database.pool, { file, now: 5 })
  await database.pool.query(
    "delete from tidegate_keys.session_keys where session_id in ('sid_erased', 'sid_lost')",
  )
  const [log, codec] = [createMemoryLog(), createCodec()]
  const data = visitorErased(['sid_erased'])
  const about = { organizationId: 'org_1', environment: 'live' } as const
  const meta = { eventId: data.event_id, time: 1, ...about }
  const erasure = codec.toRecordWithCause({ type: 'VisitorErased', data }, meta, testCause)
  const foreign = { topic: erasure.topic, key: 'x', value: Buffer.from('not ours'), headers: {} }
  await log.append([foreign, erasure])
  const restore = (skips: { has(): Promise<boolean> }) =>
    restoreKeyBackup({ pool: database.pool, log, codec, skips }, { file })
  const stored = async () => {
    const rows = await loadDataKeys(database.pool, ['sid_erased', 'sid_lost'])
    return Object.fromEntries(rows.map((row) => [row.session_id, row.sealed_key !== null]))
  }
  await expect(restore(noSkips)).rejects.toThrow('offset 0 cannot be read')
  expect(await stored()).toEqual({})
  expect(await restore({ has: async () => true })).toMatchObject({ added: 2, sessions: 1 })
  expect(await stored()).toEqual({ sid_erased: false, sid_lost: true })
})

test('resealed keys need no older master key', async () => {
  const next = randomBytes(32).toString('base64')
  const keys = open()
  await keys.ensure(['sid_8'])
  const keyring = createKeyring(`${next},${setting}`)
  const options = { keyring, random: randomBytes, now: clock() }
  const { closed, resealed } = await resealDataKeys(database.pool, options)
  expect(resealed).toBeGreaterThan(0)
  // The key that an earlier test copied to another session.
  expect(closed).toBe(1)
  const later = open(next)
  await later.load(['sid_8'])
  expect(later.get('sid_8')?.export()).toEqual(keys.get('sid_8')?.export())
  const again = await resealDataKeys(database.pool, options)
  expect(again).toEqual({ resealed: 0, closed: 1 })
})

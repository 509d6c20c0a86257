import { randomBytes } from 'node:crypto'
import { afterAll, expect, test } from 'vitest'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import { type GateSessionId, randomId } from '../../../infra/ids.ts'
import { createVault } from '../../../services/gate/vault.ts'
import { dumpDatabaseFiles, dumpWal, walPosition } from '../../support/dump.ts'
import { createTestDatabase } from '../../support/postgres.ts'
import { createScanner, type Place, type Secret } from '../../support/secret-scan.ts'

const keyring = createKeyring(randomBytes(32).toString('base64'))
const newSession = () => randomId('gate', randomBytes)

const database = await createTestDatabase()
afterAll(() => database.drop())

const options = (given = { keyring }) => ({
  ...given,
  pool: database.pool,
  clock: () => 1_000_000,
  random: randomBytes,
})

test('64 concurrent requests for the key of a signup get the same key', async () => {
  const session = newSession()
  const vaults = [createVault(options()), createVault(options())]
  const keys = await Promise.all(
    Array.from(
      { length: 64 },
      (_, index) => vaults[index % 2]?.ensure(session) ?? Promise.reject(),
    ),
  )
  const sealed = keys[0]?.seal(Buffer.from('x'), { context: session, random: randomBytes })
  const opened = keys.map((key) => sealed && key.open(sealed, { context: session })?.toString())
  expect(new Set(opened)).toEqual(new Set(['x']))
})

test('data sealed with a key is unreadable once the key is deleted', async () => {
  const vault = createVault(options())
  const session = newSession()
  const context = session
  const sealed = (await vault.ensure(session)).seal(Buffer.from('x'), {
    context,
    random: randomBytes,
  })
  expect((await vault.find(session))?.open(sealed, { context })?.toString()).toBe('x')
  await vault.remove([session])
  expect(await vault.find(session)).toBeUndefined()
  // A new request creates another key.
  expect((await vault.ensure(session)).open(sealed, { context })).toBeUndefined()
})

test('a data key is bound to its signup and to our master keys', async () => {
  const vault = createVault(options())
  const [one, two] = [newSession(), newSession()]
  await vault.ensure(one)
  await vault.ensure(two)
  await database.pool.query(
    `update tidegate.gate_vault set data_key_sealed =
       (select data_key_sealed from tidegate.gate_vault where gate_session_id = $1) where gate_session_id = $2`,
    [one, two],
  )
  await expect(vault.find(two)).rejects.toMatchObject({ code: 'service.unavailable' })
  const stranger = createVault(
    options({ keyring: createKeyring(randomBytes(32).toString('base64')) }),
  )
  await expect(stranger.find(one)).rejects.toMatchObject({ code: 'service.unavailable' })
})

/** Returns the sealed key of a signup as it is stored. */
async function keyBytes(session: GateSessionId): Promise<Secret> {
  const { rows } = await database.pool.query<{ sealed: Buffer }>(
    'select data_key_sealed as sealed from tidegate.gate_vault where gate_session_id = $1',
    [session],
  )
  return { name: 'the key', value: rows[0]?.sealed ?? '' }
}

test('the WAL has a key only in sealed form, and the table has no trace of it after deletion and vacuum', async () => {
  const { pool } = database
  await pool.query('truncate tidegate.gate_vault')
  const since = await walPosition(pool)
  const plain = { name: 'the key itself', value: randomBytes(32) }
  const vault = createVault({
    ...options(),
    random: (size) => (size === 32 ? plain.value : randomBytes(size)),
  })
  const sessions = Array.from({ length: 20 }, newSession)
  for (const session of sessions) await vault.ensure(session)
  const secrets = [plain, ...(await Promise.all(sessions.map(keyBytes)))]
  const { scan } = createScanner(secrets)
  const foundIn = (places: Place[]) => new Set(places.flatMap(scan).map(({ secret }) => secret))
  expect(foundIn(await dumpWal(pool, since))).toEqual(new Set(['the key']))
  // As autovacuum does.
  await pool.query('analyze tidegate.gate_vault')
  const { rows } = await pool.query<{ file: string }>(
    `select pg_relation_filepath('tidegate.gate_vault') as file`,
  )
  const holding = (await dumpDatabaseFiles(pool)).filter((place) => scan(place).length > 0)
  expect(holding.map(({ name }) => name)).toEqual([rows[0]?.file])

  await vault.remove(sessions)
  await pool.query('vacuum tidegate.gate_vault')
  expect(foundIn(await dumpDatabaseFiles(pool))).toEqual(new Set())
}, 60_000)

test('autovacuum processes the table as soon as one key is deleted', async () => {
  const { rows } = await database.pool.query<{ reloptions: string[]; relpersistence: string }>(
    `select reloptions, relpersistence from pg_class where oid = 'tidegate.gate_vault'::regclass`,
  )
  expect(rows).toEqual([
    {
      relpersistence: 'p',
      reloptions: ['autovacuum_vacuum_scale_factor=0', 'autovacuum_vacuum_threshold=0'],
    },
  ])
})

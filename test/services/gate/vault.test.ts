import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import { type GateSessionId, randomId } from '../../../infra/ids.ts'
import { transaction } from '../../../infra/postgres/pool.ts'
import { createVault } from '../../../services/gate/vault.ts'
import { dumpDatabaseFiles, dumpWal, walPosition } from '../../support/dump.ts'
import { createTestDatabase, type TestDatabase } from '../../support/postgres.ts'
import { createScanner, type Finding, type Place, type Secret } from '../../support/secret-scan.ts'

const keyring = createKeyring(randomBytes(32).toString('base64'))
const newSession = () => randomId('gate', randomBytes)
let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

const options = (given = { keyring }) => ({
  ...given,
  pool: database.pool,
  clock: () => 1_000_000,
  random: randomBytes,
})

test('64 who ask for the key of a signup at once get the same one', async () => {
  const session = newSession()
  const vaults = [createVault(options()), createVault(options())]
  const keys = await Promise.all(
    Array.from({ length: 64 }, (_, index) => vaults[index % 2]?.make(session) ?? Promise.reject()),
  )
  const sealed = keys[0]?.seal(Buffer.from('x'), { context: session, random: randomBytes })
  const opened = keys.map((key) => sealed && key.open(sealed, { context: session })?.toString())
  expect(new Set(opened)).toEqual(new Set(['x']))
})

test('what is sealed under a key is gone with it', async () => {
  const vault = createVault(options())
  const session = newSession()
  const context = session
  const sealed = (await vault.make(session)).seal(Buffer.from('x'), {
    context,
    random: randomBytes,
  })
  expect((await vault.find(session))?.open(sealed, { context })?.toString()).toBe('x')
  await vault.remove([session])
  expect(await vault.find(session)).toBeUndefined()
  // Asked for anew it is another key.
  expect((await vault.make(session)).open(sealed, { context })).toBeUndefined()
})

test('a key of the vault is bound to its signup and to our master keys', async () => {
  const vault = createVault(options())
  const [one, two] = [newSession(), newSession()]
  await vault.make(one)
  await vault.make(two)
  await database.pool.query(
    `update tidegate.gate_vault set data_key_sealed =
       (select data_key_sealed from tidegate.gate_vault where gate_session_id = $1) where gate_session_id = $2`,
    [one, two],
  )
  expect(await vault.find(two)).toBeUndefined()
  const stranger = createVault(
    options({ keyring: createKeyring(randomBytes(32).toString('base64')) }),
  )
  expect(await stranger.find(one)).toBeUndefined()
})

test('shredding keeps what was not removed, while others make keys and look for them', async () => {
  const vault = createVault(options())
  const kept = newSession()
  await vault.make(kept)
  const others = Array.from({ length: 40 }, newSession)
  const made = others.map(async (session) => {
    await vault.make(session)
    return (await vault.find(kept)) && (await vault.find(session))
  })
  for (let n = 0; n < 10; n++) await vault.shred()
  for (const key of await Promise.all(made)) expect(key).toBeDefined()
  await vault.remove(others)
  await vault.shred()
  const { rows } = await database.pool.query<{ id: string }>(
    'select gate_session_id as id from tidegate.gate_vault where gate_session_id = any($1)',
    [[kept, ...others]],
  )
  expect(rows).toEqual([{ id: kept }])
})

test('shredding waits for nobody who holds the table for long, and keeps nobody waiting', async () => {
  const vault = createVault(options())
  await vault.make(newSession())
  await transaction(database.pool, async (tx) => {
    // As pg_dump does.
    await tx.query('lock table tidegate.gate_vault in access share mode')
    await expect(vault.shred()).rejects.toThrow('lock timeout')
  })
  await vault.shred()
})

/** The key of a signup as it lies in the table, to be looked for. */
async function keyBytes(session: GateSessionId): Promise<Secret> {
  const { rows } = await database.pool.query<{ sealed: Buffer }>(
    'select data_key_sealed as sealed from tidegate.gate_vault where gate_session_id = $1',
    [session],
  )
  return { name: 'the key', value: rows[0]?.sealed ?? '' }
}

const logged: Secret = { name: 'what is logged', value: randomBytes(24) }

const insertLogged = () =>
  database.pool.query('insert into tidegate.gate_pages values ($1, $2, 0)', [
    newSession(),
    logged.value.toString('hex'),
  ])

test('the bytes of a key are in no WAL and no statistics, and once it is shredded in no file', async () => {
  const { pool } = database
  const vault = createVault(options())
  const since = await walPosition(pool)
  await insertLogged()
  const sessions = Array.from({ length: 20 }, newSession)
  for (const session of sessions) await vault.make(session)
  const keys = await Promise.all(sessions.map(keyBytes))
  // Autovacuum does so now and then.
  await pool.query('analyze tidegate.gate_vault')
  const found = findingsIn(await dumpWal(pool, since), keys)
  expect(new Set(found.map(({ secret }) => secret))).toEqual(new Set([logged.name]))
  const { rows } = await pool.query<{ file: string }>(
    `select pg_relation_filepath('tidegate.gate_vault') as file`,
  )
  const before = findingsIn(await dumpDatabaseFiles(pool), keys)
  const places = before.filter(({ secret }) => secret !== logged.name).map(({ place }) => place)
  expect(new Set(places)).toEqual(new Set([rows[0]?.file]))

  const later = await walPosition(pool)
  await transaction(pool, async (tx) => {
    // Which could still see all of it.
    await tx.query(
      'set transaction isolation level repeatable read; select from tidegate.gate_pages',
    )
    await vault.remove(sessions)
    await pool.query('vacuum tidegate.gate_vault')
    await vault.shred()
    const left = [...(await dumpWal(pool, later)), ...(await dumpDatabaseFiles(pool))]
    expect(new Set(findingsIn(left, keys).map(({ secret }) => secret))).toEqual(
      new Set([logged.name]),
    )
  })
}, 60_000)

function findingsIn(places: Place[], keys: Secret[]): Finding[] {
  const { scan } = createScanner([...keys, logged])
  return places.flatMap((place) => scan(place))
}

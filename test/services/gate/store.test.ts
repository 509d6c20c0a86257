import { randomBytes } from 'node:crypto'
import { afterAll, expect, test } from 'vitest'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import { tokenHashes } from '../../../infra/crypto/tokens.ts'
import { randomId } from '../../../infra/ids.ts'
import { closedForMs, createPages, isApproveTokenOf } from '../../../services/gate/store.ts'
import { createTestDatabase } from '../../support/postgres.ts'

const keyring = createKeyring(randomBytes(32).toString('base64'))
const newSession = () => randomId('gate', randomBytes)
let now = 1_000_000

const database = await createTestDatabase()
afterAll(() => database.drop())

const options = () => ({
  keyring,
  pool: database.pool,
  clock: () => now,
  random: randomBytes,
})

test('every approve token of a page is good, for its session', async () => {
  const pages = createPages(options())
  const session = newSession()
  const tokens = [await pages.open(session), await pages.open(session)]
  const isGood = (token: string, of = session) =>
    isApproveTokenOf(database.pool, of, tokenHashes(keyring, token))
  for (const token of tokens) {
    expect(await isGood(token)).toBe(true)
    expect(await isGood(token, newSession())).toBe(false)
  }
})

test("a page that is closed remembers since when, by the database's clock, until it is opened again", async () => {
  const pages = createPages(options())
  const session = newSession()
  expect(await closedForMs(database.pool, session)).toBeNull()
  await pages.open(session)
  await pages.close(session)
  await age(session, 5000)
  // Other processes' clocks are right or wrong: neither matters.
  now += 60_000
  await pages.close(session)
  const ms = await closedForMs(database.pool, session)
  expect(ms).toBeGreaterThanOrEqual(5000)
  expect(ms).toBeLessThan(60_000)
  await pages.open(session)
  expect(await closedForMs(database.pool, session)).toBeNull()
})

/** As if the page had been closed so much earlier. */
const age = (session: string, ms: number) =>
  database.pool.query(
    'update tidegate.gate_pages set closed_at = closed_at - $2 where gate_session_id = $1',
    [session, ms],
  )

test('a page that was opened again before it says that it is closed stays open', async () => {
  const pages = createPages(options())
  const session = newSession()
  const [before, newest] = [await pages.open(session), await pages.open(session)]
  await pages.close(session, before)
  expect(await closedForMs(database.pool, session)).toBeNull()
  await pages.close(session, newest)
  expect(await closedForMs(database.pool, session)).not.toBeNull()
})

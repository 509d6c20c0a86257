import { randomBytes } from 'node:crypto'
import { afterAll, expect, test } from 'vitest'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import { tokenHashes } from '../../../infra/crypto/tokens.ts'
import { randomId } from '../../../infra/ids.ts'
import { createPages, isApproveTokenOf, pageClosedForMs } from '../../../services/gate/store.ts'
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

test('every approve token of a page stays valid, for its session only', async () => {
  const pages = createPages(options())
  const session = newSession()
  const tokens = [await pages.issueApproveToken(session), await pages.issueApproveToken(session)]
  const isGood = (token: string, of = session) =>
    isApproveTokenOf(database.pool, of, tokenHashes(keyring, token))
  for (const token of tokens) {
    expect(await isGood(token)).toBe(true)
    expect(await isGood(token, newSession())).toBe(false)
  }
})

test('a closed page has the time since it was closed, by the clock of the database, until it is opened again', async () => {
  const pages = createPages(options())
  const session = newSession()
  expect(await pageClosedForMs(database.pool, session)).toBeNull()
  await pages.issueApproveToken(session)
  await pages.markClosed(session)
  await age(session, 5000)
  // The clocks of processes do not matter.
  now += 60_000
  await pages.markClosed(session)
  const ms = await pageClosedForMs(database.pool, session)
  expect(ms).toBeGreaterThanOrEqual(5000)
  expect(ms).toBeLessThan(60_000)
  await pages.issueApproveToken(session)
  expect(await pageClosedForMs(database.pool, session)).toBeNull()
})

/** Simulates that the page was closed earlier. */
const age = (session: string, ms: number) =>
  database.pool.query(
    'update tidegate.gate_pages set closed_at = closed_at - $2 where gate_session_id = $1',
    [session, ms],
  )

test('a page that was reopened before its closing was reported stays open', async () => {
  const pages = createPages(options())
  const session = newSession()
  const [before, newest] = [
    await pages.issueApproveToken(session),
    await pages.issueApproveToken(session),
  ]
  await pages.markClosed(session, before)
  expect(await pageClosedForMs(database.pool, session)).toBeNull()
  await pages.markClosed(session, newest)
  expect(await pageClosedForMs(database.pool, session)).not.toBeNull()
})

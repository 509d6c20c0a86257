import pino from 'pino'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type Directories, followDirectories } from '../../../../services/scoring/identity/directories.ts'
import { saveLookup } from '../../../../services/scoring/identity/tables.ts'
import { eventually } from '../../../support/eventually.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/postgres.ts'

let database: TestDatabase
let following: Directories | undefined
let now = 1_800_000_000_000
const logger = pino({ level: 'silent' })

beforeAll(async () => {
  database = await createTestDatabase()
})
afterEach(() => following?.stop())
afterAll(() => database.drop())

const subject = 'https://agent.example/.well-known/http-message-signatures-directory'
const directory = { subject, result: { keys: { key: 'x' } }, fetched_at: now, ends_at: now + 1000 }

test('what scoring fetched is in memory soon after, and until it ends', async () => {
  const options = { pool: database.pool, clock: () => now, logger, intervalMs: 20 }
  const directories = followDirectories(options)
  following = directories
  expect(directories.find(subject)).toBeUndefined()
  await saveLookup(database.pool, { ...directory, subject: '192.0.2.1', result: { host: null } })
  await saveLookup(database.pool, directory)
  await eventually(() => expect(directories.find(subject)).toEqual(directory))
  expect(directories.find('192.0.2.1')).toBeUndefined()
  now += 1000
  expect(directories.find(subject)).toBeUndefined()
})

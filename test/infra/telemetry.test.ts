import { afterAll, beforeEach, expect, test } from 'vitest'
import { EventFailed } from '../../infra/event-store/event-batch.ts'
import { createLogger, errorFields } from '../../infra/telemetry.ts'
import { createTestDatabase } from '../support/postgres.ts'

const secret = '203.0.113.77-typed-by-a-person'
const lines: string[] = []
const logger = createLogger('info', { write: (line: string) => void lines.push(line) })
const database = await createTestDatabase()
const ddl = 'create table guarded (value text primary key, size int check (size > 0))'
await database.pool.query(ddl)
await database.pool.query('insert into guarded values ($1, 1)', [secret])
afterAll(() => database.drop())
beforeEach(() => {
  lines.length = 0
})

const failures: [string, string, unknown[]][] = [
  ['a duplicate', 'insert into guarded values ($1, 1)', [secret]],
  ['a failed check', 'insert into guarded values ($1, -1)', [`${secret}!`]],
  ['not a number', 'select $1::int', [secret]],
  ['not a time', 'select ($1::text)::timestamptz', [secret]],
  ['not JSON', 'select ($1::text)::jsonb', [`{"${secret}`]],
]

test.each(failures)('values of a failed row are never logged: %s', async (_name, text, values) => {
  const failure: unknown = await database.pool.query(text, values).catch((error) => error)
  expect(failure).toBeInstanceOf(Error)
  logger.error({ err: failure }, 'direct')
  logger.error(failure)
  logger.error({ err: new EventFailed(failure) }, 'wrapped')
  expect(lines).toHaveLength(3)
  expect(lines.join('')).not.toContain(secret)
  expect(JSON.parse(lines[0] ?? '').err).toMatchObject({ code: expect.stringMatching(/^2[23]/) })
  expect(JSON.parse(lines[2] ?? '').err.cause.stack).toContain('telemetry.test.ts')
})

test('a logged error has its name, message, code and causes', () => {
  const cause = Object.assign(new Error('inner'), { code: 'ECONNRESET' })
  const error = new TypeError('outer', { cause })
  expect(errorFields(error)).toEqual({
    name: 'TypeError',
    message: 'outer',
    stack: expect.stringMatching(/^ {4}at /),
    cause: { name: 'Error', message: 'inner', code: 'ECONNRESET', stack: expect.any(String) },
  })
  expect(errorFields('a text')).toEqual({ name: 'string', message: '' })
})

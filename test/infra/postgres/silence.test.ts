import { pino } from 'pino'
import { afterAll, expect, test } from 'vitest'
import { toApiError } from '../../../infra/http/error-response.ts'
import { openListener } from '../../../infra/postgres/listen.ts'
import { createPool, transaction } from '../../../infra/postgres/pool.ts'
import { eventually } from '../../support/eventually.ts'
import { createTestDatabase } from '../../support/postgres.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'

const logger = pino({ level: 'silent' })
const database = await createTestDatabase()
const proxy = await startTcpProxy(database.url)
afterAll(async () => {
  await proxy.close()
  await database.drop()
})

const failureOf = (work: Promise<unknown>) => work.then(() => undefined, toApiError)

test('a database that has gone silent gives 503, in a query and in a transaction, and then a new connection', async () => {
  const pool = createPool({ url: proxy.url, max: 2, queryTimeoutMs: 200 })
  await pool.query('select 1')
  proxy.freeze()
  expect(await failureOf(pool.query('select 1'))).toMatchObject({ code: 'service.unavailable' })
  const work = transaction(pool, async (tx) => {
    proxy.freeze()
    await tx.query('select 2')
  })
  expect(await failureOf(work)).toMatchObject({ code: 'service.unavailable' })
  expect((await pool.query('select 3 as n')).rows).toEqual([{ n: 3 }])
  await pool.end()
})

test('a listener whose line has gone silent connects again and hears what comes then', async () => {
  const heard: string[] = []
  let reconnects = 0
  const listener = await openListener({
    url: proxy.url,
    channels: ['news'],
    onNotification: (_channel, payload) => heard.push(payload),
    onReconnect: () => {
      reconnects += 1
    },
    heartbeatMs: 200,
    logger,
  })
  proxy.freeze()
  await eventually(() => expect(reconnects).toBe(1))
  await database.pool.query(`notify news, 'again'`)
  await eventually(() => expect(heard).toEqual(['again']))
  await listener.close()
})

test('a statement that takes too long ends at the server too, and gives 503', async () => {
  const pool = createPool({ url: database.url, max: 1, statementTimeoutMs: 100 })
  const message = expect.stringContaining('shorter time')
  const failure = await failureOf(pool.query('select pg_sleep(20)'))
  expect(failure).toMatchObject({ code: 'service.unavailable', message })
  const running = `select from pg_stat_activity where query like '%pg_sleep(20)%' and state = 'active' and pid <> pg_backend_pid()`
  // The client hears of the error a moment before the server says that it is idle.
  await eventually(async () => expect((await database.pool.query(running)).rowCount).toBe(0))
  await pool.end()
})

test('a transaction that does nothing is ended by the server, so that its locks are free', async () => {
  const pool = createPool({ url: database.url, idleInTransactionMs: 100 })
  const idle = transaction(pool, async (tx) => {
    await tx.query('select pg_advisory_xact_lock(7)')
    await database.pool.query('select pg_advisory_lock(7), pg_advisory_unlock(7)')
  })
  expect(await failureOf(idle)).toMatchObject({ code: 'service.unavailable' })
  await pool.end()
})

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

test('an unresponsive database causes 503 in queries and transactions, then connections are replaced', async () => {
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

test('a listener with an unresponsive connection reconnects and receives later notifications', async () => {
  const received: string[] = []
  let reconnects = 0
  const listener = await openListener({
    url: proxy.url,
    channels: ['news'],
    onNotification: (_channel, payload) => received.push(payload),
    onReconnect: () => {
      reconnects += 1
    },
    heartbeatMs: 200,
    logger,
  })
  proxy.freeze()
  await eventually(() => expect(reconnects).toBe(1))
  await database.pool.query(`notify news, 'again'`)
  await eventually(() => expect(received).toEqual(['again']))
  await listener.close()
})

test('a statement timeout cancels the statement on the server and causes 503', async () => {
  const pool = createPool({ url: database.url, max: 1, statementTimeoutMs: 100 })
  const message = expect.stringContaining('shorter time')
  const failure = await failureOf(pool.query('select pg_sleep(20)'))
  expect(failure).toMatchObject({ code: 'service.unavailable', message })
  const running = `select from pg_stat_activity where query like '%pg_sleep(20)%' and state = 'active' and pid <> pg_backend_pid()`
  // The client gets the error a moment before the server reports that it is idle.
  await eventually(async () => expect((await database.pool.query(running)).rowCount).toBe(0))
  await pool.end()
})

test('the server aborts an idle transaction and releases its locks', async () => {
  const pool = createPool({ url: database.url, idleInTransactionMs: 100 })
  const idle = transaction(pool, async (tx) => {
    await tx.query('select pg_advisory_xact_lock(7)')
    await database.pool.query('select pg_advisory_lock(7), pg_advisory_unlock(7)')
  })
  expect(await failureOf(idle)).toMatchObject({ code: 'service.unavailable' })
  await pool.end()
})

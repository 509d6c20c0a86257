import { pino } from 'pino'
import { afterAll, expect, test } from 'vitest'
import { openListener } from '../../../infra/postgres/listen.ts'
import { eventually } from '../../support/eventually.ts'
import { createTestDatabase } from '../../support/postgres.ts'

const logger = pino({ level: 'silent' })
const database = await createTestDatabase()
afterAll(() => database.drop())

function createListener() {
  const received: string[] = []
  let reconnects = 0
  const open = () =>
    openListener({
      url: database.url,
      channels: ['news', 'Other'],
      onNotification: (channel, payload) => received.push(`${channel}: ${payload}`),
      onReconnect: () => {
        reconnects += 1
      },
      logger,
    })
  return { received, open, reconnects: () => reconnects }
}

test('receives notifications on its channels', async () => {
  const { received, open } = createListener()
  const listener = await open()
  await database.pool.query(`notify news, 'a'; notify "Other"; notify elsewhere, 'b'`)
  await eventually(() => expect(received).toEqual(['news: a', 'Other: ']))
  await listener.close()
})

test('reconnects after its connection was lost, and calls onReconnect', async () => {
  const { received, open, reconnects } = createListener()
  const listener = await open()
  await database.pool.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'tidegate listener' and datname = current_database()",
  )
  await eventually(() => expect(reconnects()).toBe(1))
  await database.pool.query("notify news, 'again'")
  await eventually(() => expect(received).toEqual(['news: again']))
  await listener.close()
})

test('rejects if the first attempt to connect fails', async () => {
  const url = 'postgres://nobody:x@127.0.0.1:1/none'
  await expect(
    openListener({ url, channels: [], onNotification: () => {}, logger }),
  ).rejects.toThrow()
})

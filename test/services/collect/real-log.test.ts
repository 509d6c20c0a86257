import { afterAll, expect, test } from 'vitest'
import type { LogRecord, NewRecord } from '../../../infra/log/port.ts'
import { eachBatch } from '../../support/each-batch.ts'
import { openTestLogs } from '../../support/logs.ts'
import { clientOf, codec, quiet, startCollectApp } from './collect-app.ts'

const topic = 'tidegate.collect.v1'
const logs = openTestLogs()
afterAll(async () => {
  for (const log of logs) await log.cleanup()
})

/** Everything in the topic, by a consumer of its own; ends when `count` records came. */
async function readAll(
  log: Awaited<ReturnType<(typeof logs)[number]['open']>>,
  count: number,
): Promise<LogRecord[]> {
  const records: LogRecord[] = []
  const all = Promise.withResolvers<void>()
  const consumer = await log.consume({
    group: 'collect-test',
    topics: [topic],
    handle: eachBatch((batch) => {
      records.push(...batch.records)
      if (records.length >= count) all.resolve()
    }),
  })
  await all.promise
  await consumer.stop()
  return records
}

test.each(logs)(
  '$name: what was acknowledged is in the log, in order, once for each session',
  async ({ open }) => {
    const log = await open()
    await log.ensureTopics([{ topic, partitions: 3 }])
    const append = (records: NewRecord[]) => log.append(records)
    const app = await startCollectApp({ log: { append } })
    const key = app.publishable()
    const ids = await Promise.all(
      Array.from({ length: 5 }, async () => {
        const client = clientOf(app, key)
        const { sessionId } = await client.open()
        for (let batch = 0; batch < 3; batch++) await client.sendBatch(quiet)
        await client.requestResult(quiet)
        return sessionId
      }),
    )
    const records = await readAll(log, 5 * 6)
    const types = (id: string) =>
      records.filter((record) => record.key === id).map((record) => codec.fromRecord(record).type)
    for (const id of ids) {
      expect(types(id)).toEqual([
        'SessionOpened',
        'DocumentOpened',
        'BatchReceived',
        'BatchReceived',
        'BatchReceived',
        'ResultRequested',
      ])
    }
    await app.close()
  },
)

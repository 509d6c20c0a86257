import { expect } from 'vitest'
import { type EventLog, LogUnavailable } from '../../../infra/log/port.ts'
import { eachBatch } from '../../support/each-batch.ts'

export const topic = 'outages'
export const record = (value: string) => ({
  topic,
  key: value,
  value: Buffer.from(value),
  headers: {},
})

export async function expectDown(log: EventLog): Promise<void> {
  const results = await Promise.allSettled([
    log.append([record('lost?')]),
    log.check(),
    log.endPositions(topic),
  ])
  for (const result of results) {
    expect(result).toMatchObject({ status: 'rejected', reason: expect.any(LogUnavailable) })
  }
}

/** Consumes until `work` is done, which gets the values and the consumer's errors. */
export async function whileConsuming(
  log: EventLog,
  work: (values: string[], errors: unknown[]) => Promise<void>,
): Promise<void> {
  const values: string[] = []
  const errors: unknown[] = []
  const consumer = await log.consume({
    group: 'readers',
    topics: [topic],
    handle: eachBatch(({ records }) => {
      values.push(...records.map((r) => r.value.toString()))
    }),
    onError: (error) => errors.push(error),
  })
  await work(values, errors)
  await consumer.stop()
}

import { afterAll, describe, expect, test } from 'vitest'
import { postgresTestLog } from '../../support/logs.ts'

const topic = 'lingering'

describe('a lingering record', () => {
  const testLog = postgresTestLog()
  afterAll(testLog.cleanup)

  /** Appends records of these types one by one. Returns the types that each call of the handler got. */
  async function calls(ms: number, types: string[], failing?: string): Promise<string[][]> {
    const log = await testLog.open()
    await log.ensureTopics([{ topic, partitions: 1 }])
    const of = (type: string) => ({
      topic,
      key: 'k',
      value: Buffer.from('v'),
      headers: { event_type: type },
    })
    const ends = await log.endPositions(topic)
    const got: string[][] = []
    const consumer = await log.consume({
      group: `lingering ${types.length}`,
      topics: [topic],
      startOffset: async () => ends[0]?.offset,
      linger: { ms, urgent: new Set(['urgent']) },
      handle: async (batches) => {
        const call = batches.flatMap((batch) =>
          batch.records.map(({ headers }) => headers.event_type ?? ''),
        )
        got.push(call)
        if (got.length === 2 && call.at(-1) === failing) throw new Error('try again')
        return undefined
      },
    })
    // From here on the consumer gets appended records from memory.
    await log.append([of('urgent')])
    await expect.poll(() => got).toEqual([['urgent']])
    for (const type of types) await log.append([of(type)])
    const expected = failing === undefined ? types.length : 2 * types.length
    await expect.poll(() => got.flat().length).toBe(expected + 1)
    await consumer.stop()
    return got.slice(1)
  }

  test('is delivered together with the next urgent one', async () => {
    const types = ['first', 'second', 'urgent']
    expect(await calls(20_000, types)).toEqual([types])
  })

  test('is delivered after the delay if no urgent one follows', async () => {
    expect(await calls(50, ['first'])).toEqual([['first']])
  })

  test('is delivered again, in order, if the handler fails', async () => {
    const types = ['first', 'urgent']
    expect(await calls(20_000, types, 'urgent')).toEqual([types, types])
  })
})

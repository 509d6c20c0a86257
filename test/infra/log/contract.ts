import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type {
  Batch,
  ConsumeOptions,
  EventLog,
  LogConsumer,
  LogRecord,
  NewRecord,
} from '../../../infra/log/port.ts'
import { readRecords } from '../../../infra/log/read-topic.ts'
import { eachBatch } from '../../support/each-batch.ts'
import { eventually } from '../../support/eventually.ts'
import type { TestLog } from '../../support/logs.ts'

const partitions = 4
const unique = (name: string) => `${name}-${randomBytes(4).toString('hex')}`

const record = (topic: string, key: string, value: string): NewRecord => ({
  topic,
  key,
  value: Buffer.from(value),
  headers: { event_type: 'Tested', note: `ä"\\ ${value}` },
})

/** What a consumer got, in the order it got it. */
function collector() {
  const records: LogRecord[] = []
  const handle = async (batches: Batch[]) => {
    records.push(...batches.flatMap((batch) => batch.records))
    return undefined
  }
  return {
    records,
    handle,
    values: () => records.map((r) => r.value.toString()),
    of: (key: string) => records.filter((r) => r.key === key).map((r) => r.value.toString()),
  }
}

/** Contract that every log adapter passes. */
export function describeLog(title: string, testLog: TestLog): void {
  describe(title, { timeout: 60_000 }, () => {
    let log: EventLog
    beforeAll(async () => {
      log = await testLog.open()
    })
    afterAll(() => testLog.cleanup())

    async function newTopic(count = partitions): Promise<string> {
      const topic = unique('topic')
      await log.ensureTopics([{ topic, partitions: count }])
      return topic
    }

    /** Consumes for the duration of `work`. */
    async function consuming(
      options: ConsumeOptions,
      work: (consumer: LogConsumer) => Promise<void>,
      on = log,
    ) {
      const consumer = await on.consume(options)
      try {
        await work(consumer)
      } finally {
        await consumer.stop()
      }
    }

    /** Consumes until exactly these values have come, in this order. */
    async function expectRead(
      expected: string[],
      options: Pick<ConsumeOptions, 'topics'> & Partial<ConsumeOptions>,
      on = log,
    ): Promise<LogRecord[]> {
      const got = collector()
      await consuming(
        { group: unique('group'), ...got, ...options },
        () => eventually(() => expect(got.values()).toEqual(expected)),
        on,
      )
      return got.records
    }

    const appendAll = (topic: string, key: string, values: string[]) =>
      log.append(values.map((value) => record(topic, key, value)))

    test('takes a record without a value where topics can be compacted', async () => {
      const topic = await newTopic()
      const appended = log.append([{ topic, key: 'a', value: null, headers: {} }])
      if (testLog.name === 'kafka') expect(await appended).toHaveLength(1)
      else await expect(appended).rejects.toThrow('no compacted topics')
    })

    test('gives back what was appended, with its position, and counts the offsets and ends up', async () => {
      const topic = await newTopic()
      const before = Date.now()
      const positions = await appendAll(topic, 'a', ['1', '2', '3'])
      const partition = await log.partitionOf(topic, 'a')
      expect(positions).toEqual([0, 1, 2].map((offset) => ({ topic, partition, offset })))
      const [first] = await expectRead(['1', '2', '3'], { topics: [topic] })
      const timestamp = expect.any(Number)
      expect(first).toEqual({ ...record(topic, 'a', '1'), partition, offset: 0, timestamp })
      expect(Math.abs((first?.timestamp ?? 0) - before)).toBeLessThan(60_000)
      const ends = [0, 1, 2, 3].map((p) => ({ partition: p, offset: p === partition ? 3 : 0 }))
      expect(await log.endPositions(topic)).toMatchObject(ends)
    })

    test('appends to several topics and keys at once and answers in the order asked', async () => {
      const [one, two] = [await newTopic(), await newTopic()]
      const keys = ['a', 'b', 'c', 'd', 'e', 'f']
      const records = keys.flatMap((key) => [
        record(one, key, `1${key}`),
        record(two, key, `2${key}`),
      ])
      const positions = await log.append(records)
      expect(positions.map((p) => p.topic)).toEqual(records.map((r) => r.topic))
      const partitionsOf = records.map(({ topic, key }) => log.partitionOf(topic, key))
      expect(positions.map((p) => p.partition)).toEqual(await Promise.all(partitionsOf))
    })

    test('since a time, a partition begins with its first record that is as new, or where the next will be', async () => {
      const topic = await newTopic()
      const [first] = await appendAll(topic, 'a', ['1', '2', '3'])
      const stored = Date.now()
      await vi.waitUntil(() => Date.now() > stored, { interval: 1 })
      const time = Date.now()
      const [next] = await appendAll(topic, 'a', ['4', '5'])
      const since = async (at: number) =>
        (await log.positionsSince(topic, at)).find(({ partition }) => partition === next?.partition)
      expect(await log.positionsSince(topic, 0)).toEqual(
        [0, 1, 2, 3].map((partition) => ({ topic, partition, offset: 0 })),
      )
      expect(await since(0)).toEqual(first)
      expect(await since(time)).toEqual(next)
      expect(await since(Date.now() + 60_000)).toEqual({ ...next, offset: 5 })
    })

    test('a topic keeps its partitions when it is asked for again', async () => {
      const topic = await newTopic()
      await log.ensureTopics([{ topic, partitions: 9 }])
      expect(await log.endPositions(topic)).toHaveLength(partitions)
    })

    test('10,000 concurrent appends are there once each, in order of their key', async () => {
      const topic = await newTopic()
      const keys = Array.from({ length: 50 }, (_, i) => `key-${i}`)
      const appends = Array.from({ length: 10_000 }, (_, i) =>
        log.append([record(topic, keys[i % keys.length] ?? '', String(i))]),
      )
      const positions = (await Promise.all(appends)).flat()
      expect(new Set(positions.map((p) => `${p.partition} ${p.offset}`)).size).toBe(10_000)
      const got = collector()
      await consuming({ group: unique('group'), topics: [topic], ...got }, () =>
        eventually(() => expect(got.records.length).toBeGreaterThanOrEqual(10_000), {
          timeoutMs: 30_000,
        }),
      )
      for (const [i, key] of keys.entries()) {
        expect(got.of(key)).toEqual(Array.from({ length: 200 }, (_, n) => String(n * 50 + i)))
      }
    })

    test('a large append arrives whole', async () => {
      const topic = await newTopic()
      const value = randomBytes(900_000)
      const records = ['a', 'a', 'a', 'a', 'a'].map((key) => ({ topic, key, value, headers: {} }))
      const positions = await log.append(records)
      expect(positions.map((p) => p.offset)).toEqual([0, 1, 2, 3, 4])
      const got = collector()
      await consuming({ group: unique('group'), topics: [topic], ...got }, () =>
        eventually(() => expect(got.records).toHaveLength(5)),
      )
      expect(got.records.every((r) => r.value.equals(value))).toBe(true)
    })

    test('what was appended is there after closing and opening again', async () => {
      const topic = await newTopic()
      const other = await testLog.open()
      await other.append([record(topic, 'a', 'kept')])
      await other.close()
      const reopened = await testLog.open()
      await expectRead(['kept'], { topics: [topic] }, reopened)
      await reopened.close()
    })

    test('a group goes on where it stopped, another group starts at the beginning', async () => {
      const topic = await newTopic()
      const group = unique('group')
      await appendAll(topic, 'a', ['1', '2'])
      await expectRead(['1', '2'], { group, topics: [topic] })
      await appendAll(topic, 'a', ['3'])
      await expectRead(['3'], { group, topics: [topic] })
      await expectRead(['1', '2', '3'], { topics: [topic] })
    })

    test('a batch whose handler throws is delivered again and nothing after it first', async () => {
      const topic = await newTopic(1)
      await appendAll(topic, 'a', ['1', '2', '3', '4'])
      const delivered: string[][] = []
      const errors: unknown[] = []
      const options: ConsumeOptions = {
        group: unique('group'),
        topics: [topic],
        maxRecords: 2,
        onError: (error, position) => errors.push([String(error), position?.offset]),
        handle: eachBatch(({ records }) => {
          delivered.push(records.map((r) => r.value.toString()))
          if (delivered.length <= 2) throw new Error('no')
        }),
      }
      await consuming(options, () => eventually(() => expect(delivered.flat()).toContain('4')))
      expect(delivered).toEqual([
        ['1', '2'],
        ['1', '2'],
        ['1', '2'],
        ['3', '4'],
      ])
      expect(errors).toEqual([
        ['Error: no', 0],
        ['Error: no', 0],
      ])
    })

    test('a partition that fails does not hold up the others', async () => {
      const topic = await newTopic()
      const [bad, good] = await twoKeysApart(log, topic)
      await appendAll(topic, bad, ['bad'])
      const got = collector()
      const options: ConsumeOptions = {
        group: unique('group'),
        topics: [topic],
        handle: eachBatch(async (batch) => {
          const poison = batch.records.find((r) => r.key === bad)
          if (poison) return { ...poison, failed: true }
          return void (await got.handle([batch]))
        }),
      }
      await consuming(options, async () => {
        for (const value of ['1', '2', '3']) {
          await appendAll(topic, good, [value])
          await eventually(() => expect(got.values()).toContain(value))
        }
      })
      expect(got.values()).toEqual(['1', '2', '3'])
    })

    test('what a consumer had not finished when it stopped comes again', async () => {
      const topic = await newTopic()
      const group = unique('group')
      await appendAll(topic, 'a', ['1'])
      const handle = vi.fn().mockRejectedValue(new Error('crash'))
      await consuming({ group, topics: [topic], handle }, () =>
        eventually(() => expect(handle).toHaveBeenCalled()),
      )
      await expectRead(['1'], { group, topics: [topic] })
    })

    test('the start offset decides where to read, before the first batch and also when all was read', async () => {
      const topic = await newTopic()
      const group = unique('group')
      await appendAll(topic, 'a', ['0', '1', '2', '3'])
      const from = (offset?: number) => ({
        group,
        topics: [topic],
        startOffset: async () => offset,
      })
      await expectRead(['2', '3'], from(2))
      await expectRead(['1', '2', '3'], from(1))
      await appendAll(topic, 'a', ['4'])
      await expectRead(['4'], from(undefined))
    })

    test('a start offset that cannot be found is asked for again', async () => {
      const topic = await newTopic()
      await appendAll(topic, 'a', ['0', '1'])
      let asked = 0
      await expectRead(['1'], {
        topics: [topic],
        async startOffset() {
          asked += 1
          if (asked <= partitions) throw new Error('database is away')
          return 1
        },
      })
    })

    test('a handler that returns an offset makes the consumer read from there', async () => {
      const topic = await newTopic()
      await appendAll(topic, 'a', ['0', '1', '2', '3', '4', '5'])
      const delivered: string[] = []
      const options: ConsumeOptions = {
        group: unique('group'),
        topics: [topic],
        maxRecords: 1,
        handle: eachBatch(({ topic, partition, records }) => {
          delivered.push(...records.map((r) => r.value.toString()))
          return delivered.length === 1 ? { topic, partition, offset: 4 } : undefined
        }),
      }
      await consuming(options, () => eventually(() => expect(delivered).toContain('5')))
      expect(delivered).toEqual(['0', '4', '5'])
    })

    test('members of a group never handle a partition at once; a leaver leaves all to the others', async () => {
      const topic = await newTopic()
      const group = unique('group')
      const keys = Array.from({ length: 40 }, (_, i) => `key-${i}`)
      const members = [collector(), collector()] as const
      const overlaps = trackOverlaps()
      const options = (member: (typeof members)[number]): ConsumeOptions => ({
        group,
        topics: [topic],
        handle: overlaps.around(member.handle),
      })
      const received = (value: string) =>
        new Set(
          members.flatMap(({ records }) =>
            records.filter((r) => r.value.equals(Buffer.from(value))).map((r) => r.key),
          ),
        )
      const other = await testLog.open()
      const leaver = await other.consume(options(members[0]))
      await consuming(options(members[1]), async () => {
        for (const value of ['first', 'second', 'third']) {
          await log.append(keys.map((key) => record(topic, key, value)))
          await eventually(() => expect(received(value).size).toBe(40), { timeoutMs: 20_000 })
        }
        // Kafka shares the partitions out; of the embedded log's members one works and the others stand by.
        if (testLog.name === 'postgres')
          expect(members.every(({ records }) => records.length > 0)).toBe(false)
        await leaver.stop()
        await log.append(keys.map((key) => record(topic, key, 'alone')))
        const alone = () => members[1].values().filter((value) => value === 'alone').length
        await eventually(() => expect(alone()).toBeGreaterThanOrEqual(40), { timeoutMs: 20_000 })
      })
      await other.close()
      expect(overlaps.count()).toBe(0)
    })

    test('what came to all partitions while the handler ran is one call', async () => {
      const topic = await newTopic()
      const keys = Array.from({ length: 20 }, (_, i) => `key-${i}`)
      const calls: number[][] = []
      const started = Promise.withResolvers<void>()
      const release = Promise.withResolvers<void>()
      const options: ConsumeOptions = {
        group: unique('group'),
        topics: [topic],
        async handle(batches) {
          calls.push(batches.map(({ records }) => records.length))
          started.resolve()
          await release.promise
          return undefined
        },
      }
      await consuming(options, async () => {
        await log.append([record(topic, 'key-0', 'first')])
        await started.promise
        await log.append(keys.map((key) => record(topic, key, 'while it ran')))
        release.resolve()
        await eventually(() => expect(calls.flat().reduce((sum, count) => sum + count, 0)).toBe(21))
      })
      expect(calls[0]).toEqual([1])
      expect(calls[1]).toHaveLength(partitions)
    })

    test('stop waits for the running handler', async () => {
      const topic = await newTopic()
      await appendAll(topic, 'a', ['1'])
      const started = Promise.withResolvers<void>()
      const release = Promise.withResolvers<void>()
      let finished = false
      const consumer = await log.consume({
        group: unique('group'),
        topics: [topic],
        async handle() {
          started.resolve()
          await release.promise
          finished = true
          return undefined
        },
      })
      await started.promise
      const stopped = consumer.stop()
      release.resolve()
      await stopped
      expect(finished).toBe(true)
    })

    test('says where a group goes on, also when nobody works for it, if it keeps offsets', async () => {
      const topic = await newTopic()
      const group = unique('group')
      const [position] = await appendAll(topic, 'a', ['1'])
      await expectRead(['1'], { group, topics: [topic], commitsOffsets: false })
      expect(await log.committed(group, [topic])).toEqual([])
      await expectRead(['1'], { group, topics: [topic] })
      const next = { topic, partition: position?.partition, offset: 1 }
      expect(await log.committed(group, [topic])).toContainEqual(next)
    })

    test('single records are read, also of a topic with empty partitions and much behind them', async () => {
      const topic = await newTopic()
      const all = Array.from({ length: 3000 }, (_, n) => record(topic, 'a', `${n}`))
      const [first] = await log.append(all)
      const found = await readRecords(log, topic, await log.firstPositions(topic))
      expect(found).toMatchObject([{ ...first, key: 'a', value: Buffer.from('0') }])
      expect(await readRecords(log, topic, await log.endPositions(topic))).toEqual([])
    })

    test('check resolves, and an unknown topic is an error', async () => {
      await expect(log.check()).resolves.toBeUndefined()
      await expect(log.append([record(unique('unknown'), 'a', '1')])).rejects.toThrow(Error)
    })
  })
}

/** Two keys that are in different partitions. */
export async function twoKeysApart(log: EventLog, topic: string): Promise<[string, string]> {
  const first = await log.partitionOf(topic, 'key-0')
  for (let i = 1; ; i++) {
    if ((await log.partitionOf(topic, `key-${i}`)) !== first) return ['key-0', `key-${i}`]
  }
}

/** Counts how often a partition was handled by two members at the same time. */
function trackOverlaps() {
  const busy = new Set<number>()
  let overlaps = 0
  return {
    count: () => overlaps,
    around:
      (handle: ConsumeOptions['handle']): ConsumeOptions['handle'] =>
      async (batches) => {
        const partitions = batches.map(({ partition }) => partition)
        if (partitions.some((partition) => busy.has(partition))) overlaps += 1
        for (const partition of partitions) busy.add(partition)
        await new Promise((resolve) => setTimeout(resolve, 2))
        try {
          return await handle(batches)
        } finally {
          for (const partition of partitions) busy.delete(partition)
        }
      },
  }
}

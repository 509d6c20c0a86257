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

/** Collects the records that a consumer gets, in order. */
function createCollector() {
  const records: LogRecord[] = []
  const handle = async (batches: Batch[]) => {
    records.push(...batches.flatMap((batch) => batch.records))
    return undefined
  }
  return {
    records,
    handle,
    values: () => records.map((r) => r.value.toString()),
    valuesOf: (key: string) => records.filter((r) => r.key === key).map((r) => r.value.toString()),
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

    /** Consumes until it has received exactly these values, in this order. */
    async function expectRead(
      expected: string[],
      options: Pick<ConsumeOptions, 'topics'> & Partial<ConsumeOptions>,
      on = log,
    ): Promise<LogRecord[]> {
      const got = createCollector()
      await consuming(
        { group: unique('group'), ...got, ...options },
        () => eventually(() => expect(got.values()).toEqual(expected)),
        on,
      )
      return got.records
    }

    const appendAll = (topic: string, key: string, values: string[]) =>
      log.append(values.map((value) => record(topic, key, value)))

    test('appends a tombstone if topics can be compacted', async () => {
      const topic = await newTopic()
      const appended = log.append([{ topic, key: 'a', value: null, headers: {} }])
      if (testLog.name === 'kafka') expect(await appended).toHaveLength(1)
      else await expect(appended).rejects.toThrow('no compacted topics')
    })

    test('returns positions, delivers the records, and advances the end positions', async () => {
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

    test('appends to several topics and keys, and returns positions in the order of the records', async () => {
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

    test('positionsSince returns the first record at or after a time, or the end', async () => {
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

    test('ensureTopics keeps the partition count of an existing topic', async () => {
      const topic = await newTopic()
      await log.ensureTopics([{ topic, partitions: 9 }])
      expect(await log.endPositions(topic)).toHaveLength(partitions)
    })

    test('10,000 concurrent appends are stored once each, in order per key', async () => {
      const topic = await newTopic()
      const keys = Array.from({ length: 50 }, (_, i) => `key-${i}`)
      const appends = Array.from({ length: 10_000 }, (_, i) =>
        log.append([record(topic, keys[i % keys.length] ?? '', String(i))]),
      )
      const positions = (await Promise.all(appends)).flat()
      expect(new Set(positions.map((p) => `${p.partition} ${p.offset}`)).size).toBe(10_000)
      const got = createCollector()
      await consuming({ group: unique('group'), topics: [topic], ...got }, () =>
        eventually(() => expect(got.records.length).toBeGreaterThanOrEqual(10_000), {
          timeoutMs: 30_000,
        }),
      )
      for (const [i, key] of keys.entries()) {
        expect(got.valuesOf(key)).toEqual(Array.from({ length: 200 }, (_, n) => String(n * 50 + i)))
      }
    })

    test('a large append is delivered completely', async () => {
      const topic = await newTopic()
      const value = randomBytes(900_000)
      const records = ['a', 'a', 'a', 'a', 'a'].map((key) => ({ topic, key, value, headers: {} }))
      const positions = await log.append(records)
      expect(positions.map((p) => p.offset)).toEqual([0, 1, 2, 3, 4])
      const got = createCollector()
      await consuming({ group: unique('group'), topics: [topic], ...got }, () =>
        eventually(() => expect(got.records).toHaveLength(5)),
      )
      expect(got.records.every((r) => r.value.equals(value))).toBe(true)
    })

    test('records survive closing and reopening', async () => {
      const topic = await newTopic()
      const other = await testLog.open()
      await other.append([record(topic, 'a', 'kept')])
      await other.close()
      const reopened = await testLog.open()
      await expectRead(['kept'], { topics: [topic] }, reopened)
      await reopened.close()
    })

    test('a group resumes where it stopped, a new group starts at the beginning', async () => {
      const topic = await newTopic()
      const group = unique('group')
      await appendAll(topic, 'a', ['1', '2'])
      await expectRead(['1', '2'], { group, topics: [topic] })
      await appendAll(topic, 'a', ['3'])
      await expectRead(['3'], { group, topics: [topic] })
      await expectRead(['1', '2', '3'], { topics: [topic] })
    })

    test('a batch whose handler throws is delivered again before later ones', async () => {
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

    test('a failing partition does not block the others', async () => {
      const topic = await newTopic()
      const [bad, good] = await keysOfTwoPartitions(log, topic)
      await appendAll(topic, bad, ['bad'])
      const got = createCollector()
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

    test('records that a stopped consumer had not finished are delivered again', async () => {
      const topic = await newTopic()
      const group = unique('group')
      await appendAll(topic, 'a', ['1'])
      const handle = vi.fn().mockRejectedValue(new Error('crash'))
      await consuming({ group, topics: [topic], handle }, () =>
        eventually(() => expect(handle).toHaveBeenCalled()),
      )
      await expectRead(['1'], { group, topics: [topic] })
    })

    test('startOffset overrides the committed offset', async () => {
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

    test('a failed startOffset is retried', async () => {
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

    test('a consumer resumes at the offset that its handler returns', async () => {
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

    test('members of a group never handle the same partition, and take over from one that leaves', async () => {
      const topic = await newTopic()
      const group = unique('group')
      const keys = Array.from({ length: 40 }, (_, i) => `key-${i}`)
      const members = [createCollector(), createCollector()] as const
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
        // Kafka distributes the partitions; on the embedded log one member works and the others stand by.
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

    test('records of all partitions that arrive during a call go into the next one', async () => {
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

    test('returns the committed positions of a group without members', async () => {
      const topic = await newTopic()
      const group = unique('group')
      const [position] = await appendAll(topic, 'a', ['1'])
      await expectRead(['1'], { group, topics: [topic], commitsOffsets: false })
      expect(await log.committedPositions(group, [topic])).toEqual([])
      await expectRead(['1'], { group, topics: [topic] })
      const next = { topic, partition: position?.partition, offset: 1 }
      expect(await log.committedPositions(group, [topic])).toContainEqual(next)
    })

    test('readRecords returns single records of a long topic with empty partitions', async () => {
      const topic = await newTopic()
      const all = Array.from({ length: 3000 }, (_, n) => record(topic, 'a', `${n}`))
      const [first] = await log.append(all)
      const found = await readRecords(log, topic, await log.firstPositions(topic))
      expect(found).toMatchObject([{ ...first, key: 'a', value: Buffer.from('0') }])
      expect(await readRecords(log, topic, await log.endPositions(topic))).toEqual([])
    })

    test('check resolves, and an append to an unknown topic rejects', async () => {
      await expect(log.check()).resolves.toBeUndefined()
      await expect(log.append([record(unique('unknown'), 'a', '1')])).rejects.toThrow(Error)
    })
  })
}

/** Returns two keys of different partitions. */
export async function keysOfTwoPartitions(log: EventLog, topic: string): Promise<[string, string]> {
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

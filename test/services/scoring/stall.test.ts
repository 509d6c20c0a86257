import pino from 'pino'
import { Registry } from 'prom-client'
import { afterEach, describe, expect, test } from 'vitest'
import { createStallDetector, watchStall } from '../../../services/scoring/stall.ts'

const minute = 60_000

describe('a stall', () => {
  test('lasts while the backlog grows and nothing is read', () => {
    const stall = createStallDetector()
    for (let now = 0; now <= minute; now += 5000)
      expect(stall({ end: 100 + now, waiting: 10 + now, read: 90, now })).toBe(now)
    expect(stall({ end: 200_000, waiting: 50, read: 91, now: 65_000 })).toBe(0)
  })

  test('is 0 while records are read, none wait or none arrive', () => {
    const stalls = [createStallDetector(), createStallDetector(), createStallDetector()]
    for (let now = 0; now <= 2 * minute; now += 5000) {
      expect(stalls[0]?.({ end: 100 + now, waiting: 100, read: now, now })).toBe(0)
      expect(stalls[1]?.({ end: 100 + now, waiting: 0, read: 0, now })).toBe(0)
      expect(stalls[2]?.({ end: 100, waiting: 100, read: 0, now })).toBe(0)
    }
  })

  test('continues when no more records arrive', () => {
    const stall = createStallDetector()
    stall({ end: 100, waiting: 0, read: 100, now: 0 })
    for (let now = 5000; now <= 2 * minute; now += 5000)
      expect(stall({ end: 120, waiting: 20, read: 100, now })).toBe(now)
  })

  test('starts over after an outage', () => {
    const stall = createStallDetector()
    stall({ end: 100, waiting: 10, read: 90, now: 0 })
    expect(stall({ end: 110, waiting: 20, read: 90, now: 5000 })).toBe(5000)
    expect(stall({ end: 120, waiting: 30, read: 90, now: 5 * minute })).toBe(0)
    expect(stall({ end: 130, waiting: 40, read: 90, now: 5 * minute + 5000 })).toBe(5000)
  })
})

let watch: ReturnType<typeof watchStall> | undefined
afterEach(() => watch?.stop())

describe('watchStall', () => {
  function start() {
    const at = (offset: number) => async (topic: string) => [{ topic, partition: 0, offset }]
    const log = { firstPositions: at(0), endPositions: at(0) }
    const clock = { ms: 0 }
    const lines: { level: number; msg: string }[] = []
    const registry = new Registry()
    let [read, looks] = [0, 0]
    const readStored = async () => {
      looks++
      return [{ topic: 'tidegate.collect.v1', partition: 0, offset: read }]
    }
    const logger = pino({}, { write: (line) => void lines.push(JSON.parse(line)) })
    watch = watchStall({ readStored, log, logger, registry, clock: () => clock.ms, intervalMs: 1 })
    const looked = () => {
      const from = looks
      return expect.poll(() => looks).toBeGreaterThanOrEqual(from + 3)
    }
    return {
      reason: watch.reason,
      seconds: async () =>
        Number(/^tidegate_scoring_stalled_seconds (\S+)/m.exec(await registry.metrics())?.[1]),
      lines,
      read(offset: number) {
        read = offset
      },
      expire(offset: number) {
        log.firstPositions = at(offset)
      },
      async pass(ms: number, end: number) {
        log.endPositions = at(end)
        for (const until = clock.ms + ms; clock.ms < until; clock.ms += 20_000) await looked()
        await looked()
      },
    }
  }

  test('returns the reason after a minute and logs it once, until scoring reads again', async () => {
    const { reason, seconds, lines, read, pass } = start()
    await pass(0, 10)
    await pass(40_000, 11)
    expect(reason()).toBeUndefined()
    await pass(20_000, 12)
    expect(reason()).toBe(
      'scoring has read nothing from tidegate.collect.v1 for 60 s; 12 records are waiting',
    )
    expect(await seconds()).toBe(60)
    await pass(40_000, 13)
    expect(lines).toEqual([
      expect.objectContaining({
        level: 50,
        msg: 'scoring is stalled: it reads nothing while its backlog grows',
        seconds: 60,
      }),
    ])
    read(13)
    await pass(0, 13)
    expect(reason()).toBeUndefined()
    expect(await seconds()).toBe(0)
    expect(lines.at(-1)).toMatchObject({ level: 30, msg: 'scoring resumed' })
  })

  test('does not count expired records as read', async () => {
    const { reason, expire, pass } = start()
    await pass(0, 10)
    for (let first = 1; first <= 3; first++) {
      expire(first)
      await pass(20_000, 10 + first)
    }
    expect(reason()).toBe(
      'scoring has read nothing from tidegate.collect.v1 for 60 s; 10 records are waiting',
    )
  })

  test('reports nothing if the whole backlog has expired', async () => {
    const { reason, expire, pass } = start()
    expire(10)
    await pass(80_000, 10)
    expect(reason()).toBeUndefined()
  })
})

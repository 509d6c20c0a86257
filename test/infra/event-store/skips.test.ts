import { pino } from 'pino'
import { expect, it } from 'vitest'
import { createCodec } from '../../../infra/event-store/codec.ts'
import { createSkips, rewriteSkip } from '../../../infra/event-store/skips.ts'
import type { LogRecord } from '../../../infra/log/port.ts'
import { readRecords } from '../../../infra/log/read-topic.ts'
import { createMemoryLog, type MemoryLog } from '../../support/memory-log.ts'

const codec = createCodec()
const silent = pino({ level: 'silent' })
const cause = { actor: { type: 'operator', id: 'log skip' }, request_id: null } as const
const topic = 'tidegate.sessions.v1'
const decisions = 'tidegate.operations.v1'

function skip(log: MemoryLog, offset: number) {
  const data = {
    skipped_topic: topic,
    skipped_partition: 0,
    skipped_offset: offset,
    reason: 'a typo',
    skipped_by: 'Ada',
    skipped_at: 1,
    why_unreadable: 'not ours',
    record_key: 'k',
    record_headers: {},
    record_value: Buffer.of(1),
  }
  const meta = { eventId: `skip_${offset}`, time: 1, organizationId: null, environment: null }
  return log.append([codec.toRecordWithCause({ type: 'RecordSkipped', data }, meta, cause)])
}

const garbage = (to: string) => ({
  topic: to,
  key: 'x',
  value: Buffer.from('not ours'),
  headers: {},
})
const at = (offset: number) => ({ topic, partition: 0, offset })

function createLineLogger() {
  const lines: Record<string, unknown>[] = []
  const logger = pino(
    { level: 'warn' },
    { write: (line: string) => void lines.push(JSON.parse(line)) },
  )
  return { lines, logger }
}

it('an unreadable skip is ignored and logged, and others still apply', async () => {
  const log = createMemoryLog()
  const { lines, logger } = createLineLogger()
  await log.append([garbage(decisions)])
  await skip(log, 3)
  const skips = createSkips({ log, codec, logger })
  expect([await skips.has(at(3)), await skips.has(at(4))]).toEqual([true, false])
  await log.append([garbage(decisions)])
  await skip(log, 4)
  await log.settled()
  expect(await skips.has(at(4))).toBe(true)
  const logged = lines.map(({ level, topic: of, partition, offset }) => ({
    level,
    of,
    partition,
    offset,
  }))
  expect(logged).toEqual(
    [0, 2].map((offset) => ({ level: 50, of: decisions, partition: 0, offset })),
  )
  await skips.close()
})

it('a failed read of the skips is retried at the next call', async () => {
  const log = createMemoryLog()
  await skip(log, 3)
  let failures = 1
  const away = {
    ...log,
    async endPositions(of: string) {
      if (failures-- > 0) throw new Error('the log is away')
      return log.endPositions(of)
    },
  }
  const skips = createSkips({ log: away, codec, logger: silent })
  await expect(skips.has(at(3))).rejects.toThrow('away')
  expect(await skips.has(at(3))).toBe(true)
  await skips.close()
})

it('rewriteSkip returns an unreadable record unchanged', () => {
  const headers = { event_type: 'RecordSkipped' }
  const record: LogRecord = {
    ...garbage(decisions),
    headers,
    partition: 0,
    offset: 0,
    timestamp: 1,
  }
  expect(rewriteSkip(codec, record, topic)).toBe(record)
})

it('rewriteSkip sets the offset to -1 for skips of the moved topic', async () => {
  const log = createMemoryLog()
  await skip(log, 3)
  const [record] = await readRecords(log, decisions, await log.firstPositions(decisions))
  if (!record) throw new Error('nothing was appended')
  expect(rewriteSkip(codec, record, 'tidegate.collect.v1')).toBe(record)
  const { value, ...place } = rewriteSkip(codec, record, topic)
  const { value: original, ...same } = record
  expect(place).toEqual(same)
  const dataOf = (bytes: Buffer) => codec.fromRecord({ ...record, value: bytes }).data
  expect(dataOf(value)).toEqual({ ...dataOf(original), skipped_offset: -1 })
})

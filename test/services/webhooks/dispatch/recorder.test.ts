import { pino } from 'pino'
import { beforeEach, expect, test, vi } from 'vitest'
import { createCodec } from '../../../../infra/event-store/codec.ts'
import { LogUnavailable, type Position } from '../../../../infra/log/port.ts'
import { skippedEvent } from '../../../../services/webhooks/deliveries/decide.ts'
import { createRecorder, type RecorderOptions } from '../../../../services/webhooks/dispatch/deliver.ts'
import { eventually } from '../../../support/eventually.ts'
import { hex, openQueueWorld, type QueueWorld } from './queue-world.ts'

const position = (offset: number): Position => ({ topic: 'tidegate.webhooks.v1', partition: 7, offset })
const lines: string[] = []
const logger = pino({ base: null }, { write: (line) => void lines.push(line) })
let world: QueueWorld
let tell: (next: Position) => void

beforeEach(async () => {
  lines.length = 0
  world = await openQueueWorld()
  return () => world.close()
})

function recorderWith(append: RecorderOptions['log']['append']) {
  return createRecorder({
    owner: 'me',
    pool: world.pool,
    log: { append },
    codec: createCodec(),
    applied: {
      onAdvance(_, listener) {
        tell = listener
        return () => {}
      },
    },
    logger,
  })
}

function outcomeOf(id: string) {
  const about = { event_id: `evt_${hex(13)}`, endpoint_id: 'we_1', organization_id: `org_${hex(13)}` }
  const delivery = { id, ...about, environment: 'live' as const }
  return skippedEvent({ delivery, reason: 'The endpoint is disabled.', occasion: '1', now: 1 })
}

async function receive(id: string): Promise<void> {
  await world.pool.query(
    `insert into tidegate.webhook_leases (delivery_id, endpoint_id, owner, expires_at)
     values ($1, 'we_1', 'me', clock_timestamp() + interval '1 minute')`,
    [id],
  )
}

test('an advance during a release is not left until the next', async () => {
  // Nothing but news of advances begins a release.
  vi.useFakeTimers({ toFake: ['setInterval'] })
  let offset = 40
  const recorder = recorderWith(async () => [position(offset++)])
  vi.useRealTimers()
  await Promise.all([receive('a'), receive('b')])
  const locker = await world.pool.connect()
  await locker.query('begin')
  await locker.query(`select from tidegate.webhook_leases where delivery_id = 'a' for update`)
  const first = recorder.record('a', outcomeOf('a'))
  const second = recorder.record('b', outcomeOf('b'))
  await world.appliedUpTo(7, 41)
  tell(position(41))
  await eventually(async () => {
    const { rowCount } = await world.pool.query(
      `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
    )
    expect(rowCount).toBe(1)
  })
  await world.appliedUpTo(7, 42)
  tell(position(42))
  await locker.query('commit')
  locker.release()
  await Promise.all([first, second])
  expect(await world.inFlight()).toEqual([])
  recorder.close()
})

test('while the log is away one line a second says so, however many records wait', async () => {
  const begun = performance.now()
  let appends = 0
  const recorder = recorderWith(async () => {
    appends++
    throw new LogUnavailable('the log is away')
  })
  for (let i = 0; i < 50; i++) void recorder.record(`d${i}`, outcomeOf(`d${i}`))
  await eventually(() => expect(appends).toBeGreaterThan(100))
  recorder.close()
  expect(lines.length).toBeGreaterThan(0)
  expect(lines.length).toBeLessThanOrEqual(1 + (performance.now() - begun) / 1000)
})

import { setTimeout as delay } from 'node:timers/promises'
import { derivedId } from '../../infra/ids.ts'
import { webhookBody } from '../../infra/wire/webhooks/events.ts'
import { signatureHeaders } from '../../infra/wire/webhooks/signature.ts'
import type { WebhookEventRaised } from '../../schemas/events.ts'
import { type Child, startChild } from '../child.ts'
import { measureRound, type Round, sideOf } from '../compare.ts'
import type { Measurement } from '../measurement.ts'
import { interleave } from '../rounds.ts'
import type { Scale } from '../scale.ts'
import { pairedRatio } from '../stats.ts'
import { arrivals, spanSeconds } from '../webhooks/arrivals.ts'
import type { WebhookParts } from '../webhooks/parts.ts'

/** Deliveries that an endpoint has under way at most; bare undici gets as many connections in all. */
const perEndpoint = 10
const appendAtOnce = 500

/**
 * Deliveries a second to a receiver on this machine, against bare undici with the same bytes and as many requests in
 * flight. All deliveries of a round become due in one moment, when their events have long been applied, as after a
 * receiver's outage. Both sides' times are the receiver's, from the first request to the last.
 */
export async function measureDeliveries(parts: WebhookParts, scale: Scale): Promise<Measurement[]> {
  const floor = await startChild(['bench/webhooks/floor.ts'], {})
  try {
    const data = await anyPayload(parts)
    let round = 0
    const ids = () => {
      round++
      return Array.from({ length: scale.deliveries }, (_, i) =>
        derivedId('evt', `bench ${round} ${i}`),
      )
    }
    const samples = await interleave(scale.turns, [
      { name: 'ours', run: () => runOurs(parts, { ids: ids(), data }) },
      { name: 'floor', run: () => runFloor(parts, { floor, ids: ids(), data }) },
    ])
    return toMeasurements(parts, samples.ours ?? [], samples.floor ?? [])
  } finally {
    await floor.stop()
  }
}

interface Bodies {
  ids: string[]
  /** JSON text of each payload's data. */
  data: string
}

async function runOurs(parts: WebhookParts, { ids, data }: Bodies): Promise<Round> {
  const { child, environment, receiver } = parts
  const dueAt = Date.now() + 1000 + ids.length
  await raise(parts, { ids, data, dueAt })
  await untilPending(parts, ids.length)
  if (Date.now() > dueAt) throw new Error('the events were applied too late to be due together')
  const work = async () => {
    const times = await arrivals(receiver.url, ids.length)
    await untilPending(parts, 0)
    return { requests: times.size, seconds: spanSeconds(times) }
  }
  return measureRound({ child, storePids: environment.storePids, work })
}

async function raise(
  { core, endpoints }: WebhookParts,
  { ids, data, dueAt }: Bodies & { dueAt: number },
): Promise<void> {
  const { organizationId } = endpoints
  const events = ids.map(
    (event_id, i): WebhookEventRaised => ({
      event_id,
      organization_id: organizationId,
      environment: 'live',
      type: 'session.result.persisted',
      subject_type: 'session',
      subject_id: event_id,
      data,
      created_at: dueAt,
      endpoint_ids: [endpoints.ids[i % endpoints.ids.length] ?? ''],
      route: 'queued',
    }),
  )
  await core.codec.prepare(events.map((event) => ({ type: 'WebhookEventRaised', data: event })))
  const records = events.map((raised) => {
    const meta = {
      eventId: raised.event_id,
      time: dueAt,
      organizationId,
      environment: 'live' as const,
    }
    return core.codec.toRecord({ type: 'WebhookEventRaised', data: raised }, meta)
  })
  for (let i = 0; i < records.length; i += appendAtOnce) {
    await core.log.append(records.slice(i, i + appendAtOnce))
  }
}

/** Waits until so many deliveries of the bench are pending. */
async function untilPending({ core, endpoints }: WebhookParts, count: number): Promise<void> {
  for (;;) {
    const { rows } = await core.pool.query<{ pending: number }>(
      `select count(*)::int as pending from read.webhook_deliveries
       where next_attempt_at is not null and endpoint_id = any($1)`,
      [endpoints.ids],
    )
    if (rows[0]?.pending === count) return
    await delay(20)
  }
}

async function runFloor(
  { receiver, endpoints }: WebhookParts,
  { floor, ids, data }: Bodies & { floor: Child },
): Promise<Round> {
  const eventId = ids[0] ?? ''
  const body = webhookBody({
    id: eventId,
    type: 'session.result.persisted',
    created_at: Date.now(),
    data,
  })
  const timestamp = Math.floor(Date.now() / 1000)
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'Tidegate-Webhooks/1',
    'Idempotency-Key': eventId,
    ...signatureHeaders({ eventId, body, timestamp, secrets: [endpoints.secret] }),
  }
  const inFlight = endpoints.ids.length * perEndpoint
  const work = async () => {
    const arrived = arrivals(receiver.url, ids.length)
    const request = { url: `${receiver.url}/floor`, headers, body, ids, inFlight }
    const response = await fetch(floor.url, { method: 'POST', body: JSON.stringify(request) })
    if (!response.ok) throw new Error(`the floor answered ${response.status}`)
    const times = await arrived
    return { requests: times.size, seconds: spanSeconds(times) }
  }
  return measureRound({ child: floor, storePids: [], work })
}

/** What earlier traffic was told of. */
async function anyPayload({ core }: WebhookParts): Promise<string> {
  const { rows } = await core.pool.query<{ data: string }>(
    `select data from read.webhook_events where type = 'session.result.persisted' limit 1`,
  )
  const [row] = rows
  if (!row) throw new Error('there is no event yet')
  return row.data
}

function toMeasurements(
  { environment }: WebhookParts,
  ours: Round[],
  floor: Round[],
): Measurement[] {
  const ratio = (of: (round: Round) => number) => pairedRatio(ours.map(of), floor.map(of))
  const shared = { log: environment.logName, unit: 'ratio' as const }
  const aim = { direction: 'at least' as const, value: 0.5 }
  const sides = { ours: sideOf(ours), floor: sideOf(floor) }
  return [
    {
      ...shared,
      name: 'webhook deliveries, throughput per core against bare undici',
      value: ratio(({ micros }) => 1 / micros),
      aim,
      sides,
      details: {},
    },
    {
      ...shared,
      name: 'webhook deliveries a second against bare undici, stores and projections on the same cores',
      value: ratio(({ perSecond }) => perSecond),
      details: {},
    },
  ]
}

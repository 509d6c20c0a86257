import { setTimeout as delay } from 'node:timers/promises'
import { derivedId } from '../../infra/ids.ts'
import type { WebhookEventRaised } from '../../schemas/events.ts'
import { type Child, startChild } from '../child.ts'
import { costRatio, measureRound, type Round, totalMicros } from '../compare.ts'
import type { Measurement } from '../measurement.ts'
import { createPeerDatabase, findPeers } from '../peers/peers.ts'
import { signedRequest } from '../peers/signed-post.ts'
import { cpuMicros } from '../procfs.ts'
import { runRound } from '../round-server.ts'
import { interleave } from '../rounds.ts'
import type { Scale } from '../scale.ts'
import { spreadOf } from '../stats.ts'
import { arrivals, spanSeconds } from '../webhooks/arrivals.ts'
import type { WebhookParts } from '../webhooks/parts.ts'

/** Maximum deliveries in flight per endpoint. Bare undici gets the same number of connections. */
const perEndpoint = 10
const appendAtOnce = 500

const findQueues = () => [
  ...findPeers('graphile-worker', [
    { args: ['graphile-worker.mjs', 'plain'] },
    { label: 'local queue and batched completion', args: ['graphile-worker.mjs', 'batched'] },
  ]),
  ...findPeers('pg-boss', [{ label: 'batches of 50', args: ['pg-boss.mjs'] }]),
]

/**
 * Measures the cost of a delivery to a receiver on this machine, in turns with the same signed POST from other queues
 * on the same Postgres and from bare undici. All deliveries of a round are stored before it is measured, as after a
 * receiver's outage. Times are the receiver's, from the first request to the last.
 */
export async function measureDeliveries(parts: WebhookParts, scale: Scale): Promise<Measurement[]> {
  await using undo = new AsyncDisposableStack()
  const own = async (starting: Promise<Child>) => {
    const child = await starting
    undo.defer(() => child.stop())
    return child
  }
  const { environment, receiver, endpoints } = parts
  const floor = await own(startChild(['bench/webhooks/floor.ts'], {}))
  const queues = environment.logName === 'embedded' ? findQueues() : []
  const env = {
    DATABASE_URL: queues.length > 0 ? await createPeerDatabase(environment, 'queues') : '',
    RECEIVER_URL: receiver.url,
    SIGNING_SECRET: endpoints.secret,
  }
  const data = await anyPayload(parts)
  let round = 0
  const bodies = (): Bodies => {
    round++
    const ids = Array.from({ length: scale.deliveries }, (_, i) =>
      derivedId('evt', `bench ${round} ${i}`),
    )
    return { ids, data }
  }
  const variants = [{ name: 'bare undici', run: () => runFloor(parts, floor, bodies()) }]
  for (const { name, start } of queues) {
    const queue = await own(start(env))
    variants.push({ name, run: () => runQueue(parts, queue, bodies()) })
  }
  const projectionMicros: number[] = []
  const ours = {
    name: 'ours',
    run: async () => {
      const round = await runOurs(parts, bodies())
      projectionMicros.push(round.projectionMicros)
      return round
    },
  }
  const samples = await interleave(scale.peerTurns, [ours, ...variants])
  const details = { 'of which projections µs': spreadOf(projectionMicros).median }
  return toMeasurements(parts, samples, details)
}

interface Bodies {
  ids: string[]
  /** JSON text of each payload's data. */
  data: string
}

async function runOurs(parts: WebhookParts, { ids, data }: Bodies) {
  const { child, projections, environment } = parts
  const dueAt = Date.now() + 2000 + ids.length
  await raise(parts, { ids, data, dueAt })
  await untilPending(parts, ids.length)
  if (Date.now() > dueAt) throw new Error('the events were applied too late to be due together')
  await delay(dueAt - Date.now())
  const before = cpuMicros(projections.pid)
  const round = await measureRound({
    child,
    storePids: environment.storePids,
    work: async () => {
      const arrived = await untilArrived(parts, ids)
      await untilPending(parts, 0)
      return arrived
    },
  })
  // The read model is the queue, so applying attempts to it is part of a delivery.
  const projectionMicros = (cpuMicros(projections.pid) - before) / ids.length
  return { ...round, micros: round.micros + projectionMicros, projectionMicros }
}

async function untilArrived({ receiver }: WebhookParts, ids: string[], sent?: Promise<unknown>) {
  const [times] = await Promise.all([arrivals(receiver.url, ids.length), sent])
  return { requests: times.size, seconds: spanSeconds(times) }
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
  await core.codec.prepareKeys(events.map((event) => ({ type: 'WebhookEventRaised', data: event })))
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

/** Waits until this many deliveries of the bench are pending. */
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

async function runFloor(parts: WebhookParts, floor: Child, { ids, data }: Bodies): Promise<Round> {
  const { receiver, endpoints } = parts
  const inFlight = endpoints.ids.length * perEndpoint
  const request = signedRequest({ id: ids[0] ?? '', data }, endpoints.secret)
  const round = { url: `${receiver.url}/floor`, ...request, ids, inFlight }
  const work = () => untilArrived(parts, ids, runRound(floor, round))
  return measureRound({ child: floor, storePids: [], work })
}

async function runQueue(parts: WebhookParts, queue: Child, { ids, data }: Bodies): Promise<Round> {
  await runRound(queue, { enqueue: ids.map((id) => ({ id, data })) })
  const work = () => untilArrived(parts, ids, runRound(queue, { work: ids.length }))
  return measureRound({ child: queue, storePids: parts.environment.storePids, work })
}

/** Returns the payload of a webhook event that earlier traffic raised. */
async function anyPayload({ core }: WebhookParts): Promise<string> {
  const { rows } = await core.pool.query<{ data: string }>(
    `select data from read.webhook_events where type = 'session.result.persisted' limit 1`,
  )
  const [row] = rows
  if (!row) throw new Error('there is no event yet')
  return row.data
}

function toMeasurements(
  { environment: { logName: log } }: WebhookParts,
  { ours = [], ...others }: Record<string, Round[]>,
  details: Measurement['details'],
): Measurement[] {
  const own: Measurement = {
    name: 'processor time of a webhook delivery: webhooks, projections and stores',
    log,
    unit: 'µs',
    value: spreadOf(ours.map(totalMicros)),
    aim: { direction: 'at most', value: 350 },
    details: {
      'processes µs': spreadOf(ours.map(({ micros }) => micros)).median,
      ...details,
      'stores µs': spreadOf(ours.map(({ storeMicros }) => storeMicros)).median,
      'deliveries/s': spreadOf(ours.map(({ perSecond }) => perSecond)).median,
    },
  }
  const ratios = Object.entries(others).map(([name, theirs]) =>
    costRatio({ name: `a webhook delivery over ${name}`, log, ours, theirs }),
  )
  return [own, ...ratios]
}

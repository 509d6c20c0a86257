import { setTimeout as delay } from 'node:timers/promises'
import { derivedId } from '../../infra/ids.ts'
import { eventTopics, type SessionScored } from '../../schemas/events.ts'
import type { Core } from '../../services/server/dependencies.ts'
import type { Measurement } from '../measurement.ts'
import type { Scale } from '../scale.ts'
import { quantile, spreadOf } from '../stats.ts'
import { arrivals } from '../webhooks/arrivals.ts'
import type { WebhookParts } from '../webhooks/parts.ts'

const decisionsPerSecond = 200
const type = 'session.result.persisted'

/**
 * Measures the time from a decision to its first attempt. Appends decisions like scoring at a steady rate, and records
 * when the receiver gets the request about each.
 */
export async function measureFirstAttempt(
  parts: WebhookParts,
  { webhookSeconds, latencyRounds }: Scale,
): Promise<Measurement> {
  const { core, receiver, environment } = parts
  const template = await anyDecision(core)
  const round = async (name: string, seconds: number) => {
    const count = seconds * decisionsPerSecond
    const [times, decided] = await Promise.all([
      arrivals(receiver.url, count),
      decideSteadily(core, { template, name, count }),
    ])
    return [...decided].map(([eventId, at]) => (times.get(eventId) ?? Number.NaN) - at)
  }
  await round('warm-up', webhookSeconds)
  const rounds: number[][] = []
  for (let i = 0; i < latencyRounds; i++) {
    rounds.push((await round(`measured ${i}`, webhookSeconds)).sort((a, b) => a - b))
  }
  const all = rounds.flat().sort((a, b) => a - b)
  return {
    name: `decision to first webhook attempt p99, at ${decisionsPerSecond} decisions a second`,
    log: environment.logName,
    unit: 'ms',
    value: spreadOf(rounds.map((latencies) => quantile(latencies, 0.99))),
    aim: { direction: 'at most', value: 500 },
    details: {
      'p50 ms': quantile(all, 0.5),
      'max ms': quantile(all, 1),
      deliveries: all.length,
    },
  }
}

interface Decisions {
  template: SessionScored
  name: string
  count: number
}

/** Appends decisions at the rate. Returns their times by the id of the resulting webhook event. */
async function decideSteadily(
  core: Core,
  { template, name, count }: Decisions,
): Promise<Map<string, number>> {
  const decided = new Map<string, number>()
  const appends: Promise<unknown>[] = []
  const started = performance.now()
  for (let i = 0; i < count; i++) {
    await delay(Math.max(0, started + (i * 1000) / decisionsPerSecond - performance.now()))
    const now = Date.now()
    const data = decisionOf(template, { name: `${name} ${started} ${i}`, now })
    decided.set(derivedId('evt', 'webhook-event', type, data.session_id), now)
    appends.push(appendDecision(core, data))
  }
  await Promise.all(appends)
  return decided
}

function decisionOf(
  template: SessionScored,
  { name, now }: { name: string; now: number },
): SessionScored {
  return {
    ...template,
    session_id: derivedId('sid', 'bench webhooks', name),
    event_id: derivedId('evt', 'bench webhooks', name),
    created_at: now,
    evaluated_at: now,
    observed_at: now,
    is_provisional: false,
  }
}

async function appendDecision({ log, codec }: Core, data: SessionScored): Promise<unknown> {
  const {
    event_id: eventId,
    organization_id: organizationId,
    environment,
    evaluated_at: time,
  } = data
  const meta = { eventId, time, organizationId, environment }
  const event = { type: 'SessionScored', data } as const
  await codec.prepareKeys([event])
  return log.append([codec.toRecord(event, meta)])
}

/** Returns a decision of earlier traffic from the log, so that the bench uses decisions of a realistic size. */
async function anyDecision({ log, codec }: Core): Promise<SessionScored> {
  const { promise, resolve, reject } = Promise.withResolvers<SessionScored>()
  const consumer = await log.consume({
    group: `bench-webhooks-${Date.now()}`,
    topics: [eventTopics.SessionScored],
    startOffset: async () => 0,
    onError: reject,
    async handle(batches) {
      const scored = batches
        .flatMap(({ records }) => records)
        .map((record) => codec.fromRecord(record))
        .flatMap(({ type, data }) => (type === 'SessionScored' ? [data] : []))
      const [first] = scored.filter(({ environment }) => environment === 'live')
      if (first) resolve(first)
      return undefined
    },
  })
  return promise.finally(() => consumer.stop())
}

import type { RecordedEvent } from '../../infra/event-store/event.ts'
import type { WebhookDeliveryAttempted } from '../../schemas/events.ts'
import type { Received } from '../support/webhook-receiver.ts'
import type { Delivery } from '../support/webhook-world.ts'

/** Deliveries as seen by the sender, the log and the receiver. */
export interface Evidence {
  deliveries: readonly Delivery[]
  /** The webhooks topic. */
  history: readonly RecordedEvent[]
  /** By endpoint, what its receiver got. */
  received: ReadonlyMap<string, readonly Received[]>
  /** When the dispatcher was killed, epoch milliseconds. */
  kills: readonly number[]
  /** After so many attempts without success a delivery has failed. */
  maxAttempts: number
  /** A kill can prevent the recording of attempts whose requests arrived up to this many milliseconds earlier. */
  underWayMs: number
}

export interface Judgement {
  /** Deliveries by how they ended. */
  ends: Record<string, number>
  attempts: number
  requests: number
  /** Requests after one that was acknowledged. */
  duplicates: number
  /** Deliveries that were not as they must be, each with why. */
  wrong: string[]
}

/** A delivery, its attempts in the log, and its requests, both oldest first. */
interface Case {
  delivery: Delivery
  attempts: WebhookDeliveryAttempted[]
  requests: Received[]
}

/** Compares what the read model, the log and the receivers say about each delivery. */
export function judge(evidence: Evidence): Judgement {
  const cases = casesOf(evidence)
  const wrong = cases.flatMap((one) =>
    problemsOf(one, evidence).map((problem) => `${problem}: ${describe(one)}`),
  )
  return {
    ends: countBy(cases.map(({ delivery }) => delivery.status)),
    attempts: cases.flatMap(({ attempts }) => attempts).length,
    requests: cases.flatMap(({ requests }) => requests).length,
    duplicates: cases.flatMap(({ requests }) => afterAcknowledged(requests)).length,
    wrong,
  }
}

function casesOf({ deliveries, history, received }: Evidence): Case[] {
  const recorded = history.flatMap(({ type, data }) =>
    type === 'WebhookDeliveryAttempted' ? [data] : [],
  )
  const attempts = Map.groupBy(recorded, ({ delivery_id }) => delivery_id)
  const byEvent = new Map(
    [...received].map(([id, all]) => [id, Map.groupBy(all, ({ eventId }) => eventId)]),
  )
  return deliveries.map((delivery) => ({
    delivery,
    attempts: (attempts.get(delivery.delivery_id) ?? []).toSorted((a, b) => a.attempt - b.attempt),
    requests: byEvent.get(delivery.endpoint_id)?.get(delivery.event_id) ?? [],
  }))
}

function problemsOf(one: Case, evidence: Evidence): string[] {
  const { delivery, attempts, requests } = one
  const succeeded = delivery.status === 'succeeded'
  const checks: [wrong: boolean, problem: string][] = [
    [!succeeded && delivery.status !== 'failed', 'it did not end'],
    [succeeded && !requests.some(isAcknowledged), 'lost: it is said to be delivered and was not'],
    [
      !succeeded && delivery.attempts !== evidence.maxAttempts,
      'it failed before its attempts were used',
    ],
    [attempts.length !== delivery.attempts, 'the read model and the log count different attempts'],
    [
      attempts.some(({ attempt }, i) => attempt !== i + 1),
      'an attempt is missing or twice in the log',
    ],
    [attempts.at(-1)?.outcome !== delivery.status, 'its last attempt does not say how it ended'],
    [
      attempts.slice(0, -1).some(({ outcome }) => outcome !== 'retrying'),
      'it went on after its end',
    ],
    [answered(attempts) > requests.length, 'an answer is recorded that nobody gave'],
    [unexplained(one, evidence), 'there are more requests than attempts and kills'],
    [repeated(one, evidence), 'it was sent again without need'],
    [afterSuccess(one), 'a request after the recorded success'],
  ]
  return checks.filter(([wrong]) => wrong).map(([, problem]) => problem)
}

/** Returns true if there are more requests than attempts that were recorded or interrupted by a kill. */
function unexplained({ attempts, requests }: Case, evidence: Evidence): boolean {
  const interrupted = requests.filter((request) => killAfter(request, evidence) !== undefined)
  return requests.length - attempts.length > interrupted.length
}

/** Returns true if a request followed an acknowledged one, and no kill explains it. */
function repeated({ requests }: Case, evidence: Evidence): boolean {
  return requests.slice(0, -1).some((request, i) => {
    const next = requests[i + 1]
    if (!isAcknowledged(request) || !next) return false
    const killedAt = killAfter(request, evidence)
    return killedAt === undefined || killedAt > next.receivedAt
  })
}

/** Data sent before a kill may be read after the exit is known, because the event loop learns of both. */
const readLateMs = 250

/** The first kill at which the request was, or its attempt's record may have been, under way. */
function killAfter({ receivedAt }: Received, { kills, underWayMs }: Evidence): number | undefined {
  return kills.find(
    (killedAt) => receivedAt <= killedAt + readLateMs && killedAt - receivedAt <= underWayMs,
  )
}

/** A recorded success is the end: of all requests only its own can have arrived after it began. */
function afterSuccess({ attempts, requests }: Case): boolean {
  const success = attempts.find(({ outcome }) => outcome === 'succeeded')
  if (!success) return false
  return requests.filter(({ receivedAt }) => receivedAt >= success.attempted_at).length > 1
}

function afterAcknowledged(requests: readonly Received[]): Received[] {
  const first = requests.findIndex(isAcknowledged)
  return first < 0 ? [] : requests.slice(first + 1)
}

const isAcknowledged = ({ meaning }: Received) => meaning === 'acknowledged'

const answered = (attempts: readonly WebhookDeliveryAttempted[]) =>
  attempts.filter(({ response_status }) => response_status !== null).length

function describe({ delivery, attempts, requests }: Case): string {
  const log = attempts.map(
    ({ attempt, outcome, attempted_at, error }) =>
      `${attempt} ${outcome} at ${attempted_at} ${error ?? ''}`,
  )
  const seen = requests.map(({ behaviour, receivedAt }) => `${behaviour} at ${receivedAt}`)
  return `${JSON.stringify(delivery)}, attempts [${log.join('; ')}], requests [${seen.join('; ')}]`
}

function countBy(values: readonly string[]): Record<string, number> {
  const groups = Map.groupBy(values, (value) => value)
  return Object.fromEntries([...groups].map(([value, all]) => [value, all.length]))
}

import type pg from 'pg'
import { lastBefore, notApplied } from '../../../infra/event-store/catch-up.ts'
import type { EventLog, Position } from '../../../infra/log/port.ts'
import { type Db, transaction } from '../../../infra/postgres/pool.ts'
import { eventTopics } from '../../../schemas/events.ts'
import { deleteExpired, type ExpiredLease, expiredLeases } from './leases.ts'

export interface ReaperOptions {
  pool: pg.Pool
  log: Pick<EventLog, 'endPositions' | 'partitionOf'>
}

/** Frees deliveries whose dispatcher has died, but for those of `except`; returns how many. */
export type Reap = (o: { except: string[] }) => Promise<number>

interface Candidate {
  lease: ExpiredLease
  /** What the read model must show first. */
  records: Position[]
}

const topic = eventTopics.WebhookDeliveryAttempted

/**
 * An expired lease is deleted once the read model shows what the log had of its event when the lease was seen expired:
 * the dead dispatcher may have sent the delivery and recorded that, and until its record is applied the delivery still
 * looks due. All of an event is in one partition, so one that stands still holds up no other. A look waits for
 * nothing; what is not shown yet is looked at again at the next, with the end of the log as of the first.
 */
export function createReaper({ pool, log }: ReaperOptions): Reap {
  let known = new Map<string, Candidate>()

  async function candidates(expired: ExpiredLease[]): Promise<Candidate[]> {
    const fresh = expired.filter((lease) => !known.has(keyOf(lease)))
    // After the leases were read: whoever held them may have recorded something until they expired.
    const ends = fresh.length > 0 ? lastBefore(await log.endPositions(topic)) : []
    const partitions = await partitionsOf(fresh)
    const next = new Map<string, Candidate>()
    for (const lease of expired) {
      const partition = partitions.get(lease.deliveryId)
      // Of a delivery that the read model does not show it is not known where its records are.
      const records = ends.filter((end) => partition === undefined || end.partition === partition)
      next.set(keyOf(lease), known.get(keyOf(lease)) ?? { lease, records })
    }
    known = next
    return [...known.values()]
  }

  async function partitionsOf(leases: ExpiredLease[]): Promise<Map<string, number>> {
    const events = await eventsOf(
      pool,
      leases.map(({ deliveryId }) => deliveryId),
    )
    const found = events.map(async ({ deliveryId, eventId }): Promise<[string, number]> => {
      return [deliveryId, await log.partitionOf(topic, eventId)]
    })
    return new Map(await Promise.all(found))
  }

  return async ({ except }) => {
    const expired = await allExpired(pool, except)
    const waiting = await candidates(expired)
    if (waiting.length === 0) return 0
    // On one connection: it ends with a Postgres that crashes, so nothing is deleted by what is no longer shown.
    return transaction(pool, async (tx) => {
      const records = waiting.flatMap((candidate) => candidate.records)
      const behind = new Set(await notApplied(tx, 'webhooks', records))
      const isShown = (candidate: Candidate) => !candidate.records.some((record) => behind.has(record))
      return deleteExpired(
        tx,
        waiting.filter(isShown).map(({ lease }) => lease),
      )
    })
  }
}

const pageSize = 1000

/** Page by page, so that those that cannot be freed yet do not hide the others. */
async function allExpired(db: Db, except: string[]): Promise<ExpiredLease[]> {
  const all: ExpiredLease[] = []
  for (;;) {
    const page = await expiredLeases(db, { except: [...except, ...all.map(({ deliveryId }) => deliveryId)] })
    all.push(...page)
    if (page.length < pageSize) return all
  }
}

async function eventsOf(db: Db, deliveryIds: string[]): Promise<{ deliveryId: string; eventId: string }[]> {
  if (deliveryIds.length === 0) return []
  const { rows } = await db.query<{ deliveryId: string; eventId: string }>({
    name: 'webhook-events-of',
    text: `select delivery_id as "deliveryId", event_id as "eventId" from read.webhook_deliveries
           where delivery_id = any($1)`,
    values: [deliveryIds],
  })
  return rows
}

const keyOf = ({ deliveryId, owner, expiresAt }: ExpiredLease) => `${deliveryId} ${owner} ${expiresAt}`

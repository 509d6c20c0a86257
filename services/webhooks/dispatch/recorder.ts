import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { EventCodec } from '../../../infra/event-store/codec.ts'
import type { DecidedEvent } from '../../../infra/event-store/decide.ts'
import type { TrafficEvent } from '../../../infra/event-store/event.ts'
import { createBatcher } from '../../../infra/flow/batcher.ts'
import type { EventLog, NewRecord } from '../../../infra/log/port.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { markRecorded } from '../leases.ts'

interface RecorderOptions {
  owner: string
  pool: pg.Pool
  log: Pick<EventLog, 'append'>
  codec: EventCodec
  logger: Logger
  /** Stops retries. Deliveries that are not recorded by then keep their leases until these expire. */
  signal: AbortSignal
}

/** Event that records an attempt or a skip. */
export interface DeliveryOutcome {
  deliveryId: string
  decision: DecidedEvent<TrafficEvent>
}

export interface Recorder {
  /** Resolves once the event is on the log. Rejects if retries were stopped. */
  record(outcome: DeliveryOutcome): Promise<void>
}

interface EncodedOutcome {
  deliveryId: string
  record: NewRecord
}

const maxRecords = 1000
const appendRetryMs = { first: 100, max: 2000 }

/**
 * Appends the outcomes of deliveries to the log and marks their leases as recorded. Deliveries that end during an
 * append share the next one. Outcomes wait in memory while the log is unavailable. Repeating an append is safe, because
 * the read model ignores duplicates.
 */
export function createRecorder({
  owner,
  pool,
  log,
  codec,
  logger,
  signal,
}: RecorderOptions): Recorder {
  async function append(records: NewRecord[], waitMs = appendRetryMs.first): Promise<void> {
    try {
      await log.append(records)
    } catch (err) {
      logger.warn({ err, attempts: records.length }, 'failed to record webhook attempts; retrying')
      await delay(waitMs, undefined, { signal })
      await append(records, Math.min(2 * waitMs, appendRetryMs.max))
    }
  }

  async function write(encoded: EncodedOutcome[]): Promise<undefined[]> {
    await append(encoded.map(({ record }) => record))
    const deliveryIds = encoded.map(({ deliveryId }) => deliveryId)
    await markRecorded(pool, { owner, deliveryIds }).catch((err) => {
      logger.debug({ err }, 'failed to mark webhook leases as recorded; they will expire')
    })
    return encoded.map(() => undefined)
  }

  const outcomes = createBatcher<EncodedOutcome, undefined>({
    runBatch: write,
    maxItems: maxRecords,
  })
  return {
    async record({ deliveryId, decision: { event, meta } }) {
      await codec.prepareKeys([event])
      await outcomes.run([{ deliveryId, record: codec.toRecord(event, meta) }])
    },
  }
}

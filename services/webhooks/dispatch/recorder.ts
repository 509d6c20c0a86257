import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { EventCodec } from '../../../infra/event-store/codec.ts'
import type { DecidedEvent } from '../../../infra/event-store/decide.ts'
import type { TrafficEvent } from '../../../infra/event-store/event.ts'
import { createGroupCommit } from '../../../infra/flow/group-commit.ts'
import type { EventLog, NewRecord } from '../../../infra/log/port.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { markRecorded } from '../leases.ts'

interface RecorderOptions {
  owner: string
  pool: pg.Pool
  log: Pick<EventLog, 'append'>
  codec: EventCodec
  logger: Logger
  /** Ends tries to record; a delivery that is not recorded by then is leased until its lease expires. */
  signal: AbortSignal
}

export interface Ended {
  deliveryId: string
  decision: DecidedEvent<TrafficEvent>
}

export interface Recorder {
  /** Resolves when the record is on the log and its lease is marked; rejects when tries have ended. */
  record(ended: Ended): Promise<void>
}

interface Encoded {
  deliveryId: string
  record: NewRecord
}

const maxRecords = 1000
const appendRetryMs = { first: 100, most: 2000 }

/**
 * Appends the outcomes of deliveries, and then marks their leases: one append and one statement for all that ended
 * meanwhile. While the log is away records wait here. Appended twice it is the same record: the read model takes the
 * first of an attempt's number.
 */
export function createRecorder({
  owner,
  pool,
  log,
  codec,
  logger,
  signal,
}: RecorderOptions): Recorder {
  async function append(records: NewRecord[], wait = appendRetryMs.first): Promise<void> {
    try {
      await log.append(records)
    } catch (err) {
      logger.warn(
        { err, attempts: records.length },
        'webhook attempts were not recorded, trying again',
      )
      await delay(wait, undefined, { signal })
      await append(records, Math.min(2 * wait, appendRetryMs.most))
    }
  }

  async function write(encoded: Encoded[]): Promise<undefined[]> {
    await append(encoded.map(({ record }) => record))
    const deliveryIds = encoded.map(({ deliveryId }) => deliveryId)
    await markRecorded(pool, { owner, deliveryIds }).catch((err) => {
      logger.debug({ err }, 'failed to mark webhook leases as recorded; they will expire')
    })
    return encoded.map(() => undefined)
  }

  const commit = createGroupCommit<Encoded, undefined>({ write, maxRecords })
  return {
    async record({ deliveryId, decision: { event, meta } }) {
      await codec.prepare([event])
      await commit.append([{ deliveryId, record: codec.toRecord(event, meta) }])
    },
  }
}

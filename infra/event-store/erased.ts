import { eventTopics } from '../../schemas/events.ts'
import type { EventLog } from '../log/port.ts'
import { readTopicToEnd } from '../log/read-topic.ts'
import type { Db } from '../postgres/pool.ts'
import type { EventCodec, RecordedEvent } from './codec.ts'
import { eraseDataKeys } from './data-key-table.ts'

type ErasureEvent = Extract<RecordedEvent, { type: 'VisitorErased' }>

export const isErasure = (event: RecordedEvent): event is ErasureEvent => event.type === 'VisitorErased'

interface Stores {
  pool: Db
  log: EventLog
  codec: EventCodec
}

// Deletes the keys of all sessions that the log says were erased: a copy of the keys may be older than that.
export async function eraseKeysAgain({ pool, log, codec }: Stores): Promise<number> {
  let sessions = 0
  await readTopicToEnd({
    ...{ log, topic: eventTopics.VisitorErased },
    async handle(batches) {
      for (const record of batches.flatMap(({ records }) => records)) {
        const event = codec.fromRecord(record)
        if (!isErasure(event)) continue
        sessions += event.data.session_ids.length
        await eraseDataKeys(pool, [event.data])
      }
    },
  })
  return sessions
}

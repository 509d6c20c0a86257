import { eventTopics } from '../../schemas/events.ts'
import type { EventLog } from '../log/port.ts'
import { readTopicToEnd } from '../log/read-topic.ts'
import type { Db } from '../postgres/pool.ts'
import type { EventCodec } from './codec.ts'
import { eraseDataKeys } from './data-key-table.ts'

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
        const { type, data } = codec.fromRecord(record)
        if (type !== 'VisitorErased') continue
        sessions += data.session_ids.length
        await eraseDataKeys(pool, [data])
      }
    },
  })
  return sessions
}

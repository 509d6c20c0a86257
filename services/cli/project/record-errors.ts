import type { EventCodec } from '../../../infra/event-store/codec.ts'
import { ViewFailed } from './view-failed.ts'

/** Wraps the codec so that its errors name the event. Takes the id from the headers, which are always readable. */
export const withRecordErrors = (codec: EventCodec): EventCodec => ({
  ...codec,
  fromRecord: withEventId(codec.fromRecord),
  fromRecordUncached: withEventId(codec.fromRecordUncached),
})

const withEventId =
  (read: EventCodec['fromRecord']): EventCodec['fromRecord'] =>
  (record) => {
    try {
      return read(record)
    } catch (error) {
      const reason = error instanceof Error ? error.name : 'an error'
      const id = /^evt_\w{1,40}$/.exec(record.headers.event_id ?? '')?.[0] ?? 'without an id'
      throw new ViewFailed(`cannot read the record (${reason}), event ${id}`)
    }
  }

import type { EventCodec } from '../../../infra/event-store/codec.ts'
import { ViewFailed } from './view-failed.ts'

/** The codec, whose errors name the event: of a record that cannot be read the headers still say which it is. */
export const namingRecords = (codec: EventCodec): EventCodec => ({
  ...codec,
  fromRecord: naming(codec.fromRecord),
  fromRecordOnce: naming(codec.fromRecordOnce),
})

const naming =
  (read: EventCodec['fromRecord']): EventCodec['fromRecord'] =>
  (record) => {
    try {
      return read(record)
    } catch (error) {
      const what = error instanceof Error ? error.name : 'an error'
      const id = /^evt_\w{1,40}$/.exec(record.headers.event_id ?? '')?.[0] ?? 'without an id'
      throw new ViewFailed(`the record cannot be read (${what}), event ${id}`)
    }
  }

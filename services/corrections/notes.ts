import type { EventCodec, RecordedEvent } from '../../infra/event-store/codec.ts'
import { decodeRecords } from '../../infra/event-store/consumer.ts'
import type { Skips } from '../../infra/event-store/skips.ts'
import type { EventLog } from '../../infra/log/port.ts'
import { readTopicToEnd } from '../../infra/log/read-topic.ts'
import type { DataScope } from '../../projections/sessions/scope.ts'
import { eventTopics } from '../../schemas/events.ts'

interface CorrectionSources {
  log: EventLog
  codec: EventCodec
  skips: Pick<Skips, 'has'>
}

type CorrectedEvent = Extract<RecordedEvent, { type: 'VisitorCorrected' }>
export type NotedCorrection = CorrectedEvent['data']

/**
 * What somebody said of these sessions: that they are of another visitor, and why. No read model has it, so the topic is
 * read to its end: it is short.
 */
export async function readCorrections(
  { log, codec, skips }: CorrectionSources,
  { organizationId, environment }: DataScope,
  sessionIds: string[],
): Promise<NotedCorrection[]> {
  const theirs = new Set(sessionIds)
  const found: NotedCorrection[] = []
  const isTheirs = ({ data }: CorrectedEvent) =>
    data.organization_id === organizationId &&
    data.environment === environment &&
    data.session_ids.some((id) => theirs.has(id))
  await readTopicToEnd({
    ...{ log, topic: eventTopics.VisitorCorrected, endsThere: true },
    async handle(batches) {
      for (const { records } of batches) {
        const { events, poison } = await decodeRecords({ codec, skips }, records)
        if (poison) throw poison.error
        found.push(
          ...events
            .filter((event) => event.type === 'VisitorCorrected')
            .filter(isTheirs)
            .map(({ data }) => data),
        )
      }
    },
  })
  return found
}

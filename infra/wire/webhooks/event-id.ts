import { type DecisionId, derivedId } from '../../ids.ts'
import type { SubscribableType } from './event-types.ts'

/** The id of the one event of a type that its subject, such as a session, ever has. */
export function webhookEventId(type: SubscribableType, subjectId: string): DecisionId {
  return derivedId('evt', 'webhook-event', type, subjectId)
}

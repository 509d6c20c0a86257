import type { DeliveryType, SubscribableType } from '../../infra/wire/webhooks/events.ts'
import type { Environment } from '../../schemas/events.ts'

export type DisabledReason = 'manual' | 'failing' | 'gone'
export type FlaggedReason = Exclude<DisabledReason, 'manual'>

export interface SigningSecretRow {
  sealed: Buffer
  created_at: number
  /** It signs until then; null = it is the newest, which has no end. */
  expires_at: number | null
}

/** Times are epoch milliseconds, as in all rows here. */
export interface EndpointRow {
  id: string
  organization_id: string
  environment: Environment
  name: string
  url: string
  event_types: SubscribableType[]
  status: 'active' | 'disabled'
  /** null while it is active. */
  disabled_reason: DisabledReason | null
  /** Why it would be disabled if no service of Gate needed it; null = there is no reason. */
  flagged_reason: FlaggedReason | null
  /** Newest first; expired ones may still be among them. */
  secrets: SigningSecretRow[]
  created_at: number
  updated_at: number
  /**
   * Since when it is at its URL and to be sent to: when it was last enabled or moved, at first created. What failed
   * before says nothing about it now.
   */
  target_since: number
}

export interface WebhookEventRow {
  id: string
  organization_id: string
  environment: Environment
  type: DeliveryType
  subject_type: string
  subject_id: string
  /** JSON of the payload's `data`. */
  data: string
  created_at: number
}

/** As it is stored; `delivering` is a pending delivery that a dispatcher has leased. */
export type StoredDeliveryStatus = 'pending' | 'succeeded' | 'failed' | 'skipped'

/** One event for one endpoint, however many attempts that takes. */
export interface DeliveryRow {
  id: string
  event_id: string
  endpoint_id: string
  organization_id: string
  environment: Environment
  event_type: DeliveryType
  status: StoredDeliveryStatus
  attempts: number
  /** Attempts since it was raised or, if it was, redelivered: the place in the retry schedule. */
  attempts_in_round: number
  /** null when no attempt is due, or when whoever raised it makes the calls. */
  next_attempt_at: number | null
  response_status: number | null
  response_body: string | null
  /** Why the last attempt was no success, or why the delivery was skipped, in words. */
  error: string | null
  created_at: number
  updated_at: number
}

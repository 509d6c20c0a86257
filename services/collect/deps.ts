import type { Auth } from '../../infra/access/auth.ts'
import type { Keyring } from '../../infra/crypto/keyring.ts'
import type { EventCodec } from '../../infra/event-store/codec.ts'
import type { Clock, Random } from '../../infra/ids.ts'
import type { EventLog } from '../../infra/log/port.ts'
import type { Tenant } from './sealed-ids.ts'

/** The decision that a hand-off waits for, and whose keys may open its token. */
export interface HandOffRequest extends Tenant {
  decisionId: string
  sessionId: string
}

export interface CollectDeps {
  log: Pick<EventLog, 'append'>
  codec: EventCodec
  auth: Pick<Auth, 'requirePublishable' | 'refundOtherClient' | 'publishable'>
  keyring: Keyring
  clock: Clock
  random: Random
  /** Rejects with 409 where no secret key could open a token. */
  checkRecipients: (tenant: Tenant) => Promise<void>
  /** Waits for the decision and seals it; rejects with 503 when it does not come in time. See hand-off.ts. */
  sealResult: (request: HandOffRequest) => Promise<string>
  /** Milliseconds between batches that clients are asked for (default 2000). */
  batchIntervalMs?: number
  /** Documents whose keys and last answer a node remembers (default 20,000). */
  rememberedDocuments?: number
}

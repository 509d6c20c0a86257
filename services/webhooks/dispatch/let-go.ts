import type pg from 'pg'
import type { WebhookClient } from '../../../infra/safe-http/client.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { within } from '../../../infra/timing.ts'
import type { GiveUp } from './give-up.ts'
import type { HeldLeases } from './held.ts'
import { abandonLeases } from './leases.ts'
import type { Recorder } from './recorder.ts'

export interface LetGoOptions {
  owner: string
  pool: pg.Pool
  client: Pick<WebhookClient, 'close'>
  held: HeldLeases
  recorder: Pick<Recorder, 'close'>
  giveUp: Pick<GiveUp, 'idle'>
  logger: Logger
}

/** Together less than a stopping server has for all that it lets go of. */
const limitMs = { requests: 1000, leases: 300, records: 500 }

/**
 * Waits for what is under way, then ends it. A request that is cut off is not recorded: it says nothing about its
 * receiver, who would be charged an attempt of the schedule for it. Its lease is given back instead, so that the next
 * dispatcher makes the delivery at once; if the receiver had taken it already, it gets it twice, with the same id. The
 * request ends before that, or there could be two at the same time. What was answered and could not be recorded in time
 * keeps its lease until that expires, since it may have been recorded after all.
 */
export async function letGo(options: LetGoOptions): Promise<void> {
  const { owner, pool, client, held, recorder, giveUp, logger } = options
  await within(held.empty(), limitMs.requests).catch(() => {})
  const deliveryIds = held.dropSending()
  await client.close()
  if (deliveryIds.length > 0) {
    logger.info({ deliveries: deliveryIds.length }, 'webhook requests cut off, to be made again')
    await within(abandonLeases(pool, { owner, deliveryIds }), limitMs.leases).catch(() => {})
  }
  await within(Promise.all([held.empty(), giveUp.idle()]), limitMs.records).catch(() => {})
  recorder.close()
}

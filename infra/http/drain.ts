import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { within } from '../within.ts'

export interface DrainOptions {
  /** How long new requests are still answered; whoever balances load learns meanwhile that this server stops. */
  drainMs: number
  /** How long requests may then still take; whoever has not sent all of its request by then is cut off. */
  closeMs?: number
}

/** Ends serving so that no request which arrived in time fails. Begin after the app's `isStopping` became true. */
export async function drain(app: FastifyInstance, { drainMs, closeMs = 5000 }: DrainOptions): Promise<void> {
  await delay(drainMs)
  const closed = app.close()
  await within(closed, closeMs).catch(() => app.server.closeAllConnections())
  await closed
}

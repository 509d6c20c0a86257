import type { Core } from '../../services/core.ts'
import { type Child, startChild } from '../child.ts'
import type { Measurement } from '../measurement.ts'
import { openOwnCore } from '../own-core.ts'
import type { Scale } from '../scale.ts'
import { createEndpoints, type Endpoints } from '../webhooks/endpoints.ts'
import type { Traffic } from './traffic.ts'
import { measureFirstAttempt } from './webhook-latency.ts'
import { measureDeliveries } from './webhook-rate.ts'

/** What the measures of webhooks share. */
export interface WebhookParts extends Traffic {
  core: Core
  receiver: Child
  endpoints: Endpoints
}

/** The time from a decision to its first attempt, and deliveries against bare undici. */
export async function measureWebhooks(traffic: Traffic, scale: Scale): Promise<Measurement[]> {
  await using undo = new AsyncDisposableStack()
  const core = await openOwnCore(traffic.environment)
  undo.defer(() => core.close())
  const receiver = await startChild(['bench/webhooks/receiver.ts'], {})
  undo.defer(() => receiver.stop())
  const endpoints = await createEndpoints(traffic, receiver.url)
  // No later measure shall be slowed by deliveries to a receiver that is gone.
  undo.defer(() => endpoints.disable())
  const parts = { ...traffic, core, receiver, endpoints }
  return [await measureFirstAttempt(parts, scale), ...(await measureDeliveries(parts, scale))]
}

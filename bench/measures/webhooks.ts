import { type Child, startChild } from '../child.ts'
import type { Environment } from '../environment.ts'
import type { Measurement } from '../measurement.ts'
import { openOwnCore } from '../own-core.ts'
import type { Scale } from '../scale.ts'
import { createEndpoints } from '../webhooks/endpoints.ts'
import { measureDeliveries } from './deliveries.ts'
import { measureFirstAttempt } from './webhook-latency.ts'

/** Measures the time from a decision to its first attempt, and deliveries against other queues and bare undici. */
export async function measureWebhooks(
  environment: Environment,
  scale: Scale,
): Promise<Measurement[]> {
  await using undo = new AsyncDisposableStack()
  const own = async (starting: Promise<Child>) => {
    const child = await starting
    undo.defer(() => child.stop())
    return child
  }
  const core = await openOwnCore(environment)
  undo.defer(() => core.close())
  const receiver = await own(startChild(['bench/webhooks/receiver.ts'], {}))
  const projections = await own(environment.startRoles('api', 'projections'))
  const child = await own(environment.startRoles('webhooks'))
  const endpoints = await createEndpoints({ environment, api: projections, receiver })
  // Prevents deliveries to a stopped receiver, which would slow later measures.
  undo.defer(() => endpoints.disable())
  const parts = { environment, child, projections, core, receiver, endpoints }
  return [await measureFirstAttempt(parts, scale), ...(await measureDeliveries(parts, scale))]
}

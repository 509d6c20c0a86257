import { z } from 'zod'
import type { DataKey } from '../../../infra/crypto/sealing.ts'
import type { GateSessionId, Random } from '../../../infra/ids.ts'
import { deliveryEnvelopeSchema } from '../../../infra/wire/delivery-envelope.ts'

/** What an approved signup delivers: what its service sealed, and what Gate did. */
export const bundleSchema = z
  .strictObject({ integrator: deliveryEnvelopeSchema, gate: deliveryEnvelopeSchema })
  .meta({ id: 'GateDeliveryBundle' })
export type DeliveryBundle = z.output<typeof bundleSchema>

interface Of {
  /** The one that the vault keeps for the signup. */
  dataKey: DataKey
  gateSessionId: GateSessionId
}

/** The bundle as events and read models carry it: nobody reads it once the data key is deleted. */
export function sealBundle(
  bundle: DeliveryBundle,
  { dataKey, gateSessionId, random }: Of & { random: Random },
): Buffer {
  return dataKey.seal(Buffer.from(JSON.stringify(bundle)), { context: gateSessionId, random })
}

/** undefined for what was not sealed under this key for this signup. */
export function openBundle(sealed: Buffer, { dataKey, gateSessionId }: Of): DeliveryBundle | undefined {
  const text = dataKey.open(sealed, { context: gateSessionId })?.toString('utf8')
  return text === undefined ? undefined : bundleSchema.parse(JSON.parse(text))
}

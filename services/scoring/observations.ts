import { inflateRawSync } from 'node:zlib'
import { type Observations, observationsSchema } from '../../schemas/observations.ts'

/** A payload that inflates to more is a bomb: the largest honest snapshot is a thousandth of it. */
const maxInflatedBytes = 4 * 1024 * 1024

/** The observations in a batch's payload (raw-deflated JSON); undefined when it cannot be read. Never throws. */
export function readObservations(payload: Buffer): Observations | undefined {
  try {
    const json = inflateRawSync(payload, { maxOutputLength: maxInflatedBytes }).toString('utf8')
    return observationsSchema.safeParse(JSON.parse(json)).data
  } catch {
    return undefined
  }
}

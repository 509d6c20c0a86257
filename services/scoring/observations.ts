import { inflateRawSync } from 'node:zlib'
import { maxDeflatedBytes, maxObservationBytes } from '../../infra/collect-protocol/constants.ts'
import { type Observations, observationsSchema } from '../../schemas/observations.ts'

/** An honest snapshot has some 300 members, four levels deep. What has more is made to cost time, not to be read. */
const maxMembers = 20_000
const maxDepth = 32

/** The observations in a batch's payload (raw-deflated JSON); undefined when it cannot be read. Never throws. */
export function readObservations(payload: Buffer): Observations | undefined {
  // Empty blocks cost time as well, although they inflate to nothing.
  if (payload.length > maxDeflatedBytes) return undefined
  try {
    const json = inflateRawSync(payload, { maxOutputLength: maxObservationBytes })
    return isModest(json) ? observationsSchema.parse(JSON.parse(json.toString('utf8'))) : undefined
  } catch {
    return undefined
  }
}

const quote = 0x22
const backslash = 0x5c
const openings = new Set([0x5b, 0x7b])
const closings = new Set([0x5d, 0x7d])
const separators = new Set([0x2c, 0x3a])

/** Whether parsing the JSON is cheap, without parsing it: brackets, commas and colons outside of strings are few. */
function isModest(json: Buffer): boolean {
  let depth = 0
  let members = 0
  for (let at = 0; at < json.length; at++) {
    const byte = json[at] ?? 0
    if (byte === quote) at = endOfString(json, at)
    else if (openings.has(byte)) depth += 1
    else if (closings.has(byte)) depth -= 1
    else if (!separators.has(byte)) continue
    members += 1
    if (depth > maxDepth || members > maxMembers) return false
  }
  return true
}

/** Where the string that begins at `from` ends; the end of the text when it does not. */
function endOfString(json: Buffer, from: number): number {
  let at = from + 1
  while (at < json.length && json[at] !== quote) at += json[at] === backslash ? 2 : 1
  return at
}

import { inflateRawSync } from 'node:zlib'
import { maxDeflatedBytes, maxObservationBytes } from '../../infra/wire/collect/constants.ts'
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

/** By byte: 0 = nothing of interest, else what it is. */
const kinds = new Uint8Array(256)
const [opening, closing, separator, string] = [1, 2, 3, 4]
for (const byte of Buffer.from('[{')) kinds[byte] = opening
for (const byte of Buffer.from(']}')) kinds[byte] = closing
for (const byte of Buffer.from(',:')) kinds[byte] = separator
kinds[quote] = string

/** Whether parsing the JSON is cheap, without parsing it: brackets, commas and colons outside of strings are few. */
function isModest(json: Buffer): boolean {
  let depth = 0
  let members = 0
  for (let at = 0; at < json.length; at++) {
    const kind = kinds[json[at] ?? 0]
    if (kind === 0) continue
    if (kind === string) {
      at = endOfString(json, at)
      continue
    }
    if (kind === opening) depth += 1
    if (kind === closing) depth -= 1
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

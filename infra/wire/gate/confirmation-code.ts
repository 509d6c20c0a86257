import { createHash } from 'node:crypto'
import { z } from 'zod'
import { base32Characters, type GateSessionId } from '../../ids.ts'

/**
 * A short text such as `K4-7M9` that a signup's terminal and its consent page both show, so that a person sees that
 * they belong together. It follows from the session's id.
 */
export function confirmationCode(gateSessionId: GateSessionId): string {
  const digest = createHash('sha256').update(`confirmation\0${gateSessionId}`).digest()
  const text = base32Characters(digest.subarray(0, 5))
  return `${text.slice(0, 2)}-${text.slice(2)}`.toUpperCase()
}

/** As answers that have a consent URL show it. */
export const confirmationCodeSchema = z
  .string()
  .describe(
    'Shown beside the consent URL: the page shows the same, so that a person sees that they belong together.',
  )

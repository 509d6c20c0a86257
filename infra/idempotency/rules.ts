const hour = 60 * 60 * 1000

/** How long an answer can be had again, from the first request with its key. */
export const keptMs = 24 * hour

/**
 * For how long nobody else starts the command. Longer than one that is still alive can take (every step of `decide`
 * has its own time-out), short enough that a killed process is soon forgotten. A command that is taken over
 * although it still runs does no harm: both are the same command.
 */
export const leaseMs = 45_000

/** What is remembered of the request that first came with a key. Times are epoch milliseconds. */
export interface StoredCommand {
  /** MAC of scope and key. */
  id: Buffer
  /** The master key that all of the row was derived with. */
  masterKeyId: string
  /** MAC of method, path and body. */
  requestMac: Buffer
  /** What the command's randomness follows from. */
  seed: Buffer
  createdAt: number
  expiresAt: number
  /** Until when the request that runs now holds it; 0 = none does. */
  lockedUntil: number
  /** The sealed answer, once there is one. */
  answer: Buffer | null
}

export type Verdict = 'start' | 'resume' | 'replay' | 'in_flight' | 'other_request'

/** What to do with a request, given what is remembered under its key. */
export function judge(
  row: StoredCommand | undefined,
  { requestMac, now }: { requestMac: Buffer; now: number },
): Verdict {
  if (!row) return 'start'
  const held = row.lockedUntil > now
  if (row.expiresAt <= now && !held) return 'start'
  if (!row.requestMac.equals(requestMac)) return 'other_request'
  if (row.answer) return 'replay'
  return held ? 'in_flight' : 'resume'
}

import { createNumbers } from '../support/hand.ts'
import {
  accept,
  acceptAfter,
  type Behaviour,
  endlessBody,
  halfBody,
  malformed,
  redirect,
  resetBeforeHeaders,
  silence,
  stalledBody,
  status,
  tooManyUntil,
} from '../support/webhook-behaviours.ts'
import type { Incoming } from '../support/webhook-receiver.ts'

export interface FaultOptions {
  seed: number
  /** Target of redirects: a server that must never receive a request. */
  canaryUrl: string
  /** The share of requests that are not accepted, of events that are not doomed. */
  faulty: number
  /** The share of events of which no request is ever accepted. */
  doomed: number
}

/**
 * Chooses answers: which one an event's request gets follows from the seed, the path, the event and how many
 * came before it, in whatever order requests arrive.
 */
export function createFaults({ seed, canaryUrl, faulty, doomed }: FaultOptions) {
  const faults: [weight: number, Behaviour][] = [
    [1, silence],
    [1, stalledBody],
    [6, resetBeforeHeaders],
    [6, halfBody],
    [6, malformed],
    [6, status(500)],
    [4, status(502)],
    [4, status(503, { 'retry-after': '1' })],
    [4, status(504)],
    [3, status(404)],
    [4, status(429)],
    [4, status(429, { 'retry-after': '1' })],
    [3, tooManyUntil(2)],
    [4, redirect(302, canaryUrl)],
    [4, redirect(307, canaryUrl)],
  ]
  const acceptances: [weight: number, Behaviour][] = [
    [16, accept],
    [4, status(204)],
    [2, status(202)],
    [2, acceptAfter(40)],
    [1, acceptAfter(200)],
    [1, endlessBody],
  ]
  const numbersOf = (text: string) => createNumbers(seed ^ hashOf(text))
  return ({ path, eventId, nth }: Incoming): Behaviour => {
    const isDoomed = numbersOf(`${path} ${eventId}`)() < doomed
    const next = numbersOf(`${path} ${eventId} ${nth}`)
    return next() < (isDoomed ? 1 : faulty) ? pick(faults, next()) : pick(acceptances, next())
  }
}

function pick(choices: readonly [weight: number, Behaviour][], share: number): Behaviour {
  const total = choices.reduce((sum, [weight]) => sum + weight, 0)
  let left = share * total
  for (const [weight, behaviour] of choices) {
    left -= weight
    if (left < 0) return behaviour
  }
  throw new Error(`${share} is not below 1`)
}

/** FNV-1a, 32 bits (datatracker.ietf.org/doc/draft-eastlake-fnv). */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash >>> 0
}

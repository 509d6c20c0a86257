import type { VisitorLink } from '../../../schemas/events.ts'
import type { ClientIds } from './keys.ts'
import type { ComponentName, Profile } from './profile.ts'
import { compareProfiles } from './similarity.ts'

const platformTraits: ComponentName[] = ['system', 'platform']
const machineTraits: ComponentName[] = [
  'webgl_renderer',
  'webgl_parameters',
  'canvas',
  'audio',
  'fonts',
]

/**
 * Returns true if the profiles can't be of one device: system, graphics, canvas, audio and fonts all differ. User agent
 * switchers and desktop-site mode change only the system.
 */
export function isDifferentDevice(first: Profile | null, second: Profile | null): boolean {
  if (!first || !second) return false
  const { agreed, changed } = compareProfiles(first, second)
  const count = (names: ComponentName[], among: ComponentName[]) =>
    names.filter((name) => among.includes(name)).length
  return (
    count(platformTraits, changed) > 0 &&
    count(machineTraits, agreed) === 0 &&
    count(machineTraits, changed) >= 2
  )
}

/** Removes the continuity ids of a client that presents a copied id, so that they identify no visitor. */
export const withoutContinuityIds = (ids: ClientIds): ClientIds => ({
  ...ids,
  presented: [],
  issued: null,
})

const maxGuessConfidence = 50

/** Downgrades the link to a guess, for a session that presents another device's id or token. */
export function asGuess(link: VisitorLink): VisitorLink {
  return {
    ...link,
    basis: 'probabilistic',
    confidence: Math.min(link.confidence ?? maxGuessConfidence, maxGuessConfidence),
  }
}

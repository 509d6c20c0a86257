import type { VisitorLink } from '../../../schemas/events.ts'
import type { ClientIds } from './keys.ts'
import { compareProfiles } from './likeness.ts'
import type { ComponentName, Profile } from './profile.ts'

const platformTraits: ComponentName[] = ['system', 'platform']
const machineTraits: ComponentName[] = [
  'webgl_renderer',
  'webgl_parameters',
  'canvas',
  'audio',
  'fonts',
]

/**
 * Returns true if the profiles can't be one device: the system differs, and graphics, canvas, audio and fonts all do. A
 * user agent switcher, or a desktop site on a phone, leaves those unchanged.
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

/** Removes the continuity ids of a client that presents a copied one, so that no visitor is found by them. */
export const withoutContinuityIds = (ids: ClientIds): ClientIds => ({
  ...ids,
  presented: [],
  issued: null,
})

const maxGuessConfidence = 50

/** Lowers the link to a guess, for a session that presents an id or token of another device. */
export function asGuess(link: VisitorLink): VisitorLink {
  return {
    ...link,
    basis: 'probabilistic',
    confidence: Math.min(link.confidence ?? maxGuessConfidence, maxGuessConfidence),
  }
}

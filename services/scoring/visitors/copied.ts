import type { VisitorLink } from '../../../schemas/events.ts'
import type { ClientIds } from './keys.ts'
import { compareProfiles } from './likeness.ts'
import type { ComponentName, Profile } from './profile.ts'

const ofPlatform: ComponentName[] = ['system', 'platform']
const ofMachine: ComponentName[] = [
  'webgl_renderer',
  'webgl_parameters',
  'canvas',
  'audio',
  'fonts',
]

/**
 * Whether no device is both: another system, and nothing that it draws, sounds like or writes with is the same. A user
 * agent switcher, or a site for desktops on a phone, leaves the machine as it was.
 */
export function isOtherDevice(one: Profile | null, other: Profile | null): boolean {
  if (!one || !other) return false
  const { agreed, changed } = compareProfiles(one, other)
  const count = (names: ComponentName[], among: ComponentName[]) =>
    names.filter((name) => among.includes(name)).length
  return (
    count(ofPlatform, changed) > 0 &&
    count(ofMachine, agreed) === 0 &&
    count(ofMachine, changed) >= 2
  )
}

/** Once the continuity id of a client is taken for a copy, nobody is to be found by it again. */
export const withoutPresented = (ids: ClientIds): ClientIds => ({
  ...ids,
  presented: [],
  issued: null,
})

const doubtful = 50

/** The link of a session that presents an id or a token of another device: it is a guess, and no better. */
export function doubted(link: VisitorLink): VisitorLink {
  return {
    ...link,
    basis: 'probabilistic',
    confidence: Math.min(link.confidence ?? doubtful, doubtful),
  }
}

import { type MatchKind, matchKinds } from './keys.ts'
import { type ComponentName, components, type Profile, type Uniqueness } from './profile.ts'

export interface Comparison {
  agreed: ComponentName[]
  changed: ComponentName[]
  /** On one side or both. */
  unknown: ComponentName[]
}

export function compareProfiles(one: Profile, other: Profile): Comparison {
  const found: Comparison = { agreed: [], changed: [], unknown: [] }
  components.forEach((name, index) => {
    const [mine, theirs] = [one.components[index], other.components[index]]
    if (!mine || !theirs) found.unknown.push(name)
    else (mine === theirs ? found.agreed : found.changed).push(name)
  })
  return found
}

// Bits of evidence for one device. Agreement: how much likelier two visits of one device agree than those of two
// devices that have a match key in common. Change: how seldom one device changes it between two visits.
const evidence: Record<ComponentName, { agreed: number; changed: number }> = {
  system: { agreed: 0, changed: Number.POSITIVE_INFINITY },
  browser: { agreed: 0, changed: Number.POSITIVE_INFINITY },
  platform: { agreed: 0, changed: Number.POSITIVE_INFINITY },
  browser_version: { agreed: 0.3, changed: 0.3 },
  screen: { agreed: 1.6, changed: 2.5 },
  pixel_ratio: { agreed: 0.6, changed: 1.2 },
  timezone: { agreed: 0.7, changed: 2.5 },
  languages: { agreed: 0.8, changed: 3 },
  processors: { agreed: 1.5, changed: 5 },
  memory: { agreed: 1, changed: 5 },
  webgl_renderer: { agreed: 1.2, changed: 4 },
  webgl_parameters: { agreed: 0.4, changed: 2.5 },
  webgl_extensions: { agreed: 0.3, changed: 1.5 },
  canvas: { agreed: 2, changed: 2.5 },
  audio: { agreed: 0.3, changed: 3 },
  fonts: { agreed: 2, changed: 2 },
  voices: { agreed: 0.8, changed: 1.5 },
  media: { agreed: 0.8, changed: 1.5 },
}

export interface SharedKey {
  kind: MatchKind
  /** How many visitors are known by it, at most as many as are looked up. */
  visitors: number
}

interface Weighing {
  comparison: Comparison
  /** One at least. */
  shared: SharedKey[]
  uniqueness: Uniqueness
  isSameNetwork: boolean
  /** How many visitors are known in this network, at most as many as are looked up. */
  neighbors: number
}

// These a person chooses, so they say as much of a uniform machine as of any other.
const chosen: readonly ComponentName[] = ['timezone', 'languages', 'browser_version']
const share: Record<Uniqueness, number> = { distinctive: 1, uniform: 0.6, none: 0 }
const sameNetwork = 4
const otherNetwork = -4.2

/**
 * Bits of evidence that both are one device, in the manner of Fellegi and Sunter (A Theory for Record Linkage, 1969):
 * what agrees adds, what changed takes away. The components of the match key add nothing, and the more visitors have the
 * key, the less the rest proves. Of several common match keys the best one counts.
 */
export function likenessBits({
  comparison,
  shared,
  uniqueness,
  isSameNetwork,
  neighbors,
}: Weighing): number {
  const shareOf = share[uniqueness]
  let beyond = Number.NEGATIVE_INFINITY
  for (const { kind, visitors } of shared)
    beyond = Math.max(
      beyond,
      agreementBits(comparison.agreed, { kind, shareOf }) - Math.log2(visitors),
    )
  const changes = changeBits(comparison.changed)
  // Nothing where ten and more share the network.
  const network = isSameNetwork
    ? sameNetwork * Math.max(0, 1 - Math.log10(neighbors))
    : otherNetwork
  return beyond + changes + network
}

function agreementBits(
  agreed: ComponentName[],
  { kind, shareOf }: { kind: MatchKind; shareOf: number },
): number {
  const found: readonly ComponentName[] = matchKinds[kind]
  let bits = 0
  for (const name of agreed)
    if (!found.includes(name)) bits += (chosen.includes(name) ? 1 : shareOf) * evidence[name].agreed
  return bits
}

// Components that change together, with a display, a graphics card or its driver. Only the costliest of them counts.
const together: ComponentName[][] = [
  ['screen', 'pixel_ratio'],
  ['webgl_renderer', 'webgl_parameters', 'webgl_extensions'],
]

// This runs for each candidate of each session, so it allocates nothing.
function changeBits(changed: ComponentName[]): number {
  let bits = 0
  for (const names of together) {
    let costliest = 0
    for (const name of changed)
      if (names.includes(name)) costliest = Math.max(costliest, evidence[name].changed)
    bits -= costliest
  }
  for (const name of changed)
    if (!together.some((names) => names.includes(name))) bits -= evidence[name].changed
  return bits
}

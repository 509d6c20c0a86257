import { type MatchKind, matchKinds } from './keys.ts'
import { type ComponentName, components, type Profile, type Uniqueness } from './profile.ts'

export interface Comparison {
  agreed: ComponentName[]
  changed: ComponentName[]
  /** Missing in one profile or both. */
  unknown: ComponentName[]
}

export function compareProfiles(first: Profile, second: Profile): Comparison {
  const comparison: Comparison = { agreed: [], changed: [], unknown: [] }
  components.forEach((name, index) => {
    const [a, b] = [first.components[index], second.components[index]]
    if (!a || !b) comparison.unknown.push(name)
    else (a === b ? comparison.agreed : comparison.changed).push(name)
  })
  return comparison
}

// Bits of evidence that two visits come from one device (log-likelihood ratios). `agreed`: how much more often the
// component agrees for one device than for two devices with a common match key. `changed`: how rarely it changes on one
// device.
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
  /** Number of visitors with the key, capped at the lookup limit. */
  visitors: number
}

interface Weighing {
  comparison: Comparison
  /** At least one. */
  shared: SharedKey[]
  uniqueness: Uniqueness
  isSameNetwork: boolean
  /** Number of visitors in this network, capped at the lookup limit. */
  neighbors: number
}

// A person chooses these, so they carry full weight on uniform machines too.
const userChosen: readonly ComponentName[] = ['timezone', 'languages', 'browser_version']
const weights: Record<Uniqueness, number> = { distinctive: 1, uniform: 0.6, none: 0 }
const sameNetworkBits = 4
const otherNetworkBits = -4.2

/**
 * Returns the bits of evidence that two profiles belong to one device (record linkage after Fellegi and Sunter, 1969).
 * Agreeing components add bits, changed ones subtract. Components of the match key add nothing, and a key
 * that many visitors share subtracts. With several common match keys, the best one counts.
 */
export function similarityBits({
  comparison,
  shared,
  uniqueness,
  isSameNetwork,
  neighbors,
}: Weighing): number {
  const weight = weights[uniqueness]
  let agreement = Number.NEGATIVE_INFINITY
  for (const { kind, visitors } of shared)
    agreement = Math.max(
      agreement,
      agreementBits(comparison.agreed, { kind, weight }) - Math.log2(visitors),
    )
  const changes = changeBits(comparison.changed)
  // 0 bits if ten or more visitors share the network.
  const network = isSameNetwork
    ? sameNetworkBits * Math.max(0, 1 - Math.log10(neighbors))
    : otherNetworkBits
  return agreement + changes + network
}

function agreementBits(
  agreed: ComponentName[],
  { kind, weight }: { kind: MatchKind; weight: number },
): number {
  const inKey: readonly ComponentName[] = matchKinds[kind]
  let bits = 0
  for (const name of agreed)
    if (!inKey.includes(name))
      bits += (userChosen.includes(name) ? 1 : weight) * evidence[name].agreed
  return bits
}

// Components that change together, with a new display, graphics card or driver. Only the costliest of a group counts.
const correlated: ComponentName[][] = [
  ['screen', 'pixel_ratio'],
  ['webgl_renderer', 'webgl_parameters', 'webgl_extensions'],
]

// Runs for each candidate of each session, so it avoids allocations.
function changeBits(changed: ComponentName[]): number {
  let bits = 0
  for (const names of correlated) {
    let costliest = 0
    for (const name of changed)
      if (names.includes(name)) costliest = Math.max(costliest, evidence[name].changed)
    bits -= costliest
  }
  for (const name of changed)
    if (!correlated.some((names) => names.includes(name))) bits -= evidence[name].changed
  return bits
}

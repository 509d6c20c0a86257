import { mergeRanges, type Ranges } from './ranges.ts'

/** Kinds of labels in ascending rank. If an address has several labels, the highest rank counts. */
const labelKinds = ['hosting', 'cdn', 'bot', 'vpn', 'relay', 'tor'] as const
export type LabelKind = (typeof labelKinds)[number]

export interface Label {
  kind: LabelKind
  operator: string
}

export const labelName = ({ kind, operator }: Label): string => `${kind} ${operator}`

/** Parses a label; undefined for other text, such as an empty name. */
export function labelOf(name: string): Label | undefined {
  const kind = labelKinds.find((prefix) => name.startsWith(`${prefix} `))
  return kind && { kind, operator: name.slice(kind.length + 1) }
}

/** Merges lists. If several contain an address, the highest rank counts, then the smallest range. */
export const mergeLabels = (lists: readonly Ranges[]): Ranges =>
  mergeRanges(lists, (name) => labelKinds.findIndex((kind) => name.startsWith(`${kind} `)))

// Providers that iporigin took from lists without a license (third part of its NOTICE).
const unlicensed = new Set([
  'Akamai',
  'BunnyCDN',
  'BuyVM',
  'CDN77',
  'Cogent',
  'Contabo',
  'DataCamp',
  'GleSYS',
  'GTHost',
  'Melbicom',
  'Scalaxy',
  'Vercel',
])
const relays = new Set(['Apple Private Relay'])

/** Converts a label of iporigin. Returns '' for unknown kinds, and for providers that may not be redistributed. */
export function labelOfIporigin({ provider, kind }: { provider: string; kind: string }): string {
  const labelKind = relays.has(provider) ? 'relay' : labelKinds.find((name) => name === kind)
  return labelKind && !unlicensed.has(provider)
    ? labelName({ kind: labelKind, operator: provider })
    : ''
}

import { mergeRanges, type Ranges } from './ranges.ts'

/** What lists say of an address, lowest rank first: where several do, the last of them counts. */
const labelKinds = ['hosting', 'cdn', 'bot', 'vpn', 'relay', 'tor'] as const
export type LabelKind = (typeof labelKinds)[number]

export interface Label {
  kind: LabelKind
  operator: string
}

export const labelName = ({ kind, operator }: Label): string => `${kind} ${operator}`

/** undefined for what is no label, such as an empty name. */
export function labelOf(name: string): Label | undefined {
  const kind = labelKinds.find((one) => name.startsWith(`${one} `))
  return kind && { kind, operator: name.slice(kind.length + 1) }
}

/** Makes one list of many. An address that several have is what has the higher rank, then what the smaller range says. */
export const mergeLabels = (lists: readonly Ranges[]): Ranges =>
  mergeRanges(lists, (name) => labelKinds.findIndex((kind) => name.startsWith(`${kind} `)))

// What iporigin took from lists that have no licence, as the third part of its NOTICE names it.
const withoutLicence = new Set([
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

/** The label of iporigin's; empty for what may not be passed on, and for kinds that are not known here. */
export function labelOfIporigin({ provider, kind }: { provider: string; kind: string }): string {
  const known = relays.has(provider) ? 'relay' : labelKinds.find((one) => one === kind)
  return known && !withoutLicence.has(provider)
    ? labelName({ kind: known, operator: provider })
    : ''
}

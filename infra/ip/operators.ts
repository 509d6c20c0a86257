import { distance } from 'fastest-levenshtein'
import { z } from 'zod'
import data from './operators.json' with { type: 'json' }

export const operatorCategory = z
  .enum([
    'residential_proxy',
    'proxy_network',
    'consumer_vpn',
    'enterprise_egress',
    'crawler_agent',
  ])
  .meta({ id: 'OperatorCategory' })

const operator = z.strictObject({
  tag: z.string(),
  name: z.string(),
  category: operatorCategory,
  aliases: z.array(z.string()),
  /** Networks that only this operator uses. */
  asns: z.array(z.int().positive()).default([]),
  /** IP lists that the operator publishes. Together they cover all of its addresses. */
  lists: z.array(z.string()).default([]),
  source: z.string(),
})
const document = z.strictObject({
  version: z.int().positive(),
  sources: z.array(z.string()),
  operators: z.array(operator),
})

export type OperatorCategory = z.output<typeof operatorCategory>
export type Operator = z.output<typeof operator>

export const operatorCatalogue: z.output<typeof document> = document.parse(data)

const namesOf = ({ tag, aliases }: Operator) => [tag, ...aliases]
const byTag = new Map(
  operatorCatalogue.operators.flatMap((item) => namesOf(item).map((name) => [name, item])),
)

export function findOperator(tagOrAlias: string): Operator | undefined {
  return byTag.get(tagOrAlias)
}

export function operatorsOfNetwork(asn: string): Operator[] {
  return operatorCatalogue.operators.filter(({ asns }) => asns.map(String).includes(asn))
}

/** Returns true for a network of a VPN or corporate gateway, through which people's own devices connect. */
export function isPrivateEgress(asn: string | null): boolean {
  const categories = asn === null ? [] : operatorsOfNetwork(asn).map(({ category }) => category)
  return categories.some(
    (category) => category === 'consumer_vpn' || category === 'enterprise_egress',
  )
}

const bareName = (name: string) => name.toUpperCase().replace(/[^\p{L}\p{N}]/gu, '')
const byBareName = new Map(
  operatorCatalogue.operators.flatMap((item) =>
    [item.name, ...namesOf(item), ...item.lists].map((name) => [bareName(name), item] as const),
  ),
)

/** Finds an operator by name. Ignores case, spaces and punctuation, because databases spell names differently. */
export function findOperatorByName(name: string): Operator | undefined {
  return byBareName.get(bareName(name))
}

/** Returns the tags most similar to a text, by edit distance of the tag or an alias; ties are in alphabetical order. */
export function nearestTags(text: string, count: number): string[] {
  const candidates = operatorCatalogue.operators.map((item) => ({
    tag: item.tag,
    edits: minEdits(text, item),
  }))
  return candidates
    .sort((a, b) => a.edits - b.edits)
    .slice(0, count)
    .map(({ tag }) => tag)
}

// Maximum of characters to compare: comparing gets slower with length, and longer texts resemble no tag.
const maxCompared = 64

function minEdits(text: string, item: Operator): number {
  const input = text.slice(0, maxCompared).toUpperCase()
  return Math.min(...namesOf(item).map((name) => distance(input, name)))
}

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
  /** Networks that only this operator uses, so that an address in one of them is the operator's. */
  asns: z.array(z.int().positive()).default([]),
  /** Lists of addresses that the operator publishes. Together they have all of its addresses. */
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
  operatorCatalogue.operators.flatMap((each) => namesOf(each).map((name) => [name, each])),
)

export function findOperator(tagOrAlias: string): Operator | undefined {
  return byTag.get(tagOrAlias)
}

export function operatorsOfNetwork(asn: string): Operator[] {
  return operatorCatalogue.operators.filter(({ asns }) => asns.some((own) => String(own) === asn))
}

/** Whether the network is one of a VPN or of a gateway of companies, which people's own devices come through. */
export function isPrivateEgress(asn: string | null): boolean {
  const categories = asn === null ? [] : operatorsOfNetwork(asn).map(({ category }) => category)
  return categories.some(
    (category) => category === 'consumer_vpn' || category === 'enterprise_egress',
  )
}

const bareName = (name: string) => name.toUpperCase().replace(/[^\p{L}\p{N}]/gu, '')
const byBareName = new Map(
  operatorCatalogue.operators.flatMap((each) =>
    [each.name, ...namesOf(each), ...each.lists].map((name) => [bareName(name), each] as const),
  ),
)

/** Case, spaces and punctuation do not count, because each database spells names in its own way. */
export function operatorNamed(name: string): Operator | undefined {
  return byBareName.get(bareName(name))
}

/** Nearest tags or aliases first, then in alphabetical order. */
export function nearestTags(text: string, count: number): string[] {
  const near = operatorCatalogue.operators.map((each) => ({
    tag: each.tag,
    edits: editsTo(text, each),
  }))
  return near
    .sort((a, b) => a.edits - b.edits)
    .slice(0, count)
    .map(({ tag }) => tag)
}

// The time of a comparison grows with the length, and longer texts resemble no tag.
const comparedCharacters = 64

function editsTo(text: string, each: Operator): number {
  const written = text.slice(0, comparedCharacters).toUpperCase()
  return Math.min(...namesOf(each).map((name) => distance(written, name)))
}

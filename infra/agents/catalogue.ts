import { z } from 'zod'
import { createLru } from '../lru.ts'
import document from './catalogue.json' with { type: 'json' }

export const agentPurposes = [
  ...([
    'search',
    'ai_assistant',
    'ai_training',
    'monitor',
    'preview',
    'feed',
    'advertising',
  ] as const),
  ...(['archive', 'research', 'security', 'seo', 'webhook', 'other'] as const),
]
export type AgentPurpose = (typeof agentPurposes)[number]

const catalogueEntry = z.strictObject({
  id: z.string(),
  /** Who runs it, in lower case; null where the sources do not say. */
  provider: z.string().nullable(),
  product: z.string(),
  purpose: z.enum(agentPurposes),
  /** In lower case, as user agents have them; `^` for one with which they begin. */
  names: z.array(z.string()),
  /** Host names of its addresses: `@` stands for any labels, `***` for a part of one. */
  reverse_dns: z.array(z.string()).optional(),
  /** Addresses on the web at which its operator publishes from where it comes. */
  ranges: z.array(z.string()).optional(),
  /** Domains whose keys sign its requests. */
  domains: z.array(z.string()).optional(),
})
export type CatalogueEntry = z.infer<typeof catalogueEntry>

/** Bots and agents that say who they are, with how that can be verified where a source states it. build.ts makes it. */
export const catalogue: readonly CatalogueEntry[] = z.array(catalogueEntry).parse(document.agents)

interface Named {
  /** Without what marks that it stands at the beginning. */
  name: string
  isFirst: boolean
  entry: CatalogueEntry
}

// By the first word of the name, the longest name first: so a user agent is read once, however many names there are.
const byFirstWord = new Map<string, Named[]>()
for (const entry of catalogue) {
  for (const text of entry.names) {
    const isFirst = text.startsWith('^')
    const name = isFirst ? text.slice(1) : text
    const [word = ''] = name.match(/[a-z]+|\d+/) ?? []
    byFirstWord.set(word, [...(byFirstWord.get(word) ?? []), { name, isFirst, entry }])
  }
}
for (const some of byFirstWord.values())
  some.sort((one, other) => other.name.length - one.name.length)

// Few strings make up most of the traffic. Null where nothing is known.
const found = createLru<string, { entry: CatalogueEntry | null }>(2000)
// What is behind is no name: real ones have 200 to 300 characters.
const maxRead = 1000

/** What a user agent says that it is; null for a browser, or for what is in no list. */
export function namedAgent(userAgent: string): CatalogueEntry | null {
  const known = found.get(userAgent)
  if (known) return known.entry
  const entry = search(userAgent.slice(0, maxRead).toLowerCase())
  found.set(userAgent, { entry })
  return entry
}

function search(text: string): CatalogueEntry | null {
  let best: Named | undefined
  for (const { 0: word, index } of text.matchAll(/[a-z]+|\d+/g)) {
    const named = byFirstWord.get(word)?.find((one) => stands(one, text, index))
    if (named && (!best || named.name.length > best.name.length)) best = named
  }
  return best?.entry ?? null
}

function stands({ name, isFirst }: Named, text: string, at: number): boolean {
  if ((isFirst && at > 0) || !text.startsWith(name, at)) return false
  return !isLetter(name.at(-1)) || !isLetter(text[at + name.length])
}

const isLetter = (character = '') => /[a-z]/.test(character)

const hostPatterns: ReadonlyMap<string, RegExp> = new Map(
  catalogue.flatMap(({ reverse_dns = [] }) =>
    reverse_dns.map((pattern) => [pattern, hostPattern(pattern)] as const),
  ),
)

function hostPattern(pattern: string): RegExp {
  const label = '[a-z0-9-]+'
  const source = pattern.replaceAll('.', '\\.').replaceAll('***', '[a-z0-9]+')
  return new RegExp(`^${source.replace('@', `${label}(?:\\.${label})*`)}$`, 'i')
}

/** Whether the agent's addresses have such a host name. It has to be resolved back to the address, too. */
export function isHostOf({ reverse_dns = [] }: CatalogueEntry, host: string): boolean {
  return reverse_dns.some((pattern) => hostPatterns.get(pattern)?.test(host))
}

const byDomain = new Map(
  catalogue.flatMap((entry) => (entry.domains ?? []).map((domain) => [domain, entry] as const)),
)

export const cataloguedDomains: readonly string[] = [...byDomain.keys()]

/** Whose the keys of a domain are; null where the catalogue does not say. */
export const agentOfDomain = (domain: string): CatalogueEntry | null => byDomain.get(domain) ?? null

// Lists of addresses by their names in data of addresses, with the product or the published ranges that each stands for.
const lists: readonly [list: string, of: string][] = [
  ['Googlebot', 'https://developers.google.com/static/search/apis/ipranges/googlebot.json'],
  [
    'Google special crawlers',
    'https://developers.google.com/static/search/apis/ipranges/special-crawlers.json',
  ],
  ['Bingbot', 'https://www.bing.com/toolbox/bingbot.json'],
  ['GPTBot', 'https://openai.com/gptbot.json'],
  ['ChatGPT-User', 'https://openai.com/chatgpt-user.json'],
  ['OAI-SearchBot', 'https://openai.com/searchbot.json'],
  ['Perplexity-User', 'https://www.perplexity.ai/perplexity-user.json'],
  ['AhrefsBot', 'https://api.ahrefs.com/v3/public/crawler-ip-ranges'],
  ['PerplexityBot', 'https://www.perplexity.ai/perplexitybot.json'],
  ['Meta', 'http://www.facebook.com/peering/geofeed'],
  ['Amazonbot', 'Amazonbot'],
  ['Applebot', 'Applebot'],
  ['ClaudeBot', 'ClaudeBot'],
  ['DuckDuckBot', 'DuckDuckBot'],
  ['Common Crawl', 'CCBot'],
  ['Internet Archive', 'archive.org_bot'],
]

/** The list of addresses by which an agent can be verified; undefined without one. */
export const listOf = ({ product, ranges = [] }: CatalogueEntry): string | undefined =>
  lists.find(([, of]) => of === product || ranges.includes(of))?.[0]

const publishers = new Map(catalogue.map((entry) => [listOf(entry), entry.provider] as const))

/** Whether the agent's operator publishes the list, of this agent or of another one of its own. */
export const isListOf = (entry: CatalogueEntry, list: string): boolean =>
  listOf(entry) === list || (entry.provider !== null && publishers.get(list) === entry.provider)

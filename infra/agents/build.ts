// Generates catalogue.json from two public lists of bots. Run it when one of them has changed:
// `node infra/agents/build.ts <arcjet's well-known-bots as known-bots.json> <crawler-user-agents.json> > infra/agents/catalogue.json`
import { readFileSync } from 'node:fs'
import type { AgentPurpose, CatalogueEntry } from './catalogue.ts'
import {
  chatgptAgent,
  excludedNames,
  imessage,
  providersByCategory,
  providersByName,
  spellingsByPattern,
  wellKnownNames,
} from './overrides.ts'

interface KnownBot {
  id: string
  categories: string[]
  user_agent: string[]
  verification?: { ranges?: { url: string }[]; reverse_dns?: string[] }
}

interface Crawler {
  pattern: string
  tags?: string[]
}

// The first matching category of a bot decides its purpose. `seo` of crawler-user-agents is left out: it is the
// fallback tag.
const purposes: [string, AgentPurpose][] = [
  ['preview', 'preview'],
  ['social-preview', 'preview'],
  ['search-engine', 'search'],
  ['advertising', 'advertising'],
  ['monitor', 'monitor'],
  ['monitoring', 'monitor'],
  ['webhook', 'webhook'],
  ['feedfetcher', 'feed'],
  ['feed-reader', 'feed'],
  ['archive', 'archive'],
  ['archiver', 'archive'],
  ['ai', 'ai_training'],
  ['ai-crawler', 'ai_training'],
  ['academic', 'research'],
  ['scanner', 'security'],
  ['optimizer', 'seo'],
  ['social', 'preview'],
]
// Agents that fetch a page because a person asked an assistant to.
const assistantName = /-?user\b|externalfetcher|duckassist|notebooklm|google-?agent/i
// Words that occur in no name of a browser or app. A name without one must be in `wellKnownNames` or verifiable.
const botWord =
  /bot\b|bot[-_ /.]|crawl|spider|slurp|fetcher|scan|monitor|check|validator|archive|indexer|scraper|harvest|unfurl|uptime|synthetic|link ?preview|feed ?(parser|reader)|adsbot/i
const isLibrary = (categories: string[]) =>
  categories.some((category) =>
    ['tool', 'programmatic', 'http-library', 'browser-automation'].includes(category),
  )

function purposeOf(product: string, categories: string[]): AgentPurpose {
  const purpose = purposes.find(([category]) => categories.includes(category))?.[1] ?? 'other'
  const isAi = ['ai', 'ai-crawler', 'browser-automation'].some((name) => categories.includes(name))
  return isAi && assistantName.test(product) ? 'ai_assistant' : purpose
}

/** Returns the names that a pattern matches. Returns none for a regular expression that can't be listed as names. */
function namesOf(pattern: string): string[] {
  const spellings = spellingsByPattern[pattern]
  if (spellings) return spellings
  const plain = pattern.replace(/\[(\w)(\w)\]/g, (both, first: string, second: string) =>
    first.toLowerCase() === second.toLowerCase() ? first : both,
  )
  if (/[()|*+?[\]{}^$]|\\[a-z]/.test(plain)) return []
  return [plain.replace(/\\/g, '').trim()]
}

function providerOf({ id, categories }: KnownBot, product: string): string | null {
  const byCategory = categories.flatMap((category) => providersByCategory[category] ?? [])[0]
  const byName = providersByName.find(([prefix]) => product.toLowerCase().startsWith(prefix))?.[1]
  const operator =
    /^(.+?)-(crawler|monitor|preview|feedfetcher|aggregator|archiver|webhook|ads)\b/.exec(id)?.[1]
  return byCategory ?? byName ?? operator ?? null
}

const isBotName = (name: string) => botWord.test(name) || wellKnownNames.has(name)
const isExcluded = (name: string) => excludedNames.some((pattern) => pattern.test(name))

function entriesOfBot(bot: KnownBot, tagsOf: Map<string, string[]>): CatalogueEntry[] {
  if (isLibrary(bot.categories)) return []
  const { ranges = [], reverse_dns = [] } = bot.verification ?? {}
  const canBeVerified = ranges.length + reverse_dns.length > 0
  const names = bot.user_agent.flatMap(namesOf).filter((name) => !isExcluded(name))
  const [first] = names.filter((name) => canBeVerified || isBotName(name))
  if (first === undefined) return []
  const product = productOf(first)
  const tags = bot.user_agent.flatMap((pattern) => tagsOf.get(pattern) ?? [])
  const lacksPurpose = !purposes.some(([category]) => bot.categories.includes(category))
  const categories = lacksPurpose ? [...bot.categories, ...tags] : bot.categories
  return [
    {
      id: bot.id,
      provider: providerOf(bot, product),
      product,
      purpose: purposeOf(product, categories),
      names: names.map((name) => name.toLowerCase()),
      ...(reverse_dns.length > 0 && { reverse_dns }),
      ...(ranges.length > 0 && { ranges: ranges.map(({ url }) => url) }),
    },
  ]
}

function entriesOfCrawler({ pattern, tags = [] }: Crawler): CatalogueEntry[] {
  const names = namesOf(pattern).filter((name) => isBotName(name) && !isExcluded(name))
  const [first] = names
  if (first === undefined || (isLibrary(tags) && !wellKnownNames.has(first))) return []
  const product = productOf(first)
  const id = product.toLowerCase().replace(/[^a-z0-9]+/g, '-')
  const provider = providersByName.find(([prefix]) => id.startsWith(prefix))?.[1] ?? null
  return [
    {
      id,
      provider,
      product,
      purpose: purposeOf(product, tags),
      names: names.map((n) => n.toLowerCase()),
    },
  ]
}

const productOf = (name: string) => name.replace(/^\^/, '').replace(/[/ ;]+$/, '')

/** Keeps each name and id only in the first entry that has it. Drops entries without a name left. */
function withoutDuplicates(entries: CatalogueEntry[]): CatalogueEntry[] {
  const [names, ids] = [new Set<string>(), new Set<string>()]
  return entries.flatMap((entry) => {
    const newNames = entry.names.filter((name) => !names.has(productOf(name)))
    if (newNames.length === 0 || ids.has(entry.id)) return []
    ids.add(entry.id)
    for (const name of newNames) names.add(productOf(name))
    return [{ ...entry, names: newNames }]
  })
}

function build(bots: KnownBot[], crawlers: Crawler[]): CatalogueEntry[] {
  const tagsOf = new Map(crawlers.map(({ pattern, tags = [] }) => [pattern, tags]))
  const entries = bots.flatMap((bot) => entriesOfBot(bot, tagsOf))
  // Verifiable entries come first, so that they win a name that several entries have.
  const verifiable = entries.filter(({ ranges, reverse_dns }) => ranges || reverse_dns)
  const crawlerEntries = crawlers.flatMap(entriesOfCrawler)
  return withoutDuplicates([imessage, ...verifiable, ...entries, ...crawlerEntries])
}

const [bots, crawlers] = process.argv
  .slice(2, 4)
  .map((file) => JSON.parse(readFileSync(file, 'utf8')))
const agents = [chatgptAgent, ...build(bots.bots, crawlers)]
const sources = [
  'github.com/arcjet/well-known-bots, commit 0637e27 of 2026-02-26 (MIT)',
  'npm crawler-user-agents 1.60.0 of 2026-08-10 (MIT)',
]
process.stdout.write(
  `{\n  "sources": ${JSON.stringify(sources)},\n  "agents": [\n${agents.map((agent) => `    ${JSON.stringify(agent)}`).join(',\n')}\n  ]\n}\n`,
)

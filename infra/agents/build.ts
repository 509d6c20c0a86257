// Writes catalogue.json of two lists that are public, where one of them has changed:
// `node infra/agents/build.ts <arcjet's well-known-bots as known-bots.json> <crawler-user-agents.json> > infra/agents/catalogue.json`
import { readFileSync } from 'node:fs'
import type { AgentPurpose, CatalogueEntry } from './catalogue.ts'
import {
  chatgptAgent,
  excluded,
  familiar,
  imessage,
  providersByCategory,
  providersByName,
  spelledOut,
} from './judged.ts'

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

// The first that a bot has says what it is for. `seo` of crawler-user-agents is left out: it is what has no other tag.
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
// What a person has asked an assistant to read.
const forSomebody = /-?user\b|externalfetcher|duckassist|notebooklm|google-?agent/i
// What browsers and apps of people are never named. Names without such a word have to be familiar, or to be verified.
const saysBot =
  /bot\b|bot[-_ /.]|crawl|spider|slurp|fetcher|scan|monitor|check|validator|archive|indexer|scraper|harvest|unfurl|uptime|synthetic|link ?preview|feed ?(parser|reader)|adsbot/i
const isLibrary = (kinds: string[]) =>
  kinds.some((kind) =>
    ['tool', 'programmatic', 'http-library', 'browser-automation'].includes(kind),
  )

function purposeOf(product: string, kinds: string[]): AgentPurpose {
  const found = purposes.find(([kind]) => kinds.includes(kind))?.[1] ?? 'other'
  const isAi = ['ai', 'ai-crawler', 'browser-automation'].some((kind) => kinds.includes(kind))
  return isAi && forSomebody.test(product) ? 'ai_assistant' : found
}

/** The names that a pattern stands for; none where it is more than a few spellings of one. */
function namesOf(pattern: string): string[] {
  const spelled = spelledOut[pattern]
  if (spelled) return spelled
  const plain = pattern.replace(/\[(\w)(\w)\]/g, (both, one: string, other: string) =>
    one.toLowerCase() === other.toLowerCase() ? one : both,
  )
  if (/[()|*+?[\]{}^$]|\\[a-z]/.test(plain)) return []
  return [plain.replace(/\\/g, '').trim()]
}

function providerOf({ id, categories }: KnownBot, product: string): string | null {
  const own = categories.flatMap((category) => providersByCategory[category] ?? [])[0]
  const named = providersByName.find(([start]) => product.toLowerCase().startsWith(start))?.[1]
  const operator =
    /^(.+?)-(crawler|monitor|preview|feedfetcher|aggregator|archiver|webhook|ads)\b/.exec(id)?.[1]
  return own ?? named ?? operator ?? null
}

const saysWhatItIs = (name: string) => saysBot.test(name) || familiar.has(name)
const isExcluded = (name: string) => excluded.some((one) => one.test(name))

function known(bot: KnownBot, tagsOf: Map<string, string[]>): CatalogueEntry[] {
  if (isLibrary(bot.categories)) return []
  const { ranges = [], reverse_dns = [] } = bot.verification ?? {}
  const canBeVerified = ranges.length + reverse_dns.length > 0
  const names = bot.user_agent.flatMap(namesOf).filter((name) => !isExcluded(name))
  const [first] = names.filter((name) => canBeVerified || saysWhatItIs(name))
  if (first === undefined) return []
  const product = productOf(first)
  const tags = bot.user_agent.flatMap((pattern) => tagsOf.get(pattern) ?? [])
  const isUnsaid = !purposes.some(([kind]) => bot.categories.includes(kind))
  const kinds = isUnsaid ? [...bot.categories, ...tags] : bot.categories
  return [
    {
      id: bot.id,
      provider: providerOf(bot, product),
      product,
      purpose: purposeOf(product, kinds),
      names: names.map((name) => name.toLowerCase()),
      ...(reverse_dns.length > 0 && { reverse_dns }),
      ...(ranges.length > 0 && { ranges: ranges.map(({ url }) => url) }),
    },
  ]
}

function listed({ pattern, tags = [] }: Crawler): CatalogueEntry[] {
  const names = namesOf(pattern).filter((name) => saysWhatItIs(name) && !isExcluded(name))
  const [first] = names
  if (first === undefined || (isLibrary(tags) && !familiar.has(first))) return []
  const product = productOf(first)
  const id = product.toLowerCase().replace(/[^a-z0-9]+/g, '-')
  const provider = providersByName.find(([start]) => id.startsWith(start))?.[1] ?? null
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

/** The first entry of a name has it. */
function unique(entries: CatalogueEntry[]): CatalogueEntry[] {
  const [names, ids] = [new Set<string>(), new Set<string>()]
  return entries.flatMap((entry) => {
    const own = entry.names.filter((name) => !names.has(productOf(name)))
    if (own.length === 0 || ids.has(entry.id)) return []
    ids.add(entry.id)
    for (const name of own) names.add(productOf(name))
    return [{ ...entry, names: own }]
  })
}

function build(bots: KnownBot[], crawlers: Crawler[]): CatalogueEntry[] {
  const tagsOf = new Map(crawlers.map(({ pattern, tags = [] }) => [pattern, tags]))
  const ofSource = bots.flatMap((bot) => known(bot, tagsOf))
  // Of two that have one name, the one that can be verified.
  const verified = ofSource.filter(({ ranges, reverse_dns }) => ranges || reverse_dns)
  return unique([imessage, ...verified, ...ofSource, ...crawlers.flatMap(listed)])
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

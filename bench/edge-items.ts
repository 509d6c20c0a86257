import { headersOf } from '../services/cli/simulate/generate/headers.ts'
import { planSession, webOnlyMix } from '../services/cli/simulate/generate/plan.ts'
import { agentSignature, createAgentKey, directoryKeysOf } from '../test/support/agent-signature.ts'

/** Request as an edge sends it for scoring. */
export interface EdgeItem {
  method: 'GET'
  scheme: 'http'
  authority: string
  path: string
  headers: [string, string][]
  ip: string
}

const authority = 'localhost'
const agent = 'https://agent.example'
const key = createAgentKey()

/** Signer of a tenth of the items. */
export const signer = {
  directory: {
    subject: `${agent}/.well-known/http-message-signatures-directory`,
    result: { keys: directoryKeysOf(key) },
  },
}

type Kind = (seed: string, index: number) => Pick<EdgeItem, 'headers' | 'ip'>

const addressOf = (index: number) => `203.0.${(index >> 8) % 256}.${index % 256}`
const named = (userAgent: string, index: number): EdgeItem['headers'] => [
  ['User-Agent', `${userAgent} build/${index}`],
  ['Accept', '*/*'],
]

// Makes every user agent unique, so that caches do not help.
const browser: Kind = (seed, index) => {
  const { 'User-Agent': userAgent = '', ...others } = headersOf(
    planSession(seed, index, webOnlyMix),
  )
  return { headers: [...named(userAgent, index), ...Object.entries(others)], ip: addressOf(index) }
}
const program: Kind = (_, index) => ({ headers: named('curl/8.5.0', index), ip: addressOf(index) })
const crawler =
  (ip: (index: number) => string): Kind =>
  (_, index) => ({
    headers: named('Mozilla/5.0 (compatible; Googlebot/2.1)', index),
    ip: ip(index),
  })
const signed: Kind = (_, index) => {
  const lines: [string, string][] = [
    ['"@authority"', authority],
    ['"signature-agent"', `"${agent}"`],
  ]
  const created = Math.floor(Date.now() / 1000)
  const headers = { 'Signature-Agent': `"${agent}"`, ...agentSignature({ key, lines, created }) }
  return {
    headers: [...named('Mozilla/5.0', index), ...Object.entries(headers)],
    ip: addressOf(index),
  }
}

const genuine = crawler((index) => `66.249.66.${index % 256}`)
const kinds = [
  browser,
  browser,
  browser,
  browser,
  browser,
  browser,
  program,
  genuine,
  crawler(addressOf),
  signed,
]

/** Six in ten are browsers; the others are a program, a crawler, a fake crawler and a signed agent. */
export function edgeItems(seed: string, count: number): EdgeItem[] {
  return Array.from({ length: count }, (_, index) => ({
    ...({ method: 'GET', scheme: 'http', authority, path: `/page?n=${index}` } as const),
    ...(kinds[index % kinds.length] ?? browser)(seed, index),
  }))
}

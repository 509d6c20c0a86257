import { describe, expect, test } from 'vitest'
import { readAddresses } from '../../../infra/ip/data/read.ts'
import { openNetwork } from '../../../infra/ip/network.ts'
import type { SessionAgent } from '../../../schemas/events.ts'
import {
  type IdentityChecks,
  identifyAgent,
  type PublishedRanges,
  type SignatureCheck,
} from '../../../services/scoring/session/identity.ts'
import type { SessionEvent } from '../../../services/scoring/session/state.ts'
import { testSession, visitOf } from './support/events.ts'
import { decisionsAfter, slugs } from './support/sessions.ts'

const googlebot = 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)'
const bingbot = 'Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)'
const uptimeRobot = 'Mozilla/5.0+(compatible; UptimeRobot/2.0; http://www.uptimerobot.com/)'
const chrome =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36'
const ofGoogle = '66.249.66.1'
const unlisted = '8.8.4.4'

const ranges: PublishedRanges = {
  botOperatorAt: (address) => (address === ofGoogle ? 'Googlebot' : null),
  listedOperators: () => new Set(['Googlebot']),
}
const ofOpenAi: PublishedRanges = {
  botOperatorAt: () => 'GPTBot',
  listedOperators: () => new Set(['GPTBot', 'ChatGPT-User']),
}
const valid: SignatureCheck = {
  status: 'valid',
  trusted: null,
  keyId: 'key',
  reason: null,
  fetchedAt: 1,
}

interface Given extends IdentityChecks {
  agents?: string[]
  address?: string
  domain?: string | null
}

const agentFor = ({
  agents = [googlebot],
  address = ofGoogle,
  domain = null,
  ...checks
}: Given): SessionAgent => identifyAgent({ userAgents: agents, address, domain }, checks)

const hosts = (host: string | null) => ({ host: { host, fetchedAt: 5 } })
const ofBing = hosts('msnbot-8-8-4-4.search.msn.com')
const elsewhere = { address: unlisted, ranges }
const chatGptUser = 'Mozilla/5.0 (compatible; ChatGPT-User/1.0; +https://openai.com/bot)'
/** A browser whose request names a domain, with the result of checking its signature. */
const naming = (domain: string, signature?: Partial<SignatureCheck>): Given => ({
  agents: [chrome],
  domain,
  ...(signature && { signature: { ...valid, ...signature } }),
})

const by = (provider: string) => ({ provider })
const replayed = { status: 'invalid', reason: 'replayed' } as const

test.each<[string, Given, SessionAgent['status'], Partial<SessionAgent>]>([
  ['a browser claims no agent', { agents: [chrome, ''], ranges }, 'none', { evidence: null }],
  ['a name alone is only declared', {}, 'declared', { product: 'Googlebot', purpose: 'search' }],
  ['a name in any user agent counts', { agents: [chrome, googlebot] }, 'declared', by('google')],
  ['the address is in its ranges', { ranges }, 'verified', { method: 'published_ranges' }],
  [
    'its address is in another list of its operator',
    { agents: [chatGptUser], ranges: ofOpenAi },
    'verified',
    { provider: 'openai', product: 'ChatGPT-User' },
  ],
  [
    'its address is in a list of another operator',
    { ranges: { ...ofOpenAi, listedOperators: ranges.listedOperators } },
    'spoofed',
    by('google'),
  ],
  ['its address is in no list', elsewhere, 'spoofed', { method: 'published_ranges' }],
  ['IPv4-mapped IPv6 is IPv4', { ...elsewhere, address: `::ffff:${unlisted}` }, 'spoofed', {}],
  ['a private address proves nothing', { address: '10.0.0.1', ranges }, 'declared', {}],
  [
    'its operator has no list',
    { agents: [uptimeRobot], ranges },
    'declared',
    { product: 'UptimeRobot' },
  ],
  [
    'its host name is confirmed',
    { ...elsewhere, ...hosts('crawl-8-8-4-4.googlebot.com') },
    'verified',
    { method: 'reverse_dns' },
  ],
  ['its host name is not confirmed', hosts(null), 'spoofed', { method: 'reverse_dns' }],
  ['its host name is that of another operator', ofBing, 'spoofed', { method: 'reverse_dns' }],
  [
    'page and request name different agents, and the host name is that of one',
    { agents: [googlebot, bingbot], ...ofBing },
    'spoofed',
    { product: 'Googlebot' },
  ],
  [
    'one of two named agents is spoofed, and the other cannot be checked',
    { agents: [uptimeRobot, googlebot], ...elsewhere },
    'spoofed',
    by('google'),
  ],
  [
    'one of two named agents is verified, and the other cannot be checked',
    { agents: [uptimeRobot, googlebot], ranges },
    'verified',
    by('google'),
  ],
  ['it names a domain', naming('agent.example'), 'declared', by('agent.example')],
  [
    'its signature is by an unknown domain',
    naming('agent.example', {}),
    'signed',
    { provider: 'agent.example', product: null, method: 'signature' },
  ],
  [
    'its signature is by a domain that the organization trusts',
    naming('agent.example', { trusted: { name: null } }),
    'verified',
    { provider: 'agent.example', method: 'signature' },
  ],
  [
    'its signature is by a domain that the organization has named',
    naming('chatgpt.com', { trusted: { name: 'Buyer' } }),
    'verified',
    { provider: 'Buyer', product: 'ChatGPT agent' },
  ],
  [
    'its signature is invalid, although the directory is trusted',
    naming('agent.example', { ...replayed, trusted: { name: 'Acme' } }),
    'declared',
    { provider: 'Acme', method: null },
  ],
  [
    'its signature is by a domain in the catalogue',
    naming('chatgpt.com', {}),
    'verified',
    { provider: 'openai', product: 'ChatGPT agent', purpose: 'ai_assistant' },
  ],
  [
    'its signature is invalid',
    naming('chatgpt.com', replayed),
    'declared',
    { provider: 'openai', method: null },
  ],
  [
    'a valid signature outranks a spoofed name',
    { ...elsewhere, domain: 'agent.example', signature: valid },
    'signed',
    by('agent.example'),
  ],
  [
    'a spoofed name outranks an unproven domain',
    { ...elsewhere, domain: 'agent.example' },
    'spoofed',
    by('google'),
  ],
])('%s', (_, given, status, more) => {
  expect(agentFor(given)).toMatchObject({ status, ...more })
})

test('evidence names the list, host name, key, fetch time and failure', () => {
  const none = { domain: null, key_id: null, reason: null, list: null, host_name: null }
  expect(agentFor({ ranges, ...hosts('crawl-66-249-66-1.googlebot.com') }).evidence).toEqual({
    ...none,
    catalogue_id: 'google-crawler',
    list: 'Googlebot',
    host_name: 'crawl-66-249-66-1.googlebot.com',
    fetched_at: 5,
  })
  const signed = { catalogue_id: 'chatgpt-agent', domain: 'chatgpt.com', key_id: 'key' }
  expect(agentFor(naming('chatgpt.com', {})).evidence).toEqual({
    ...none,
    ...signed,
    fetched_at: 1,
  })
  expect(agentFor(naming('chatgpt.com', replayed)).evidence?.reason).toBe('replayed')
})

describe('a decision', () => {
  async function decided(userAgent: string, ip_address: string) {
    const addresses = await readAddresses()
    const network = await openNetwork({ addresses: () => addresses })
    const events = visitOf(testSession('agent')).map(({ type, data }) => {
      const from = 'user_agent' in data ? { user_agent: userAgent, ip_address } : {}
      return { type, data: { ...data, ...from } } as SessionEvent
    })
    const [decision] = decisionsAfter(events, { network, now: 0 }).decisions
    if (!decision) throw new Error('nothing was decided')
    return decision.evaluation
  }

  test('about a verified crawler has the lowest score of a bot', async () => {
    const { score, facts } = await decided(googlebot, ofGoogle)
    expect(score).toMatchObject({ risk: 70, verdict: 'bot' })
    expect(facts.identity).toMatchObject({ status: 'verified', method: 'published_ranges' })
  })

  test('about a spoofed crawler has a higher score than one about an unverifiable crawler', async () => {
    const spoofed = await decided(googlebot, unlisted)
    expect(slugs(spoofed)).toContain('spoofed_agent')
    expect(spoofed.score.risk).toBeGreaterThanOrEqual(98)
    const unchecked = await decided(uptimeRobot, unlisted)
    expect(unchecked.score).toMatchObject({ risk: 95, verdict: 'bot' })
  })

  test('about a browser names no agent', async () => {
    const { facts, fired } = await decided(chrome, unlisted)
    expect(facts.identity.status).toBe('none')
    expect(fired.filter(({ channel }) => channel === 'agent')).toEqual([])
  })
})

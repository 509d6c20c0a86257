import { describe, expect, test } from 'vitest'
import { readAddresses } from '../../../infra/ip/data/read.ts'
import { openNetwork } from '../../../infra/ip/network.ts'
import type { SessionAgent } from '../../../schemas/events.ts'
import {
  type IdentityChecks,
  identify,
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
const ofNobody = '8.8.4.4'

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

const found = ({
  agents = [googlebot],
  address = ofGoogle,
  domain = null,
  ...checks
}: Given): SessionAgent => identify({ userAgents: agents, address, domain }, checks)

const hosts = (host: string | null) => ({ hosts: { host, fetchedAt: 5 } })
const ofBing = hosts('msnbot-8-8-4-4.search.msn.com')
const elsewhere = { address: ofNobody, ranges }
const chatGptUser = 'Mozilla/5.0 (compatible; ChatGPT-User/1.0; +https://openai.com/bot)'
/** A browser that names a domain, and what is known of its signature. */
const naming = (domain: string, signature?: Partial<SignatureCheck>): Given => ({
  agents: [chrome],
  domain,
  ...(signature && { signature: { ...valid, ...signature } }),
})

const by = (provider: string) => ({ provider })
const replayed = { status: 'invalid', reason: 'replayed' } as const

test.each<[string, Given, SessionAgent['status'], Partial<SessionAgent>]>([
  ['a browser is nobody', { agents: [chrome, ''], ranges }, 'none', { evidence: null }],
  ['a name alone is declared', {}, 'declared', { product: 'Googlebot', purpose: 'search' }],
  ['a name in any user agent counts', { agents: [chrome, googlebot] }, 'declared', by('google')],
  ['its address is in its ranges', { ranges }, 'verified', { method: 'published_ranges' }],
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
  ['its address is in none', elsewhere, 'spoofed', { method: 'published_ranges' }],
  ['IPv4 in IPv6 is IPv4', { ...elsewhere, address: `::ffff:${ofNobody}` }, 'spoofed', {}],
  ['an address behind a proxy says nothing', { address: '10.0.0.1', ranges }, 'declared', {}],
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
  ['its host name is not, without a list', hosts(null), 'spoofed', { method: 'reverse_dns' }],
  ['its host name is that of another operator', ofBing, 'spoofed', { method: 'reverse_dns' }],
  [
    'its page names another one than its request, whose host name it has',
    { agents: [googlebot, bingbot], ...ofBing },
    'spoofed',
    { product: 'Googlebot' },
  ],
  [
    'its request names another one than its page, which nobody can check',
    { agents: [uptimeRobot, googlebot], ...elsewhere },
    'spoofed',
    by('google'),
  ],
  [
    'its page names something more that nobody can check',
    { agents: [uptimeRobot, googlebot], ranges },
    'verified',
    by('google'),
  ],
  ['it names a domain', naming('agent.example'), 'declared', by('agent.example')],
  [
    'its signature is of an unknown domain',
    naming('agent.example', {}),
    'signed',
    { provider: 'agent.example', product: null, method: 'signature' },
  ],
  [
    'its signature is of a domain that the organization lists',
    naming('agent.example', { trusted: { name: null } }),
    'verified',
    { provider: 'agent.example', method: 'signature' },
  ],
  [
    'its signature is of a domain that the organization has a name for',
    naming('chatgpt.com', { trusted: { name: 'Buyer' } }),
    'verified',
    { provider: 'Buyer', product: 'ChatGPT agent' },
  ],
  [
    'its signature is invalid, whoever is trusted',
    naming('agent.example', { ...replayed, trusted: { name: 'Acme' } }),
    'declared',
    { provider: 'Acme', method: null },
  ],
  [
    'its signature is of a domain of the catalogue',
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
    'a signature goes before a name',
    { ...elsewhere, domain: 'agent.example', signature: valid },
    'signed',
    by('agent.example'),
  ],
  [
    'a name that is false goes before a domain that nothing proves',
    { ...elsewhere, domain: 'agent.example' },
    'spoofed',
    by('google'),
  ],
])('%s', (_, given, status, more) => {
  expect(found(given)).toMatchObject({ status, ...more })
})

test('evidence says which list, host name and key were looked at, when they were fetched, and what is wrong', () => {
  const none = { domain: null, key_id: null, reason: null, list: null, host_name: null }
  expect(found({ ranges, ...hosts('crawl-66-249-66-1.googlebot.com') }).evidence).toEqual({
    ...none,
    catalogue_id: 'google-crawler',
    list: 'Googlebot',
    host_name: 'crawl-66-249-66-1.googlebot.com',
    fetched_at: 5,
  })
  const signed = { catalogue_id: 'chatgpt-agent', domain: 'chatgpt.com', key_id: 'key' }
  expect(found(naming('chatgpt.com', {})).evidence).toEqual({ ...none, ...signed, fetched_at: 1 })
  expect(found(naming('chatgpt.com', replayed)).evidence?.reason).toBe('replayed')
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

  test('of a crawler at an address of its operator is the least of a bot', async () => {
    const { score, facts } = await decided(googlebot, ofGoogle)
    expect(score).toMatchObject({ risk: 70, verdict: 'bot' })
    expect(facts.identity).toMatchObject({ status: 'verified', method: 'published_ranges' })
  })

  test('of one that borrows its name is more than that of one that nobody can check', async () => {
    const spoofed = await decided(googlebot, ofNobody)
    expect(slugs(spoofed)).toContain('spoofed_agent')
    expect(spoofed.score.risk).toBeGreaterThanOrEqual(98)
    const unchecked = await decided(uptimeRobot, ofNobody)
    expect(unchecked.score).toMatchObject({ risk: 95, verdict: 'bot' })
  })

  test('of a browser says nothing of agents', async () => {
    const { facts, fired } = await decided(chrome, ofNobody)
    expect(facts.identity.status).toBe('none')
    expect(fired.filter(({ channel }) => channel === 'agent')).toEqual([])
  })
})

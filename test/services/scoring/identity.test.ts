import { describe, expect, test } from 'vitest'
import { readAddresses } from '../../../infra/ip/data/read.ts'
import { openNetwork } from '../../../infra/ip/network.ts'
import type { SessionAgent } from '../../../schemas/events.ts'
import { startDecisions } from '../../../services/scoring/decide.ts'
import {
  type IdentityChecks,
  identify,
  type PublishedRanges,
  type SignatureCheck,
} from '../../../services/scoring/session/identity.ts'
import type { SessionEvent } from '../../../services/scoring/session/state.ts'
import { batch, opened, testSession } from './support/events.ts'
import { desktopChrome } from './support/snapshots.ts'
import { taught } from './support/taught.ts'

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

test.each<[string, Given, Partial<SessionAgent>]>([
  [
    'a browser is nobody',
    { agents: [chrome, ''], ranges },
    { status: 'none', provider: null, evidence: null },
  ],
  [
    'a name alone is declared',
    {},
    { status: 'declared', product: 'Googlebot', purpose: 'search', method: null },
  ],
  [
    'a name in any user agent counts',
    { agents: [chrome, googlebot] },
    { status: 'declared', provider: 'google' },
  ],
  ['its address is in its ranges', { ranges }, { status: 'verified', method: 'published_ranges' }],
  [
    'its address is in another list of its operator',
    {
      agents: ['Mozilla/5.0 (compatible; ChatGPT-User/1.0; +https://openai.com/bot)'],
      ranges: ofOpenAi,
    },
    { status: 'verified', provider: 'openai', product: 'ChatGPT-User' },
  ],
  [
    'its address is in a list of another operator',
    { agents: [googlebot], ranges: { ...ofOpenAi, listedOperators: ranges.listedOperators } },
    { status: 'spoofed', provider: 'google' },
  ],
  [
    'its address is in none',
    { address: ofNobody, ranges },
    { status: 'spoofed', method: 'published_ranges' },
  ],
  ['IPv4 in IPv6 is IPv4', { address: `::ffff:${ofNobody}`, ranges }, { status: 'spoofed' }],
  [
    'an address behind a proxy says nothing',
    { address: '10.0.0.1', ranges },
    { status: 'declared' },
  ],
  [
    'its operator has no list',
    { agents: [uptimeRobot], ranges },
    { status: 'declared', product: 'UptimeRobot' },
  ],
  [
    'its host name is confirmed',
    { address: ofNobody, ranges, hosts: { host: 'crawl-8-8-4-4.googlebot.com', fetchedAt: 5 } },
    { status: 'verified', method: 'reverse_dns' },
  ],
  [
    'its host name is not, and there is no list',
    { hosts: { host: null, fetchedAt: 5 } },
    { status: 'spoofed', method: 'reverse_dns' },
  ],
  [
    'its host name is that of another operator',
    { hosts: { host: 'msnbot-8-8-4-4.search.msn.com', fetchedAt: 5 } },
    { status: 'spoofed', method: 'reverse_dns' },
  ],
  [
    'its page names another one than its request, whose host name it has',
    {
      agents: [googlebot, bingbot],
      hosts: { host: 'msnbot-8-8-4-4.search.msn.com', fetchedAt: 5 },
    },
    { status: 'spoofed', product: 'Googlebot' },
  ],
  [
    'its request names another one than its page, which nobody can check',
    { agents: [uptimeRobot, googlebot], address: ofNobody, ranges },
    { status: 'spoofed', provider: 'google' },
  ],
  [
    'its page names something more that nobody can check',
    { agents: [uptimeRobot, googlebot], ranges },
    { status: 'verified', provider: 'google' },
  ],
  [
    'it names a domain',
    { agents: [chrome], domain: 'agent.example' },
    { status: 'declared', provider: 'agent.example' },
  ],
  [
    'its signature is of an unknown domain',
    { agents: [chrome], domain: 'agent.example', signature: valid },
    { status: 'signed', provider: 'agent.example', product: null, method: 'signature' },
  ],
  [
    'its signature is of a domain that the organization lists',
    { agents: [chrome], domain: 'agent.example', signature: { ...valid, trusted: { name: null } } },
    { status: 'verified', provider: 'agent.example', method: 'signature' },
  ],
  [
    'its signature is of a domain that the organization has a name for',
    {
      agents: [chrome],
      domain: 'chatgpt.com',
      signature: { ...valid, trusted: { name: 'Buyer' } },
    },
    { status: 'verified', provider: 'Buyer', product: 'ChatGPT agent' },
  ],
  [
    'its signature is invalid, whoever is trusted',
    {
      agents: [chrome],
      domain: 'agent.example',
      signature: { ...valid, status: 'invalid', reason: 'replayed', trusted: { name: 'Acme' } },
    },
    { status: 'declared', provider: 'Acme', method: null },
  ],
  [
    'its signature is of a domain of the catalogue',
    { agents: [chrome], domain: 'chatgpt.com', signature: valid },
    { status: 'verified', provider: 'openai', product: 'ChatGPT agent', purpose: 'ai_assistant' },
  ],
  [
    'its signature is invalid',
    {
      agents: [chrome],
      domain: 'chatgpt.com',
      signature: { ...valid, status: 'invalid', reason: 'expired' },
    },
    { status: 'declared', provider: 'openai', method: null },
  ],
  [
    'a signature goes before a name',
    { address: ofNobody, ranges, domain: 'agent.example', signature: valid },
    { status: 'signed', provider: 'agent.example' },
  ],
  [
    'a name that is false goes before a domain that nothing proves',
    { address: ofNobody, ranges, domain: 'agent.example' },
    { status: 'spoofed', provider: 'google' },
  ],
])('%s', (_, given, expected) => {
  expect(found(given)).toMatchObject(expected)
})

describe('evidence', () => {
  test('says which list, host name and key were looked at, and when they were fetched', () => {
    const hosts = { host: 'crawl-66-249-66-1.googlebot.com', fetchedAt: 5 }
    expect(found({ ranges, hosts }).evidence).toEqual({
      catalogue_id: 'google-crawler',
      domain: null,
      key_id: null,
      reason: null,
      list: 'Googlebot',
      host_name: hosts.host,
      fetched_at: 5,
    })
    expect(found({ agents: [chrome], domain: 'chatgpt.com', signature: valid }).evidence).toEqual({
      catalogue_id: 'chatgpt-agent',
      domain: 'chatgpt.com',
      key_id: 'key',
      reason: null,
      list: null,
      host_name: null,
      fetched_at: 1,
    })
  })

  test('says why a signature does not count', () => {
    const signature = { ...valid, status: 'invalid', reason: 'expired' } as const
    expect(found({ agents: [chrome], domain: 'chatgpt.com', signature }).evidence?.reason).toBe(
      'expired',
    )
  })
})

describe('a decision', () => {
  async function decided(userAgent: string, ip_address: string) {
    const addresses = await readAddresses()
    const network = await openNetwork({ addresses: () => addresses })
    const { apply, decisions } = startDecisions(new Map(), { network, now: 0, learned: taught })
    const session = testSession('agent', { client: desktopChrome })
    for (const { type, data } of [...opened(session), batch(session)]) {
      const from = 'user_agent' in data ? { user_agent: userAgent, ip_address } : {}
      apply({ type, data: { ...data, ...from } } as SessionEvent)
    }
    return decisions[0]?.evaluation
  }

  test('of a crawler at an address of its operator is the least of a bot', async () => {
    const evaluation = await decided(googlebot, ofGoogle)
    expect(evaluation?.score).toMatchObject({ risk: 70, verdict: 'bot' })
    expect(evaluation?.facts.identity).toMatchObject({
      status: 'verified',
      method: 'published_ranges',
    })
  })

  test('of one that borrows its name is more than that of one that nobody can check', async () => {
    const spoofed = await decided(googlebot, ofNobody)
    expect(spoofed?.fired.map(({ slug }) => slug)).toContain('spoofed_agent')
    expect(spoofed?.score.risk).toBeGreaterThanOrEqual(98)
    expect((await decided(uptimeRobot, ofNobody))?.score).toMatchObject({
      risk: 95,
      verdict: 'bot',
    })
  })

  test('of a browser says nothing of agents', async () => {
    const evaluation = await decided(chrome, ofNobody)
    expect(evaluation?.facts.identity.status).toBe('none')
    expect(evaluation?.fired.filter(({ channel }) => channel === 'agent')).toEqual([])
  })
})

import { expect, test } from 'vitest'
import { readAddresses } from '../../../../infra/ip/data/read.ts'
import { noNetwork, openNetwork } from '../../../../infra/ip/network.ts'
import type { AgentStatus } from '../../../../schemas/events.ts'
import type { StoredLookup } from '../../../../services/scoring/identity/tables.ts'
import {
  decideRequest,
  type EdgeRequest,
  type RequestDecision,
} from '../../../../services/scoring/requests/decide.ts'
import {
  agentSignature,
  createAgentKey,
  directoryKeysOf,
} from '../../../support/agent-signature.ts'

const addresses = await readAddresses()
const network = await openNetwork({ addresses: () => addresses })
const now = 1_800_000_000_000
const agentKey = createAgentKey()
const directoryUrl = 'https://agent.example/.well-known/http-message-signatures-directory'
const directory: StoredLookup = {
  subject: directoryUrl,
  result: { keys: directoryKeysOf(agentKey) },
  fetched_at: now - 60_000,
  ends_at: now + 60_000,
  last_failure: null,
}

const chrome =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36'
const googlebot = 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)'
const ofGoogle = '66.249.66.1'
const ofGooglebot = { agent: googlebot, ip: ofGoogle }
const uptime = 'Mozilla/5.0+(compatible; UptimeRobot/2.0; http://www.uptimerobot.com/)'
const declaredBot = ['declared_bot_user_agent', 'bot_like_user_agent']
const httpClient = ['http_client_user_agent', 'bot_like_user_agent']
const home = '91.64.0.1'
const cloud = '5.9.0.1'
const chromiumHello = 't13d1516h2_8daaf6152771_e2d80978ab2e'
const goHello = 't13d1312h2_f57a46bbacb6_ab7e3b40a677'

interface Given extends Partial<EdgeRequest> {
  agent?: string | null
  /** Directories in memory. */
  known?: StoredLookup[]
  /** Domains of directories that the organization trusts. */
  trusted?: string[]
  /** Without the address database. */
  hasNoAddresses?: boolean
}

function decide({
  agent = chrome,
  headers = [],
  known = [],
  trusted = [],
  hasNoAddresses,
  ...request
}: Given) {
  const whole: EdgeRequest = {
    method: 'GET',
    scheme: 'https',
    authority: 'shop.example',
    path: '/',
    ip: home,
    ja4: chromiumHello,
    ...request,
    headers: [
      ...(agent === null ? [] : [['User-Agent', agent] satisfies [string, string]]),
      ...headers,
    ],
  }
  const find = (url: string) => known.find(({ subject }) => subject === url)
  return decideRequest(whole, {
    network: hasNoAddresses ? noNetwork : network,
    findDirectory: find,
    maxLifetimeMs: 3_600_000,
    now,
    findTrusted: (domain) => (trusted.includes(domain) ? { name: 'Acme' } : null),
  })
}

test.each<[string, Given, verdict: `${RequestDecision['verdict']} ${AgentStatus}`, string[]]>([
  ['Googlebot at its address', ofGooglebot, 'bot verified', ['verified_agent', ...declaredBot]],
  [
    'a client that claims to be Googlebot',
    { agent: googlebot },
    'bot spoofed',
    ['spoofed_agent', ...declaredBot],
  ],
  ['an unverifiable bot', { agent: uptime, hasNoAddresses: true }, 'bot declared', declaredBot],
  ['curl', { agent: 'curl/8.14.1' }, 'bot none', httpClient],
  ['python-requests', { agent: 'python-requests/2.32.3' }, 'bot none', httpClient],
  [
    'headless Chrome by its brands',
    { headers: [['sec-ch-ua', '"HeadlessChrome";v="140"']] },
    'bot none',
    ['headless_user_agent'],
  ],
  ['Chrome at home', {}, 'inconclusive none', []],
  ['Chrome in a cloud', { ip: cloud }, 'inconclusive none', ['hosting_network']],
  ['Chrome with Go TLS', { ja4: goHello }, 'inconclusive none', ['browser_with_tool_handshake']],
  [
    'an HTTP library of mobile apps',
    { agent: 'okhttp/4.12.0' },
    'inconclusive none',
    ['app_library_user_agent'],
  ],
  ['no user agent', { agent: null }, 'inconclusive none', ['user_agent_missing']],
])('%s', (_, given, expected, reasons) => {
  const { verdict, agent, ...decision } = decide(given)
  expect([`${verdict} ${agent.status}`, decision.reasons]).toEqual([expected, reasons])
})

test.each<[string, Given, RequestDecision['unchecked']]>([
  ['a browser with its TLS fingerprint', {}, []],
  ['a browser without one', { ja4: null }, ['handshake']],
  ['a browser without the address database', { hasNoAddresses: true }, ['hosting_network']],
  [
    'a crawler without the address database',
    { agent: googlebot, hasNoAddresses: true },
    ['published_ranges', 'reverse_dns', 'hosting_network'],
  ],
  ['a crawler in its list', ofGooglebot, []],
  ['a crawler that is not in its list', { agent: googlebot }, ['reverse_dns']],
])('lists unchecked sources for %s', (_, given, unchecked) => {
  expect(decide(given).unchecked).toEqual(unchecked)
})

function signed({ authority = 'shop.example', domain = 'agent.example' } = {}) {
  const agent = `"https://${domain}"`
  const lines: [string, string][] = [
    ['"@authority"', authority],
    ['"signature-agent"', agent],
  ]
  const own = agentSignature({ key: agentKey, lines, created: now / 1000, nonce: 'once' })
  return Object.entries({ 'Signature-Agent': agent, ...own })
}

test('a signature with a key in memory identifies the domain, with replays unchecked', () => {
  const { verdict, agent, reasons, unchecked } = decide({ headers: signed(), known: [directory] })
  expect({ verdict, reasons, unchecked }).toEqual({
    verdict: 'bot',
    reasons: ['signature_agent_header'],
    unchecked: ['signature_replay'],
  })
  expect(agent).toMatchObject({
    status: 'signed',
    provider: 'agent.example',
    method: 'signature',
    evidence: { key_id: agentKey.keyId, fetched_at: directory.fetched_at },
  })
})

test('an agent with a trusted directory is verified, with the name the organization gave it', () => {
  const given = { headers: signed(), known: [directory] }
  expect(decide({ ...given, trusted: ['other.example', 'agent.example:8443'] }).agent.status).toBe(
    'signed',
  )
  expect(decide({ ...given, trusted: ['agent.example'] })).toMatchObject({
    reasons: ['verified_agent', 'signature_agent_header'],
    agent: { status: 'verified', provider: 'Acme', method: 'signature' },
  })
})

test('an agent in the catalogue is verified by its key', () => {
  const domain = 'chatgpt.com'
  const known = [{ ...directory, subject: directoryUrl.replace('agent.example', domain) }]
  const { verdict, agent } = decide({ headers: signed({ domain }), known })
  expect([verdict, agent]).toMatchObject(['bot', { status: 'verified', provider: 'openai' }])
})

test.each<[string, Given, string | null, RequestDecision['unchecked']]>([
  ['its directory is not in memory', { headers: signed() }, 'directory', ['signature_key']],
  [
    'the directory lacks the key',
    { headers: signed(), known: [{ ...directory, result: { keys: {} } }] },
    'key',
    ['signature_key'],
  ],
  [
    'it is for another site',
    { headers: signed({ authority: 'other.example' }), known: [directory] },
    'signature',
    [],
  ],
  [
    'it is for another port',
    { headers: signed(), known: [directory], scheme: 'http', authority: 'shop.example:8080' },
    'signature',
    [],
  ],
  ['the bytes are missing', { headers: signed().slice(0, 2) }, null, []],
])('an agent is only declared if %s', (_, given, reason, unchecked) => {
  const decision = decide(given)
  expect(decision).toMatchObject({
    verdict: 'bot',
    unchecked,
    agent: { status: 'declared', provider: 'agent.example', evidence: { reason } },
  })
})

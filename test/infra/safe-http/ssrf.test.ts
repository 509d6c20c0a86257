import diagnostics from 'node:diagnostics_channel'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import { describe, expect, it } from 'vitest'
import {
  type AddressRules,
  createAddressRules,
  webhookUrlProblem,
} from '../../../infra/safe-http/addresses.ts'
import type { RequestOutcome } from '../../../infra/safe-http/client.ts'
import { addressRecords, type DnsQuestion, type DnsReply } from '../../support/dns-server.ts'
import { eventually } from '../../support/eventually.ts'
import {
  afterwards,
  closeAfterTest,
  createTestClient,
  httpText,
  portOf,
  postTo,
  startDns,
  startRawReceiver,
} from './raw-receiver.ts'
import { specialRanges } from './special-ranges.ts'

/** Returns all notations of an IPv4 address in a URL, and the IPv6 addresses that embed it. */
function notationsOf(ip: string): string[] {
  const [a = 0, b = 0, c = 0, d = 0] = ip.split('.').map(Number)
  const number = ((a << 24) | (b << 16) | (c << 8) | d) >>> 0
  const hex = (value: number) => `0x${value.toString(16)}`
  const octal = (value: number) => `0${value.toString(8)}`
  const groups = `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`
  const inverted = `${(((a << 8) | b) ^ 0xffff).toString(16)}:${(((c << 8) | d) ^ 0xffff).toString(16)}`
  const wide = (text: string) =>
    text.replace(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit)))
  const percent = (text: string) =>
    text.replace(/./g, (character) => `%${character.charCodeAt(0).toString(16)}`)
  return [
    ip,
    `${ip}.`,
    String(number),
    hex(number),
    hex(number).toUpperCase(),
    octal(number),
    [a, b, c, d].map(hex).join('.'),
    [a, b, c, d].map(octal).join('.'),
    [octal(a), b, hex(c), d].join('.'),
    `${a}.${((b << 16) | (c << 8) | d) >>> 0}`,
    `${a}.${b}.${(c << 8) | d}`,
    `000${octal(a)}.${b}.${c}.${d}`,
    wide(ip),
    ip.replaceAll('.', '。'),
    ip.replaceAll('.', '｡'),
    percent(ip),
    percent(String(number)),
    `public.example@${ip}`,
    `[::ffff:${ip}]`,
    `[::ffff:${groups}]`,
    `[0:0:0:0:0:FFFF:${groups}]`,
    `[::${ip}]`,
    `[::ffff:0:${ip}]`,
    `[64:ff9b::${ip}]`,
    `[64:ff9b:1::${ip}]`,
    `[2002:${groups}::1]`,
    `[2001:0:4136:e378:8000:63bf:${inverted}]`,
    `[fe80::5efe:${ip}]`,
  ]
}

const specialAddresses = specialRanges
  .flatMap(([, first, last]) => [first, last])
  .filter((ip) => !ip.includes('%'))

const specialHosts = [
  ...specialAddresses.map((ip) => (ip.includes(':') ? `[${ip}]` : ip)),
  '[0000:0000:0000:0000:0000:0000:0000:0001]',
  '[fe80::1%25lo]',
  'localhost',
  'LOCALHOST',
  'localhost.',
  'a.localhost',
  'ｌocalhost',
  'loc%61lhost',
  '0',
  '127.1',
  '1.1.1.1.localhost',
]

/** Returns this machine's addresses as URL hosts. Omits link-local IPv6, which would need a zone. */
function ownHosts(): string[] {
  const all = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
  return all
    .filter(({ address }) => !address.startsWith('fe80'))
    .map(({ address, family }) => (family === 'IPv6' ? `[${address}]` : address))
}

/** DNS replies that must not cause a connection, by the first label of the name. */
const badReplies: Record<string, string[]> = {
  ...Object.fromEntries(specialAddresses.map((ip, index) => [`special-${index}`, [ip]])),
  'mixed-first': ['127.0.0.1', '8.8.8.8'],
  'mixed-last': ['8.8.8.8', '127.0.0.1'],
  'mixed-many': ['8.8.8.8', '8.8.4.4', '1.1.1.1', '9.9.9.9', '10.0.0.1'],
  'mixed-six': ['8.8.8.8', '::1'],
  'mixed-six-only': ['2001:4860:4860::8888', '::1'],
  'mixed-mapped': ['8.8.8.8', '::ffff:127.0.0.1'],
  'mixed-four': ['127.0.0.1', '2001:4860:4860::8888'],
}

async function startCanary(host?: string, port = 0) {
  const canary = { port: 0, connections: 0 }
  const server = createServer((socket) => {
    canary.connections++
    socket.on('error', () => {}).destroy()
  })
  closeAfterTest(server)
  await once(server.listen(port, host), 'listening')
  canary.port = portOf(server)
  return canary
}

/** Counts all sockets that this process starts to connect. */
function watchSockets() {
  const watch = { begun: 0 }
  const count = () => {
    watch.begun++
  }
  diagnostics.subscribe('net.client.socket', count)
  afterwards(() => diagnostics.unsubscribe('net.client.socket', count))
  return watch
}

function reasonOf(outcome: RequestOutcome): string {
  return outcome.kind === 'failure' ? outcome.reason : `response ${outcome.status}`
}

/** Replies to the names of `badReplies`, directly or through aliases. */
function replyToBadNames(question: DnsQuestion): DnsReply {
  const [label = ''] = question.name.split('.')
  const isAlias = label.startsWith('alias-')
  const addresses = badReplies[isAlias ? label.slice('alias-'.length) : label]
  if (!addresses) return 'NXDOMAIN'
  if (!isAlias) return addressRecords(question, addresses)
  return [
    { name: question.name, type: 'CNAME', data: 'middle.example' },
    { name: 'middle.example', type: 'CNAME', data: 'end.example' },
    ...addressRecords({ ...question, name: 'end.example' }, addresses),
  ]
}

describe('URLs of private networks', () => {
  const names = Object.keys(badReplies).flatMap((name) => [
    `${name}.example`,
    `alias-${name}.example`,
  ])
  const literalHosts = [
    ...['127.0.0.1', '169.254.169.254', '192.168.1.1', '0.0.0.0'].flatMap(notationsOf),
    ...specialHosts,
    ...ownHosts(),
  ]
  const hosts = [...literalHosts, ...names]

  it('are never connected to', async () => {
    const canary = await startCanary()
    const dns = await startDns(replyToBadNames)
    const strict = createAddressRules([])
    // Allowed networks permit more URLs, but none of these.
    const loose = createAddressRules(['10.99.0.0/16', 'fd99::/64'])
    const clients = [strict, loose].map((rules) =>
      createTestClient({ rules, dnsServers: [dns.address] }),
    )
    const sockets = watchSockets()
    const refused = { kind: 'failure', reason: 'address' }
    for (const host of hosts) {
      const posts = ['https', 'http'].map((scheme) =>
        postTo(`${scheme}://${host}:${canary.port}/hook`),
      )
      const outcomes = await Promise.all(
        clients.flatMap((client) => posts.map((post) => client.post(post))),
      )
      expect(outcomes, host).toMatchObject(Array(4).fill(refused))
    }
    expect([canary.connections, sockets.begun]).toEqual([0, 0])
    expect(dns.questions.length).toBeGreaterThanOrEqual(names.length)

    // Checks that the canary notices connections at every address of this machine.
    const own = ['127.0.0.1', '127.0.0.2', ...ownHosts()]
    for (const host of own) {
      await once(connect({ host: host.replace(/[[\]]/g, ''), port: canary.port }), 'close')
    }
    expect([canary.connections, sockets.begun]).toEqual([own.length, own.length])
  })

  it('are rejected for an endpoint if the URL shows the address', () => {
    const rules = [createAddressRules([]), createAddressRules(['10.99.0.0/16'])]
    for (const host of literalHosts) {
      const problems = rules.map((rule) => webhookUrlProblem(`https://${host}/hook`, rule))
      expect(problems, host).toEqual([expect.any(String), expect.any(String)])
    }
  })
})

/** Rules as if 127.0.0.1 were the only allowed address. */
const loopback: AddressRules = {
  hasAllowedNetworks: true,
  isAllowed: (ip) => ip === '127.0.0.1',
  isInAllowedNetwork: (ip) => ip === '127.0.0.1',
}

/** Starts a receiver at 127.0.0.1, and canaries at the same port of other addresses. */
async function startNeighbors(response: string | ((text: string, port: number) => string)) {
  const receiver = await startRawReceiver(({ socket, text }) =>
    socket.write(typeof response === 'string' ? response : response(text, receiver.port)),
  )
  const canaries = [await startCanary('127.0.0.2', receiver.port)]
  if (ownHosts().includes('[::1]')) canaries.push(await startCanary('::1', receiver.port))
  return {
    receiver,
    canaryConnections: () => canaries.reduce((sum, { connections }) => sum + connections, 0),
  }
}

const locations = (port: number) => [
  `http://127.0.0.2:${port}/`,
  `http://[::1]:${port}/`,
  `//127.0.0.2:${port}/`,
  `http://2130706434:${port}/`,
  `https://127.0.0.2:${port}/`,
  '/elsewhere',
]

it.each([201, 300, 301, 302, 303, 304, 305, 307, 308])(
  'does not follow redirects of status %i',
  async (status) => {
    const { receiver, canaryConnections } = await startNeighbors((text, port) => {
      const location = locations(port)[Number(/ \/(\d+) /.exec(text)?.[1])]
      const headers = [
        `location: ${location}`,
        `content-location: ${location}`,
        `refresh: 0; url=${location}`,
        `alt-svc: h2="127.0.0.2:${port}"`,
        `link: <${location}>; rel=canonical`,
      ]
      return `HTTP/1.1 ${status} X\r\n${headers.join('\r\n')}\r\ncontent-length: 0\r\n\r\n`
    })
    const client = createTestClient({ rules: loopback })
    for (const index of locations(receiver.port).keys()) {
      const outcome = await client.post(postTo(`http://127.0.0.1:${receiver.port}/${index}`))
      expect(outcome).toMatchObject({ kind: 'response', status })
    }
    expect(receiver.requests.length).toBe(locations(0).length)
    expect(canaryConnections()).toBe(0)
  },
)

it.each(['127.0.0.2', '::1'])('follows a name to new addresses until one is %s', async (bad) => {
  const { receiver, canaryConnections } = await startNeighbors(
    httpText(200, '', 'connection: close\r\n'),
  )
  const dns = await startDns((question) =>
    addressRecords(question, question.before < 3 ? ['127.0.0.1'] : [bad]),
  )
  const client = createTestClient({ rules: loopback, dnsServers: [dns.address] })
  const reasons: string[] = []
  for (let count = 0; count < 5; count++) {
    reasons.push(reasonOf(await client.post(postTo(`http://rebind.example:${receiver.port}/`))))
  }
  expect(reasons).toEqual(['response 200', 'response 200', 'response 200', 'address', 'address'])
  // A connection makes a single lookup, so a second reply can't replace the checked address.
  expect(dns.questions.filter((question) => question.startsWith('A ')).length).toBe(5)
  expect([receiver.connections, canaryConnections()]).toEqual([3, 0])
})

it('checks the peer address after connecting, before it sends a byte', async () => {
  const receiver = await startRawReceiver(({ socket }) => socket.write(httpText(200)))
  let checks = 0
  const rules: AddressRules = { ...loopback, isInAllowedNetwork: () => ++checks === 1 }
  const client = createTestClient({ rules })
  const outcome = await client.post(postTo(`http://127.0.0.1:${receiver.port}/`))
  expect(outcome).toMatchObject({ kind: 'failure', reason: 'address' })
  expect(checks).toBe(2)
  await eventually(() => expect([receiver.connections, receiver.sockets.size]).toEqual([1, 0]))
  expect(receiver.requests).toEqual([])
})

it('allows plain http only to allowed networks', async () => {
  const receiver = await startRawReceiver(({ socket }) => socket.write(httpText(200)))
  const rules = {
    hasAllowedNetworks: false,
    isAllowed: () => true,
    isInAllowedNetwork: () => false,
  }
  const client = createTestClient({ rules })
  const plain = await client.post(postTo(`http://127.0.0.1:${receiver.port}/`))
  expect(plain).toMatchObject({ kind: 'failure', reason: 'address' })
  expect(receiver.connections).toBe(0)
  // A TLS connection is allowed, although the receiver doesn't speak TLS.
  const https = postTo(`https://127.0.0.1:${receiver.port}/`, { timeoutMs: 300 })
  const secure = await client.post(https)
  expect(secure.kind).toBe('failure')
  expect(receiver.connections).toBe(1)
})

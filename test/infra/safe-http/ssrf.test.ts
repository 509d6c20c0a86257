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
import type { PostOutcome } from '../../../infra/safe-http/client.ts'
import { addressRecords, type DnsQuestion, type DnsReply } from '../../support/dns-server.ts'
import { eventually } from '../../support/eventually.ts'
import {
  afterwards,
  answerOf,
  createTestClient,
  portOf,
  postTo,
  startNames,
  startRawReceiver,
  track,
} from './raw-receiver.ts'
import { specialRanges } from './special-ranges.ts'

/** Every way in which a URL can say an IPv4 address, and the IPv6 addresses that carry it. */
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

/** All addresses by which this machine reaches itself; an IPv6 one with a scope cannot stand in a URL. */
function ownHosts(): string[] {
  const all = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
  return all
    .filter(({ address }) => !address.startsWith('fe80'))
    .map(({ address, family }) => (family === 'IPv6' ? `[${address}]` : address))
}

/** Answers of DNS that must lead nowhere, by the first label of the name. */
const badAnswers: Record<string, string[]> = {
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
  track(server)
  await once(server.listen(port, host), 'listening')
  canary.port = portOf(server)
  return canary
}

/** Counts the sockets that this process begins to connect, wherever they lead. */
function watchSockets() {
  const watch = { begun: 0 }
  const count = () => {
    watch.begun++
  }
  diagnostics.subscribe('net.client.socket', count)
  afterwards(() => diagnostics.unsubscribe('net.client.socket', count))
  return watch
}

function reasonOf(outcome: PostOutcome): string {
  return outcome.kind === 'failure' ? outcome.reason : `response ${outcome.status}`
}

/** Names of `badAnswers`, directly and at the end of aliases. */
function replyToBadNames(question: DnsQuestion): DnsReply {
  const [label = ''] = question.name.split('.')
  const isAlias = label.startsWith('alias-')
  const answers = badAnswers[isAlias ? label.slice('alias-'.length) : label]
  if (!answers) return 'NXDOMAIN'
  if (!isAlias) return addressRecords(question, answers)
  return [
    { name: question.name, type: 'CNAME', data: 'middle.example' },
    { name: 'middle.example', type: 'CNAME', data: 'end.example' },
    ...addressRecords({ ...question, name: 'end.example' }, answers),
  ]
}

describe('what leads into private networks', () => {
  const names = Object.keys(badAnswers).flatMap((name) => [
    `${name}.example`,
    `alias-${name}.example`,
  ])
  const written = [
    ...['127.0.0.1', '169.254.169.254', '192.168.1.1', '0.0.0.0'].flatMap(notationsOf),
    ...specialHosts,
    ...ownHosts(),
  ]
  const hosts = [...written, ...names]

  it('no URL of it is connected to', async () => {
    const canary = await startCanary()
    const dns = await startNames(replyToBadNames)
    const strict = createAddressRules([])
    // Exceptions make more URLs possible, but not more of these.
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

    // The canary would have noticed, at every address of this machine.
    const own = ['127.0.0.1', '127.0.0.2', ...ownHosts()]
    for (const host of own) {
      await once(connect({ host: host.replace(/[[\]]/g, ''), port: canary.port }), 'close')
    }
    expect([canary.connections, sockets.begun]).toEqual([own.length, own.length])
  })

  it('no URL that says so itself is accepted for an endpoint', () => {
    const rules = [createAddressRules([]), createAddressRules(['10.99.0.0/16'])]
    for (const host of written) {
      const problems = rules.map((rule) => webhookUrlProblem(`https://${host}/hook`, rule))
      expect(problems, host).toEqual([expect.any(String), expect.any(String)])
    }
  })
})

/** As if 127.0.0.1 were a public address, and the only one: what is at other addresses may not be reached. */
const onlyOne: AddressRules = {
  hasExceptions: true,
  isAllowed: (ip) => ip === '127.0.0.1',
  isException: (ip) => ip === '127.0.0.1',
}

/** A receiver at 127.0.0.1, and canaries at the same port of other addresses. */
async function startNeighbours(answer: string | ((text: string, port: number) => string)) {
  const receiver = await startRawReceiver(({ socket, text }) =>
    socket.write(typeof answer === 'string' ? answer : answer(text, receiver.port)),
  )
  const canaries = [await startCanary('127.0.0.2', receiver.port)]
  if (ownHosts().includes('[::1]')) canaries.push(await startCanary('::1', receiver.port))
  return {
    receiver,
    canaryConnections: () => canaries.reduce((sum, { connections }) => sum + connections, 0),
  }
}

const places = (port: number) => [
  `http://127.0.0.2:${port}/`,
  `http://[::1]:${port}/`,
  `//127.0.0.2:${port}/`,
  `http://2130706434:${port}/`,
  `https://127.0.0.2:${port}/`,
  '/elsewhere',
]

it.each([201, 300, 301, 302, 303, 304, 305, 307, 308])(
  'redirects of status %i are not followed',
  async (status) => {
    const { receiver, canaryConnections } = await startNeighbours((text, port) => {
      const place = places(port)[Number(/ \/(\d+) /.exec(text)?.[1])]
      const headers = [
        `location: ${place}`,
        `content-location: ${place}`,
        `refresh: 0; url=${place}`,
        `alt-svc: h2="127.0.0.2:${port}"`,
        `link: <${place}>; rel=canonical`,
      ]
      return `HTTP/1.1 ${status} X\r\n${headers.join('\r\n')}\r\ncontent-length: 0\r\n\r\n`
    })
    const client = createTestClient({ rules: onlyOne })
    for (const index of places(receiver.port).keys()) {
      const outcome = await client.post(postTo(`http://127.0.0.1:${receiver.port}/${index}`))
      expect(outcome).toMatchObject({ kind: 'response', status })
    }
    expect(receiver.requests.length).toBe(places(0).length)
    expect(canaryConnections()).toBe(0)
  },
)

it.each(['127.0.0.2', '::1'])(
  'a name that changes its address is followed until it becomes %s',
  async (bad) => {
    const { receiver, canaryConnections } = await startNeighbours(
      answerOf(200, '', 'connection: close\r\n'),
    )
    const dns = await startNames((question) =>
      addressRecords(question, question.before < 3 ? ['127.0.0.1'] : [bad]),
    )
    const client = createTestClient({ rules: onlyOne, dnsServers: [dns.address] })
    const reasons: string[] = []
    for (let count = 0; count < 5; count++) {
      reasons.push(reasonOf(await client.post(postTo(`http://rebind.example:${receiver.port}/`))))
    }
    expect(reasons).toEqual(['response 200', 'response 200', 'response 200', 'address', 'address'])
    // Asked once for each connection: there is no second answer to change.
    expect(dns.questions.filter((question) => question.startsWith('A ')).length).toBe(5)
    expect([receiver.connections, canaryConnections()]).toEqual([3, 0])
  },
)

it('the address at the other end is checked when the connection is there, before a byte is sent', async () => {
  const receiver = await startRawReceiver(({ socket }) => socket.write(answerOf(200)))
  let checks = 0
  const rules: AddressRules = { ...onlyOne, isException: () => ++checks === 1 }
  const client = createTestClient({ rules })
  const outcome = await client.post(postTo(`http://127.0.0.1:${receiver.port}/`))
  expect(outcome).toMatchObject({ kind: 'failure', reason: 'address' })
  expect(checks).toBe(2)
  await eventually(() => expect([receiver.connections, receiver.sockets.size]).toEqual([1, 0]))
  expect(receiver.requests).toEqual([])
})

it('the address at the other end has to be an exception for plain http', async () => {
  const receiver = await startRawReceiver(({ socket }) => socket.write(answerOf(200)))
  const rules = { hasExceptions: false, isAllowed: () => true, isException: () => false }
  const client = createTestClient({ rules })
  const plain = await client.post(postTo(`http://127.0.0.1:${receiver.port}/`))
  expect(plain).toMatchObject({ kind: 'failure', reason: 'address' })
  expect(receiver.connections).toBe(0)
  // By TLS it would be reached, if it spoke that.
  const https = postTo(`https://127.0.0.1:${receiver.port}/`, { timeoutMs: 300 })
  const secure = await client.post(https)
  expect(secure.kind).toBe('failure')
  expect(receiver.connections).toBe(1)
})

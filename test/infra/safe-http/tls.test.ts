import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { addressRecords } from '../../support/dns-server.ts'
import { eventually } from '../../support/eventually.ts'
import { createAuthority } from '../../support/tls-certificates.ts'
import {
  closeAfterTest,
  createTestClient,
  httpText,
  portOf,
  postTo,
  startDns,
  startRawReceiver,
} from './raw-receiver.ts'

const authority = createAuthority()
const host = 'receiver.example'
const good = authority.issue({ host })

async function startTls(tls: { key: string; cert: string; maxVersion?: 'TLSv1.2' }) {
  const receiver = await startRawReceiver(({ socket }) => socket.write(httpText(200, 'fine')), {
    tls,
  })
  const dns = await startDns((question) => addressRecords(question, ['127.0.0.1']))
  const client = createTestClient({ dnsServers: [dns.address], ca: authority.ca })
  const post = (name = host) => client.post(postTo(`https://${name}:${receiver.port}/hook`))
  return { receiver, dns, post }
}

describe('certificates', () => {
  it.each([['TLSv1.2' as const], [undefined]])(
    'a valid one is accepted, maximum version %s',
    async (maxVersion) => {
      const { receiver, post } = await startTls({ ...good, ...(maxVersion ? { maxVersion } : {}) })
      for (const name of [host, host.toUpperCase(), `${host}.`]) {
        expect(await post(name)).toMatchObject({ kind: 'response', status: 200 })
      }
      expect(receiver.requests.length).toBe(3)
    },
  )

  const dayMs = 24 * 60 * 60 * 1000
  /** Options of a certificate that is valid between two days, counted from today. */
  const validBetween = (from: number, until: number) => ({
    host,
    notBefore: new Date(Date.now() + from * dayMs),
    notAfter: new Date(Date.now() + until * dayMs),
  })
  const other = createAuthority('Other')
  it.each([
    ['has expired', authority.issue(validBetween(-2, -1)), 'expired'],
    ['is not valid yet', authority.issue(validBetween(1, 2)), 'NOT_YET_VALID'],
    ['is for another host', authority.issue({ host: 'other.example' }), 'another host'],
    ['is for a subdomain', authority.issue({ host: `a.${host}` }), 'another host'],
    ['is from an untrusted authority', other.issue({ host }), 'not trusted'],
    [
      'has the name of our authority but not its key',
      createAuthority().issue({ host }),
      'not trusted',
    ],
  ])('one that %s is rejected every time, with any version', async (_title, bad, word) => {
    for (const tls of [bad, { ...bad, maxVersion: 'TLSv1.2' as const }]) {
      const { receiver, post } = await startTls(tls)
      for (let count = 0; count < 3; count++) {
        const outcome = await post()
        expect(outcome).toMatchObject({ kind: 'failure', reason: 'tls' })
        expect(outcome.kind === 'failure' && outcome.message).toContain(word)
      }
      expect(receiver.requests).toEqual([])
      await eventually(() => expect(receiver.sockets.size).toBe(0))
    }
  })

  it('one from a private authority is rejected without the option ca', async () => {
    const { receiver, dns } = await startTls(good)
    const client = createTestClient({ dnsServers: [dns.address] })
    const outcome = await client.post(postTo(`https://${host}:${receiver.port}/`))
    expect(outcome).toMatchObject({ kind: 'failure', reason: 'tls' })
  })

  it('of an IP address in an allowed network must name the address', async () => {
    const byAddress = await startTls(authority.issue({ host: '127.0.0.1' }))
    expect(await byAddress.post('127.0.0.1')).toMatchObject({ status: 200 })
    expect(await byAddress.post('127.0.0.2')).toMatchObject({ kind: 'failure' })
    const byName = await startTls(good)
    expect(await byName.post('127.0.0.1')).toMatchObject({ kind: 'failure', reason: 'tls' })
  })
})

async function outcomeOf(serve: (socket: Socket) => void) {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    serve(socket)
  })
  closeAfterTest(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const client = createTestClient({ connectTimeoutMs: 500, timeoutMs: 10_000 })
  return await client.post(postTo(`https://127.0.0.1:${portOf(server)}/`))
}

it.each<[string, string, (socket: Socket) => void]>([
  ['tls', 'speaks plain HTTP', (socket) => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n')],
  ['tls', 'closes', (socket) => socket.once('data', () => socket.end())],
  ['tls', 'resets', (socket) => socket.once('data', () => socket.resetAndDestroy())],
  ['timeout', 'sends nothing', () => {}],
])('%s during the handshake: a receiver that %s', async (reason, _title, serve) => {
  const outcome = await outcomeOf(serve)
  expect(outcome).toMatchObject({ kind: 'failure', reason })
  // The message of the request timeout, which is longer than the connect timeout.
  expect(outcome).not.toMatchObject({ message: 'The receiver did not respond in time.' })
})

it('ignores environment variables for proxies and certificate checks', async () => {
  const proxy = await startRawReceiver(({ socket }) => socket.end(httpText(403)))
  const plain = await startRawReceiver(({ socket }) => socket.write(httpText(200, 'direct')))
  const bad = await startRawReceiver(({ socket }) => socket.write(httpText(200)), {
    tls: createAuthority('Other').issue({ host: '127.0.0.1' }),
  })
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY'].flatMap((name) => [
    name,
    name.toLowerCase(),
  ])
  const env = {
    ...process.env,
    ...Object.fromEntries(names.map((name) => [name, `http://127.0.0.1:${proxy.port}`])),
    NO_PROXY: '',
    no_proxy: '',
    NODE_USE_ENV_PROXY: '1',
    NODE_TLS_REJECT_UNAUTHORIZED: '0',
  }
  const script = fileURLToPath(new URL('post-and-print.ts', import.meta.url))
  const urls = [`http://127.0.0.1:${plain.port}/`, `https://127.0.0.1:${bad.port}/`]
  const { stdout } = await promisify(execFile)(process.execPath, [script, ...urls], { env })
  const { outcomes, fetched } = JSON.parse(stdout)
  expect(outcomes).toEqual(['200 direct', 'tls'])
  // Node's own fetch uses the proxy, which proves that the environment is set. Node 24 fails, 26 returns the 403.
  expect(['failed', '']).toContain(fetched)
  expect([proxy.requests.length, plain.requests.length, bad.requests.length]).toEqual([1, 1, 0])
})

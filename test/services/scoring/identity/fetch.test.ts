import { afterEach, describe, expect, it } from 'vitest'
import { createAddressRules } from '../../../../infra/safe-http/addresses.ts'
import { createFetcher, type FetchOptions } from '../../../../services/scoring/identity/fetch.ts'
import { createAgentKey } from '../../../support/agent-signature.ts'
import type { DnsReply } from '../../../support/dns-server.ts'
import { type Reply, startDirectory, startReverseDns } from './directory-server.ts'

const ends: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

const { jwk, keyId } = createAgentKey()
const good = JSON.stringify({
  keys: [{ kty: 'RSA', n: 'x', e: 'AQAB' }, jwk, { ...jwk, x: 'short' }],
})

async function fetchWith(reply: Reply | (() => Promise<Reply>), extra: Partial<FetchOptions> = {}) {
  const server = await startDirectory(() => (typeof reply === 'function' ? reply() : reply))
  ends.push(server.close)
  const { fetch, close } = createFetcher({ ...server.options, ...extra })
  ends.push(close)
  return { server, result: await fetch(server.directory) }
}

describe('a directory', () => {
  it('returns the keys by thumbprint, without keys of other types', async () => {
    const { server, result } = await fetchWith({ body: good })
    expect(result).toEqual({ keys: { [keyId]: { x: jwk.x, starts_at: null, ends_at: null } } })
    expect(server.requests).toEqual(['/.well-known/http-message-signatures-directory'])
  })

  it('returns at most a hundred keys', async () => {
    const keys = Array.from({ length: 300 }, () => createAgentKey().jwk)
    const { result } = await fetchWith({ body: JSON.stringify({ keys }) })
    expect('keys' in result && Object.keys(result.keys)).toHaveLength(100)
  })

  it.each<[string, Reply, string]>([
    ['with 10,000 keys', { body: JSON.stringify({ keys: Array(10_000).fill(jwk) }) }, 'size'],
    ['of 10 MB', { body: ' '.repeat(10 * 1024 * 1024) }, 'size'],
    ['that is not JSON', { body: '<html>' }, 'content'],
    ['without keys', { body: '{"keys":"none"}' }, 'content'],
    ['that does not exist', { status: 404 }, 'status 404'],
    [
      'that redirects to a private address',
      { status: 302, headers: { location: 'http://127.0.0.1:1/' } },
      'status 302',
    ],
  ])('%s is a failure', async (_, reply, failure) => {
    const { server, result } = await fetchWith(reply)
    expect(result).toEqual({ failure })
    expect(server.requests.length).toBe(1)
    expect(server.questions.every((question) => question.endsWith(' agent.example'))).toBe(true)
  })

  it('that never responds times out', async () => {
    const { result } = await fetchWith(() => new Promise(() => {}), { timeoutMs: 200 })
    expect(result).toEqual({ failure: 'timeout' })
  })

  it('that is down is a failure', async () => {
    const server = await startDirectory(() => ({ body: good }))
    const { fetch, close } = createFetcher(server.options)
    ends.push(close)
    await server.close()
    // The name server has stopped as well.
    expect(await fetch(server.directory)).toEqual({ failure: 'dns' })
  })

  it('at a private address is not requested', async () => {
    const { server, result } = await fetchWith({ body: good }, { rules: createAddressRules([]) })
    expect(result).toEqual({ failure: 'address' })
    expect(server.requests).toEqual([])
  })
})

describe('the host name of an address', () => {
  const ip = '192.0.2.1'

  async function hostOf(
    names: string[] | DnsReply,
    { addresses = {}, of = ip }: { addresses?: Record<string, string[]>; of?: string } = {},
  ) {
    const dns = await startReverseDns(names, addresses)
    ends.push(dns.close)
    const rules = createAddressRules([])
    // Short only if DNS never responds: on a busy machine a response takes a while.
    const timeoutMs = names === 'silent' ? 400 : 5000
    const { fetch, close } = createFetcher({ rules, dnsServers: [dns.address], timeoutMs })
    ends.push(close)
    return fetch(of)
  }

  it('counts if it resolves back to the address', async () => {
    const addresses = { 'Crawl-1.bot.example': [], 'crawl-1.bot.example': ['203.0.113.1', ip] }
    expect(await hostOf(['Crawl-1.bot.example'], { addresses })).toEqual({
      host: 'crawl-1.bot.example',
    })
  })

  it('may be the second name, and the address IPv6', async () => {
    const of = '2001:db8:4801:10:0:0:0:1'
    const addresses = { 'second.example': ['2001:db8:4801:10::1'] }
    expect(await hostOf(['first.example', 'second.example'], { addresses, of })).toEqual({
      host: 'second.example',
    })
  })

  it.each<[string, string[] | DnsReply, Record<string, string[]>]>([
    ['resolves elsewhere', ['crawl-1.bot.example'], { 'crawl-1.bot.example': ['203.0.113.1'] }],
    ['resolves to no address', ['crawl-1.bot.example'], {}],
    ['is missing', [], {}],
    ['does not exist', 'NXDOMAIN', {}],
  ])('is null if the name %s', async (_, names, addresses) => {
    expect(await hostOf(names, { addresses })).toEqual({ host: null })
  })

  it.each<[DnsReply, string]>([
    ['SERVFAIL', 'ESERVFAIL'],
    ['silent', 'E'],
  ])('is a failure, not null, on %s', async (reply, code) => {
    const result = await hostOf(reply)
    expect('failure' in result && result.failure.startsWith(code)).toBe(true)
  })
})

import { expect, test } from 'vitest'
import { lookUpTxt } from '../../../infra/safe-http/txt.ts'
import { type DnsReply, startDnsServer } from '../../support/dns-server.ts'

async function recordsOf(reply: (name: string) => DnsReply, name = '_tidegate.acme.example') {
  await using dns = Object.assign(await startDnsServer((question) => reply(question.name)), {
    async [Symbol.asyncDispose](this: { close(): Promise<void> }) {
      await this.close()
    },
  })
  return { records: await lookUpTxt(name, { dnsServers: [dns.address], timeoutMs: 1000 }), dns }
}

test('joins the parts of each record', async () => {
  const { records, dns } = await recordsOf((name) => [
    { name, type: 'TXT', ttl: 0, data: ['tidegate-', 'verification=abc'] },
    { name, type: 'TXT', ttl: 0, data: 'v=spf1 -all' },
  ])
  expect(records.toSorted()).toEqual(['tidegate-verification=abc', 'v=spf1 -all'])
  expect(new Set(dns.questions)).toEqual(new Set(['TXT _tidegate.acme.example']))
})

test.each(['NXDOMAIN', 'SERVFAIL', 'silent'] as const)('%s returns none', async (reply) => {
  expect((await recordsOf(() => reply)).records).toEqual([])
})

test('an invalid name returns none', async () => {
  expect((await recordsOf(() => [], `_tidegate.${'a'.repeat(300)}.example`)).records).toEqual([])
})

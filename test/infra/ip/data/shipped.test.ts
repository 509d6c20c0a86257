import { readFileSync, statSync } from 'node:fs'
import { expect, it } from 'vitest'
import { readHead } from '../../../../infra/ip/data/file.ts'
import { bundledFile, readAddresses } from '../../../../infra/ip/data/read.ts'
import { openNetwork } from '../../../../infra/ip/network.ts'

// Well-known addresses with their kind, country and network in the bundled file. `none` = in no list.
const cases: [string, string, string, string][] = [
  ['8.8.8.8', 'hosting', 'US', '15169'],
  ['3.5.140.2', 'hosting', 'KR', '16509'],
  ['2600:1f18::1', 'hosting', 'US', '14618'],
  ['20.42.73.29', 'hosting', 'US', '8075'],
  ['5.9.0.1', 'hosting', 'DE', '24940'],
  ['2a01:4f8::1', 'hosting', 'DE', '24940'],
  ['185.220.101.1', 'tor', 'DE', '60729'],
  ['172.225.0.1', 'relay', 'TR', '36183'],
  ['2606:54c0::1', 'relay', 'AD', '13335'],
  ['66.249.66.1', 'bot Googlebot', 'US', '15169'],
  ['2001:4860:4801:10::1', 'bot Googlebot', 'US', '15169'],
  ['20.171.206.1', 'bot GPTBot', 'US', '8075'],
  // Content delivery networks.
  ['1.1.1.1', 'none', 'AU', '13335'],
  ['151.101.1.1', 'none', 'CA', '54113'],
  // Home connections.
  ['84.130.0.1', 'none', 'DE', '3320'],
  ['81.2.69.142', 'none', 'GB', '20712'],
  ['126.1.1.1', 'none', 'JP', '17676'],
  ['2601:646::1', 'none', 'US', '7922'],
  // Mobile carriers.
  ['49.36.1.1', 'none', 'IN', '55836'],
  ['172.56.1.1', 'none', 'US', '21928'],
  ['2600:1000::1', 'none', 'US', '6167'],
  // Corporate gateways.
  ['165.225.1.1', 'none', 'US', '22616'],
  // Consumer VPNs.
  ['23.144.160.67', 'vpn', 'US', '32727'],
  ['146.70.51.210', 'vpn', 'US', '9009'],
]

const addresses = await readAddresses()
const network = await openNetwork({ addresses: () => addresses })

function kindOf(ip: string): string {
  const { anonymity } = network.lookup(ip, 0)
  const bot = network.botOperatorAt(ip)
  const flags = Object.entries(anonymity).flatMap(([name, is]) => (is === true ? [name] : []))
  return [...flags, ...(bot ? [`bot ${bot}`] : [])].join(' ') || 'none'
}

it.each(cases)('the bundled file has %s: %s, %s, AS%s', (ip, kind, country, asn) => {
  const { status, location, routing } = network.lookup(ip, 0)
  expect([kindOf(ip), location?.country_code, routing.asn, status]).toEqual([
    kind,
    country,
    asn,
    'ready',
  ])
  expect(routing.organization).toBeTruthy()
})

it('the bundled file names the operators of VPNs and relays', () => {
  const provider = (ip: string) => network.lookup(ip, 0).anonymity.provider
  expect(provider('23.144.160.67')).toBe('Mullvad')
  expect(provider('104.28.32.1')).toBe('Apple Private Relay')
  expect(provider('52.95.110.1')).toBeNull()
})

it('the bundled file is named as the source, except for private addresses', () => {
  const sources = ['location_database', 'routing_database', 'address_lists']
  expect(network.lookup('91.64.0.1', 7)).toMatchObject({
    status: 'ready',
    sources,
    evaluated_at: 7,
  })
  for (const ip of ['127.0.0.1', '10.0.0.1', '::1', 'fd00::1', '203.0.113.9', 'unix'])
    expect([network.lookup(ip, 7), network.botOperatorAt(ip)]).toMatchObject([
      { status: 'skipped', sources: [], location: null },
      null,
    ])
})

it('the bundled file has the ranges of well-known crawlers', () => {
  const operators = network.listedOperators()
  for (const name of ['Googlebot', 'Bingbot', 'GPTBot', 'ClaudeBot', 'Applebot', 'Mullvad'])
    expect(operators).toContain(name)
  expect(operators).not.toContain('Amazon AWS')
})

it('the bundled file has no data from lists without a license', async () => {
  const { labels } = await readAddresses()
  const unlicensed =
    /akamai|bunny|buyvm|cdn77|cogent|contabo|datacamp|glesys|gthost|melbicom|scalaxy|vercel/i
  expect(labels.names.filter((name) => unlicensed.test(name))).toEqual([])
  expect(labels.names.length).toBeGreaterThan(30)
})

it('the bundled file is below 10 MB, and its first line has sources, licenses and dates', () => {
  expect(statSync(bundledFile).size).toBeLessThan(10_000_000)
  const { sources } = readHead(readFileSync(bundledFile))
  expect(new Set(sources.map(({ subject }) => subject))).toEqual(
    new Set(['country', 'network', 'labels']),
  )
  for (const { licence, date } of sources)
    expect([licence, date]).toEqual([expect.any(String), date])
})

import { readFileSync, statSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { readHead } from '../../../../infra/ip/data/file.ts'
import { readAddresses, shippedFile } from '../../../../infra/ip/data/read.ts'
import { type NetworkSource, openNetwork } from '../../../../infra/ip/network.ts'

// Well-known addresses, with what the shipped file is to say of them: kind, country and network. `none` = no list has it.

const cases: [string, string, string, string][] = [
  ['8.8.8.8', 'hosting', 'US', '15169'],
  ['52.95.110.1', 'hosting', 'US', '16509'],
  ['3.5.140.2', 'hosting', 'KR', '16509'],
  ['18.130.0.1', 'hosting', 'GB', '16509'],
  ['2600:1f18::1', 'hosting', 'US', '14618'],
  ['34.82.1.5', 'hosting', 'US', '396982'],
  ['35.190.0.1', 'hosting', 'US', '396982'],
  ['20.42.73.29', 'hosting', 'US', '8075'],
  ['13.107.6.152', 'hosting', 'US', '8068'],
  ['165.227.0.1', 'hosting', 'US', '14061'],
  ['5.9.0.1', 'hosting', 'DE', '24940'],
  ['2a01:4f8::1', 'hosting', 'DE', '24940'],
  ['51.68.0.1', 'hosting', 'FR', '16276'],
  ['45.32.0.1', 'hosting', 'US', '20473'],
  ['140.82.121.4', 'hosting', 'DE', '36459'],
  ['129.146.0.1', 'hosting', 'US', '31898'],
  ['119.28.0.1', 'hosting', 'HK', '132203'],
  ['185.220.101.1', 'tor', 'DE', '60729'],
  ['171.25.193.20', 'tor', 'SE', '198093'],
  ['192.42.116.16', 'tor', 'NL', '215125'],
  ['172.225.0.1', 'relay', 'TR', '36183'],
  ['140.248.0.1', 'relay', 'US', '54113'],
  ['104.28.32.1', 'relay', 'BS', '13335'],
  ['146.75.128.1', 'relay', 'US', '54113'],
  ['2606:54c0::1', 'relay', 'AD', '13335'],
  ['66.249.66.1', 'bot Googlebot', 'US', '15169'],
  ['2001:4860:4801:10::1', 'bot Googlebot', 'US', '15169'],
  ['20.171.206.1', 'bot GPTBot', 'US', '8075'],
  ['69.171.250.1', 'bot Meta', 'US', '32934'],
  // Networks that serve pages.
  ['1.1.1.1', 'none', 'AU', '13335'],
  ['104.16.0.1', 'none', 'CA', '13335'],
  ['151.101.1.1', 'none', 'CA', '54113'],
  // Home lines.
  ['91.64.0.1', 'none', 'DE', '3209'],
  ['84.130.0.1', 'none', 'DE', '3320'],
  ['73.1.1.1', 'none', 'US', '7922'],
  ['81.2.69.142', 'none', 'GB', '20712'],
  ['86.1.1.1', 'none', 'GB', '5089'],
  ['90.1.1.1', 'none', 'FR', '3215'],
  ['126.1.1.1', 'none', 'JP', '17676'],
  ['203.45.1.1', 'none', 'AU', '1221'],
  ['2003:e1::1', 'none', 'DE', '3320'],
  ['2601:646::1', 'none', 'US', '7922'],
  // Carriers.
  ['49.36.1.1', 'none', 'IN', '55836'],
  ['106.192.1.1', 'none', 'IN', '45609'],
  ['172.56.1.1', 'none', 'US', '21928'],
  ['107.77.1.1', 'none', 'US', '7018'],
  ['92.40.1.1', 'none', 'GB', '206067'],
  ['2600:1000::1', 'none', 'US', '6167'],
  ['2a01:598::1', 'none', 'DE', '3320'],
  // Gateways of companies.
  ['165.225.1.1', 'none', 'US', '22616'],
  ['163.116.128.1', 'none', 'US', '55256'],
  ['146.112.1.1', 'none', 'JP', '36692'],
  // VPNs of people.
  ['23.144.160.67', 'vpn', 'US', '32727'],
  ['146.70.51.210', 'vpn', 'US', '9009'],
]

let network: NetworkSource
beforeAll(async () => {
  const addresses = await readAddresses()
  network = await openNetwork({ addresses: () => addresses })
})

function kindOf(ip: string): string {
  const { anonymity } = network.lookup(ip, 0)
  const bot = network.botOperatorAt(ip)
  const flags = Object.entries(anonymity).flatMap(([name, is]) => (is === true ? [name] : []))
  return [...flags, ...(bot ? [`bot ${bot}`] : [])].join(' ') || 'none'
}

describe('the file of addresses that comes along', () => {
  it.each(cases)('knows %s: %s, %s, AS%s', (ip, kind, country, asn) => {
    const { status, location, routing } = network.lookup(ip, 0)
    expect([kindOf(ip), location?.country_code, routing.asn, status]).toEqual([
      kind,
      country,
      asn,
      'ready',
    ])
    expect(routing.organization).toBeTruthy()
  })

  it('names the operators of VPNs and relays', () => {
    const provider = (ip: string) => network.lookup(ip, 0).anonymity.provider
    expect(provider('23.144.160.67')).toBe('Mullvad')
    expect(provider('104.28.32.1')).toBe('Apple Private Relay')
    expect(provider('52.95.110.1')).toBeNull()
  })

  it('says what was consulted; private addresses stay unknown', () => {
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

  it('has the ranges of well-known crawlers', () => {
    const operators = network.listedOperators()
    for (const name of ['Googlebot', 'Bingbot', 'GPTBot', 'ClaudeBot', 'Applebot', 'Mullvad'])
      expect(operators).toContain(name)
    expect(operators).not.toContain('Amazon AWS')
  })

  it('has nothing of lists without a licence', async () => {
    const { labels } = await readAddresses()
    const withoutLicence =
      /akamai|bunny|buyvm|cdn77|cogent|contabo|datacamp|glesys|gthost|melbicom|scalaxy|vercel/i
    expect(labels.names.filter((name) => withoutLicence.test(name))).toEqual([])
    expect(labels.names.length).toBeGreaterThan(30)
  })

  it('fits, and its first line tells sources, licences and dates', () => {
    expect(statSync(shippedFile).size).toBeLessThan(10_000_000)
    const { sources } = readHead(readFileSync(shippedFile))
    expect(new Set(sources.map(({ subject }) => subject))).toEqual(
      new Set(['country', 'network', 'labels']),
    )
    for (const { licence, date } of sources)
      expect([licence, date]).toEqual([expect.any(String), date])
  })
})

import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { readAddresses } from '../../../infra/ip/data/read.ts'
import { noNetwork, openNetwork } from '../../../infra/ip/network.ts'
import { type MmdbRecords, writeMmdb } from '../../support/mmdb.ts'

describe('network', () => {
  it.each([
    ['203.0.113.9', 'ipv4'],
    ['2001:db8::1', 'ipv6'],
    ['', null],
    ['unix', null],
  ])('of %j is skipped without a database', (ip, version) => {
    const network = noNetwork.lookup(ip, 0)
    const about = { ip_address: ip || null, ip_version: version }
    const routing = { asn: null, organization: null }
    expect(network).toMatchObject({ ...about, status: 'skipped', location: null, routing })
    expect(Object.values(network.anonymity).some((value) => value === true)).toBe(false)
  })

  it('rejects a database that cannot be read', async () => {
    await expect(openNetwork({ cityPath: '/nonexistent.mmdb' })).rejects.toThrow()
  })
})

const folder = await mkdtemp(path.join(tmpdir(), 'tidegate-mmdb-'))
const cityPath = path.join(folder, 'city.mmdb')
const asnPath = path.join(folder, 'asn.mmdb')
await writeMmdb(cityPath, 'GeoLite2-City', {
  '8.8.8.0/24': {
    city: { names: { en: 'Lisbon' } },
    subdivisions: [{ names: { en: 'Lisboa' } }],
    country: { iso_code: 'PT', names: { en: 'Portugal' } },
    location: {
      latitude: 38.7,
      longitude: -9.1,
      time_zone: 'Europe/Lisbon',
      accuracy_radius: 20,
    },
    postal: { code: '1100' },
    traits: { is_hosting_provider: true },
  },
  '9.9.9.9/32': { country: { iso_code: 'CH', names: { en: 'Switzerland' } } },
})
const anonymousPath = path.join(folder, 'anonymous.mmdb')
await writeMmdb(anonymousPath, 'GeoIP2-Anonymous-IP', {
  '8.8.4.0/24': { is_anonymous: true, is_hosting_provider: true },
  '1.1.1.0/24': { is_anonymous: true, is_anonymous_vpn: true, is_hosting_provider: true },
  '1.0.0.0/24': { is_anonymous: true, is_tor_exit_node: true },
  '9.9.9.0/24': { is_anonymous: true, is_residential_proxy: true, is_public_proxy: true },
})
await writeMmdb(asnPath, 'GeoLite2-ASN', {
  '8.8.0.0/16': {
    autonomous_system_number: 64512,
    autonomous_system_organization: 'Example Networks',
  },
})
afterAll(() => rm(folder, { recursive: true, force: true }))

describe('network with databases', () => {
  it('returns their data', async () => {
    const network = (await openNetwork({ cityPath, asnPath })).lookup('8.8.8.8', 1234)
    expect(network).toMatchObject({
      status: 'skipped',
      evaluated_at: 1234,
      location: { city: 'Lisbon', region: 'Lisboa', country_code: 'PT', accuracy_radius_km: 20 },
      routing: { asn: '64512', organization: 'Example Networks' },
      anonymity: { hosting: true, vpn: false, tor: false },
    })
  })

  it.each([
    ['8.8.4.4', ['hosting'], 'This IP belongs to a hosting provider.'],
    ['1.1.1.1', ['vpn', 'hosting'], 'This IP appears associated with VPN traffic.'],
    ['1.0.0.1', ['tor'], 'This IP is a Tor exit node.'],
    [
      '9.9.9.9',
      ['residential_proxy', 'proxy'],
      'This IP appears associated with a residential proxy.',
    ],
    ['9.9.8.8', [], null],
  ])('has flags with only an anonymous-IP database, %s: %j', async (ip, flags, summary) => {
    const source = await openNetwork({ anonymousPath })
    const network = source.lookup(ip, 0)
    expect(network).toMatchObject({ status: 'ready', summary, location: null })
    expect(network.evidence.risk_signals).toEqual(flags)
    const trueFlags = Object.entries(network.anonymity).flatMap(([name, is]) =>
      is === true ? [name] : [],
    )
    expect(trueFlags.sort()).toEqual([...flags].sort())
  })

  it.each([
    ['with the flags', '8.8.8.8', 'This IP belongs to a hosting provider.'],
    ['with the place', '9.9.9.9', 'This IP is located in Switzerland.'],
    ['with the operator', '8.8.4.4', 'This IP belongs to Example Networks.'],
    ['of null', '1.2.3.4', null],
  ])('has a summary %s', async (_, ip, summary) => {
    const source = await openNetwork({ cityPath, asnPath })
    expect(source.lookup(ip, 0)).toMatchObject({ status: 'skipped', summary })
  })

  it.each([
    ['1.0.0.1', ['location_database', 'routing_database'], 'skipped', false],
    ['1.0.0.1', ['location_database', 'routing_database', 'anonymity_database'], 'ready', true],
    ['1.2.3.4', ['location_database', 'routing_database', 'anonymity_database'], 'ready', false],
    ['10.0.0.1', [], 'skipped', false],
  ] as const)('of %s with %j is %s', async (ip, sources, status, tor) => {
    const paths = { cityPath, asnPath, ...(status === 'ready' && { anonymousPath }) }
    const network = (await openNetwork(paths)).lookup(ip, 7)
    expect(network).toMatchObject({
      sources,
      status,
      evaluated_at: sources.length > 0 ? 7 : null,
    })
    expect(network.anonymity.tor).toBe(tor)
  })

  it('prefers databases to the IP data file, which covers the rest', async () => {
    const addresses = await readAddresses()
    const lookup = async (paths: object) =>
      (await openNetwork({ ...paths, addresses: () => addresses })).lookup('8.8.8.8', 0)
    const [location, routing] = [{ country_code: 'US' }, { asn: '15169' }]
    const anonymity = { hosting: true }
    expect(await lookup({})).toMatchObject({ location, routing, anonymity })
    const portugal = { city: 'Lisbon', country_code: 'PT' }
    expect(await lookup({ cityPath })).toMatchObject({ location: portugal, routing, anonymity })
    expect(await lookup({ asnPath })).toMatchObject({ location, routing: { asn: '64512' } })
    // The database lacks the address, so the flag is false, whatever the file says.
    expect(await lookup({ anonymousPath })).toMatchObject({
      anonymity: { hosting: false },
      sources: ['location_database', 'routing_database', 'anonymity_database', 'address_lists'],
    })
  })

  it('uses the IP data file for IPv6 if databases have only IPv4, and for relays', async () => {
    const addresses = await readAddresses()
    const paths = { cityPath, asnPath, anonymousPath }
    const network = await openNetwork({ ...paths, addresses: () => addresses })
    const fromFile = { location: { country_code: 'US' }, anonymity: { hosting: true } }
    expect(network.lookup('2600:1f18::1', 0)).toMatchObject(fromFile)
    expect(network.lookup('104.28.32.1', 0).anonymity).toMatchObject({ relay: true, vpn: false })
  })

  it('names the unset database settings', async () => {
    expect(noNetwork.missing).toEqual(['CITY_MMDB', 'ASN_MMDB', 'ANONYMOUS_MMDB'])
    expect((await openNetwork({ asnPath })).missing).toEqual(['CITY_MMDB', 'ANONYMOUS_MMDB'])
    expect((await openNetwork({ cityPath, asnPath, anonymousPath })).missing).toEqual([])
  })

  it('reads an IPv4-mapped IPv6 address as IPv4', async () => {
    const source = await openNetwork({ cityPath, asnPath })
    expect(source.lookup('::ffff:8.8.8.8', 7)).toEqual(source.lookup('8.8.8.8', 7))
    expect(source.lookup('::ffff:10.0.0.1', 7).ip_version).toBe('ipv4')
  })

  it('returns null for missing data', async () => {
    const network = (await openNetwork({ cityPath, asnPath })).lookup('9.9.9.9', 0)
    expect(network).toMatchObject({
      location: { country_code: 'CH', city: null, latitude: null, postal_code: null },
      routing: { asn: null, organization: null },
      anonymity: { hosting: false },
    })
  })
})

describe('databases in other formats', () => {
  async function open(records: MmdbRecords) {
    const cityPath = path.join(folder, `${randomUUID()}.mmdb`)
    await writeMmdb(cityPath, 'country', records)
    return openNetwork({ cityPath })
  }

  it.each(['XX', 'ZZ', 'pt', 'A1', 'PRT', '', 7])(
    '%j is not a country code',
    async (country_code) => {
      const source = await open({ '8.8.8.0/24': { country_code, city: 'Lisbon' } })
      expect(source.lookup('8.8.8.8', 0)).toMatchObject({
        location: { country: null },
        summary: expect.stringContaining('Lisbon'),
      })
    },
  )

  it('reads flat city records', async () => {
    const source = await open({
      '8.8.8.0/24': {
        city: 'Lisbon',
        state1: 'Lisboa',
        country_code: 'PT',
        latitude: 38.7,
        postcode: '1100',
        timezone: 'Europe/Lisbon',
      },
    })
    expect(source.lookup('8.8.8.8', 0).location).toMatchObject({
      city: 'Lisbon',
      region: 'Lisboa',
      country: 'Portugal',
      latitude: 38.7,
      longitude: null,
      timezone: 'Europe/Lisbon',
      postal_code: '1100',
      accuracy_radius_km: null,
    })
  })

  it('ignores members of unexpected types', async () => {
    const source = await open({
      '8.8.8.0/24': { country: 'US', city: 7, location: [1], postal: true },
    })
    const { sources, location } = source.lookup('8.8.8.8', 0)
    expect(sources).toEqual(['location_database'])
    expect(new Set(Object.values(location ?? {}))).toEqual(new Set([null]))
  })

  it('reads IPv4 and IPv6 networks from one file', async () => {
    const source = await open({
      '8.8.8.0/24': { country_code: 'US' },
      '2a00::/16': { country_code: 'DE' },
    })
    expect(source.lookup('8.8.8.8', 0).location?.country_code).toBe('US')
    expect(source.lookup('2a00::1', 0).location?.country_code).toBe('DE')
    expect(source.lookup('2a01::1', 0).location).toBeNull()
  })

  it('finds no IPv6 address in a file of IPv4 networks', async () => {
    // 2001:4860:: begins with the bits of 32.1.72.96.
    const source = await open({ '32.1.72.96/32': { country_code: 'US' } })
    expect(source.lookup('32.1.72.96', 0).location?.country_code).toBe('US')
    expect(source.lookup('2001:4860::1', 0)).toMatchObject({ sources: [], location: null })
  })
})

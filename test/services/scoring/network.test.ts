import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { noNetwork, openNetwork } from '../../../services/scoring/network.ts'
import { writeMmdb } from '../../support/mmdb.ts'

describe('network', () => {
  it.each([
    ['203.0.113.9', 'ipv4'],
    ['2001:db8::1', 'ipv6'],
    ['', null],
    ['unix', null],
  ])('of %j without a database is skipped and invents nothing', (ip, version) => {
    const network = noNetwork.lookup(ip, 0)
    expect(network).toMatchObject({
      ip_address: ip || null,
      ip_version: version,
      status: 'skipped',
      location: null,
    })
    expect(network.routing).toEqual({ asn: null, organization: null })
    expect(Object.values(network.anonymity).some((value) => value === true)).toBe(false)
  })

  it('refuses a database that cannot be read', async () => {
    await expect(openNetwork({ cityPath: '/nonexistent.mmdb' })).rejects.toThrow()
  })

  it('without paths is the source without a database', async () => {
    expect(await openNetwork({})).toBe(noNetwork)
  })
})

describe('network with databases', () => {
  let folder = ''
  let cityPath = ''
  let asnPath = ''

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'tidegate-mmdb-'))
    cityPath = path.join(folder, 'city.mmdb')
    asnPath = path.join(folder, 'asn.mmdb')
    await writeMmdb(cityPath, 'GeoLite2-City', {
      '8.8.8.0/24': {
        city: { names: { en: 'Lisbon' } },
        subdivisions: [{ names: { en: 'Lisboa' } }],
        country: { iso_code: 'PT', names: { en: 'Portugal' } },
        location: { latitude: 38.7, longitude: -9.1, time_zone: 'Europe/Lisbon', accuracy_radius: 20 },
        postal: { code: '1100' },
        traits: { is_hosting_provider: true },
      },
      '9.9.9.9/32': { country: { iso_code: 'CH', names: { en: 'Switzerland' } } },
    })
    await writeMmdb(asnPath, 'GeoLite2-ASN', {
      '8.8.0.0/16': { autonomous_system_number: 64512, autonomous_system_organization: 'Example Networks' },
    })
  })

  afterAll(() => rm(folder, { recursive: true, force: true }))

  it('says what they say', async () => {
    const network = (await openNetwork({ cityPath, asnPath })).lookup('8.8.8.8', 1234)
    expect(network).toMatchObject({
      status: 'ready',
      evaluated_at: 1234,
      location: {
        city: 'Lisbon',
        region: 'Lisboa',
        country: 'Portugal',
        country_code: 'PT',
        latitude: 38.7,
        longitude: -9.1,
        timezone: 'Europe/Lisbon',
        postal_code: '1100',
        accuracy_radius_km: 20,
      },
      routing: { asn: '64512', organization: 'Example Networks' },
      anonymity: { hosting: true, vpn: false, tor: false },
    })
  })

  it('leaves null what they do not say', async () => {
    const network = (await openNetwork({ cityPath, asnPath })).lookup('9.9.9.9', 0)
    expect(network.location).toMatchObject({
      country_code: 'CH',
      city: null,
      latitude: null,
      postal_code: null,
    })
    expect(network.routing).toEqual({ asn: null, organization: null })
    expect(network.anonymity.hosting).toBe(false)
  })

  it('does not ask them about addresses that are not public', async () => {
    const source = await openNetwork({ cityPath, asnPath })
    expect(source.lookup('10.0.0.1', 0)).toMatchObject({ status: 'skipped', location: null })
    expect(source.lookup('2001:4860:4860::8888', 0).ip_version).toBe('ipv6')
  })
})

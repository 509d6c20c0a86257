import { describe, expect, it } from 'vitest'
import { noNetwork, openNetwork } from '../../../services/scoring/network.ts'

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

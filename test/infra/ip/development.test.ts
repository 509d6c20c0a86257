import { expect } from 'vitest'
import { openNetwork } from '../../../infra/ip/network.ts'
import { developmentDatabases } from '../../../infra/local/development.ts'
import { needs } from '../../support/needs.ts'

const { it } = needs('city-database')

const databases = developmentDatabases()

// The package is optional: an installation may go without it.
it('the development database knows countries, and nothing of networks', async () => {
  const network = await openNetwork(databases)
  for (const ip of ['8.8.8.8', '2001:4860:4860::8888']) {
    const { status, sources, location, routing } = network.lookup(ip, 0)
    expect([status, sources]).toEqual(['skipped', ['location_database']])
    expect(location).toMatchObject({ country_code: 'US', city: null })
    expect(routing.asn).toBeNull()
  }
})

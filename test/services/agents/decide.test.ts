import { describe, expect, it } from 'vitest'
import { findOperator, type OperatorCategory } from '../../../infra/ip/operators.ts'
import type { Network } from '../../../schemas/events.ts'
import {
  type AddressFacts,
  addressFactsOf,
  decideRotation,
  isAssignedCountryCode,
  isObservedCountryCode,
  knowsAllAddressesOf,
  type RotationReason,
} from '../../../services/agents/decide.ts'
import { nowhere } from '../../projections/world-events.ts'
import { sessionScored } from '../../support/session-scored.ts'

const noFlags = sessionScored().network.anonymity

interface Given {
  provider?: string
  desired?: string
  country?: string
  asn?: string
  listed?: boolean
  says?: Partial<Network['anonymity']>
  /** Tag of the crawler that publishes the address. */
  bot?: string | null
  /** Crawlers, VPNs and relays whose lists are available. */
  lists?: string[]
}

function decide({
  provider = 'BYTEFUL',
  desired = 'DE',
  country = 'DE',
  asn = '64512',
  listed = false,
  says,
  bot = null,
  lists = [],
}: Given) {
  const operator = findOperator(provider)
  if (!operator) throw new Error(`no operator ${provider}`)
  const anonymity = { ...noFlags, ...says }
  const known = { countryCode: country, asn, anonymity, provider: anonymity.provider ?? bot }
  const facts: AddressFacts = { ...known, listed, evaluatedAt: 1_800_000_000_000 }
  const asked = { ip: '8.8.8.8', operator, desiredCountryCode: desired }
  return decideRotation(
    { ...asked, areAllAddressesKnown: knowsAllAddressesOf(operator, new Set(lists)) },
    facts,
  )
}

const openAiLists = ['GPTBot', 'ChatGPT-User', 'OAI-SearchBot']

describe('decideRotation', () => {
  it('keeps an address without a reason to rotate', () => {
    expect(decide({ provider: 'BYTEFUL_ISP' })).toEqual({
      ip: '8.8.8.8',
      proxy_provider_brand: 'BYTEFUL',
      proxy_provider_category: 'residential_proxy',
      desired_country_code: 'DE',
      observed_country_code: 'DE',
      decision: 'keep',
      reasons: [],
      provider_checked: false,
      evaluated_at: '2027-01-15T08:00:00.000Z',
    })
  })

  const apple = '36183'
  const zscaler = '22616'
  const mismatch: RotationReason[] = ['provider_mismatch']
  const icloud = { provider: 'ICLOUD' }
  const nordVpn = { provider: 'NORDVPN' }
  const openAi = { provider: 'OPENAI', asn: '15169' }
  const named = (provider: string) => ({ says: { provider } })
  it.each<[string, Given, RotationReason[]]>([
    ['an address in another country', { country: 'FR' }, ['country_mismatch']],
    ['a network of another operator', { asn: apple }, mismatch],
    ['a network of the operator', { ...icloud, asn: apple }, []],
    ['an alias of the operator', { provider: 'APPLE_PRIVATE_RELAY', asn: apple }, []],
    ['a network of several operators, including this one', { ...icloud, asn: '714' }, []],
    ['a network that is not in the catalogue', { provider: 'ZSCALER', asn: '64512' }, []],
    ['an address of another named provider', { ...nordVpn, ...named('Mullvad') }, mismatch],
    ['an address of the named operator', { ...nordVpn, ...named('NordVPN') }, []],
    ['a former name of the operator', { provider: 'DECODO', ...named('Smartproxy') }, []],
    ['an address of an unknown named provider', { ...nordVpn, ...named('Example VPN') }, []],
    [
      'the name of the operator on a network of another',
      { ...nordVpn, asn: zscaler, ...named('nordvpn') },
      [],
    ],
    ['an unknown name on another network', { ...nordVpn, asn: zscaler, ...named('?') }, mismatch],
    ['a crawler of another operator', { provider: 'OPENAI', bot: 'Googlebot' }, mismatch],
    ['a crawler of the operator', { provider: 'OPENAI', bot: 'GPTBot' }, []],
    [
      'an address outside all ranges of an operator that publishes them all',
      { ...openAi, lists: openAiLists },
      mismatch,
    ],
    ['an address outside the known ranges of an operator', { ...openAi, lists: ['GPTBot'] }, []],
    ['a published address', { provider: 'OPENAI', bot: 'ChatGPT-User', lists: openAiLists }, []],
    [
      'an address outside the ranges, but in a network of the operator',
      { ...icloud, asn: apple, lists: ['Apple Private Relay'] },
      [],
    ],
    ['a hosting address of a residential proxy', { says: { hosting: true } }, ['hosting']],
    ['a hosting address of a proxy network', { provider: 'WEBSHARE', says: { hosting: true } }, []],
    ['a hosting address of a VPN', { ...nordVpn, says: { hosting: true } }, []],
    ['a VPN address of a VPN', { ...nordVpn, says: { vpn: true } }, []],
    ['a VPN address of a residential proxy', { says: { vpn: true } }, []],
    ['an address on a reputation list', { listed: true }, ['listed']],
    [
      'an address with every reason',
      { country: 'FR', asn: apple, says: { tor: true, hosting: true } },
      ['country_mismatch', 'provider_mismatch', 'listed', 'hosting'],
    ],
  ])('returns the reasons for %s', (_, given, reasons) => {
    expect(decide(given)).toMatchObject({
      reasons,
      decision: reasons.length > 0 ? 'rotate' : 'keep',
    })
  })

  it.each<[string, Given, boolean]>([
    ['an operator that publishes nothing', {}, false],
    ['a VPN whose networks no list has', { ...nordVpn, lists: ['Mullvad'] }, false],
    ['a VPN that publishes some addresses', { provider: 'MULLVAD', lists: ['Mullvad'] }, false],
    ['a crawler some of whose lists are missing', { provider: 'OPENAI', lists: ['GPTBot'] }, false],
    ['a crawler with all its lists', { provider: 'OPENAI', lists: openAiLists }, true],
    ['an operator whose network it is', { provider: 'ZSCALER', asn: zscaler }, true],
    ['an operator with other networks', { provider: 'ZSCALER' }, false],
    ['an operator named by a database', { ...nordVpn, ...named('NordVPN') }, true],
    ['an operator other than the named one', { ...nordVpn, ...named('Mullvad') }, true],
  ])('reports whether the provider was checked for %s', (_, given, checked) => {
    expect(decide(given).provider_checked).toBe(checked)
  })

  type Listing = 'proxy' | 'residential_proxy' | 'tor'
  it.each<[OperatorCategory, string, Listing[]]>([
    ['residential_proxy', 'BYTEFUL', ['proxy', 'tor']],
    ['proxy_network', 'WEBSHARE', ['tor']],
    ['consumer_vpn', 'NORDVPN', ['proxy', 'residential_proxy', 'tor']],
    ['enterprise_egress', 'ZSCALER', ['proxy', 'residential_proxy', 'tor']],
    ['crawler_agent', 'OPENAI', ['proxy', 'residential_proxy', 'tor']],
  ])('for a %s (%s), rotates if listed as %j', (category, provider, reasons) => {
    expect(findOperator(provider)?.category).toBe(category)
    const kinds: Listing[] = ['proxy', 'residential_proxy', 'tor']
    const listed = kinds.filter((kind) =>
      decide({ provider, says: { [kind]: true } }).reasons.includes('listed'),
    )
    expect(listed).toEqual(reasons)
  })
})

describe('addressFactsOf', () => {
  const network: Network = {
    ...sessionScored().network,
    routing: { asn: '64512', organization: null },
    evaluated_at: 5,
  }
  const located = (country_code: string | null): Network => ({
    ...network,
    location: { ...nowhere, country_code },
  })

  it('returns country, network and flags', () => {
    const flags = { anonymity: noFlags, provider: null, listed: false }
    const facts = { countryCode: 'PT', asn: '64512', ...flags, evaluatedAt: 5 }
    expect(addressFactsOf(located('PT'), null)).toEqual(facts)
    const named = { ...located('PT'), anonymity: { ...noFlags, provider: 'Mullvad' } }
    expect(addressFactsOf(named, 'GPTBot')).toMatchObject({ provider: 'Mullvad' })
    expect(addressFactsOf(located('PT'), 'GPTBot')).toMatchObject({ provider: 'GPTBot' })
    expect(addressFactsOf(located('XK'), null)).toMatchObject({ countryCode: 'XK' })
  })

  it.each<[string, Network]>([
    ['no place', network],
    ['no country', located(null)],
    ['a continent', located('EU')],
    ['a placeholder', located('XX')],
    ['lower case', located('pt')],
    ['no network', { ...located('PT'), routing: { asn: null, organization: 'Example' } }],
  ])('returns undefined with %s', (_, incomplete) => {
    expect(addressFactsOf(incomplete, null)).toBeUndefined()
  })
})

const letters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ']
const pairs = letters.flatMap((first) => letters.map((second) => first + second))

it('ISO 3166-1 assigns 249 codes', () => {
  expect(pairs.filter(isAssignedCountryCode)).toHaveLength(249)
  expect(['DE', 'GB', 'US', 'SS'].every(isAssignedCountryCode)).toBe(true)
  expect(['XX', 'XK', 'UK', 'EU', 'AN', 'ZZ', 'de', 'DEU', ''].some(isAssignedCountryCode)).toBe(
    false,
  )
})

it('IP databases also use XK', () => {
  expect(pairs.filter(isObservedCountryCode)).toHaveLength(250)
  expect(isObservedCountryCode('XK')).toBe(true)
  expect(isObservedCountryCode('XX')).toBe(false)
})

import { describe, expect, it } from 'vitest'
import { findOperator, type OperatorCategory } from '../../../infra/ip/operators.ts'
import type { Network } from '../../../schemas/events.ts'
import {
  type AddressFacts,
  decideRotation,
  factsOf,
  hasAllAddresses,
  isAssignedCountryCode,
  isObservedCountryCode,
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
  /** The crawler whose ranges have the address. */
  bot?: string | null
  /** Crawlers, VPNs and relays whose lists are at hand. */
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
    { ...asked, hasAllAddresses: hasAllAddresses(operator, new Set(lists)) },
    facts,
  )
}

const openAiLists = ['GPTBot', 'ChatGPT-User', 'OAI-SearchBot']

describe('given an address and what is known of it', () => {
  it('when nothing speaks against it, then it is kept', () => {
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
    ['it is in another country', { country: 'FR' }, ['country_mismatch']],
    ['its network is of another operator', { asn: apple }, mismatch],
    ['its network is the own operator’s', { ...icloud, asn: apple }, []],
    ['the own operator is named by an alias', { provider: 'APPLE_PRIVATE_RELAY', asn: apple }, []],
    ['its network is of several, the own operator among them', { ...icloud, asn: '714' }, []],
    ['its network is nobody’s in the catalogue', { provider: 'ZSCALER', asn: '64512' }, []],
    ['it is named another provider’s', { ...nordVpn, ...named('Mullvad') }, mismatch],
    ['it is named the own provider’s', { ...nordVpn, ...named('NordVPN') }, []],
    ['its provider had that name', { provider: 'DECODO', ...named('Smartproxy') }, []],
    ['it is named an unknown provider’s', { ...nordVpn, ...named('Example VPN') }, []],
    [
      'the own name counts before the network',
      { ...nordVpn, asn: zscaler, ...named('nordvpn') },
      [],
    ],
    ['an unknown name leaves the network', { ...nordVpn, asn: zscaler, ...named('?') }, mismatch],
    ['it is another’s crawler', { provider: 'OPENAI', bot: 'Googlebot' }, mismatch],
    ['it is the own crawler', { provider: 'OPENAI', bot: 'GPTBot' }, []],
    [
      'it is in no range of an operator that publishes all',
      { ...openAi, lists: openAiLists },
      mismatch,
    ],
    ['it is in none of the ranges that are known', { ...openAi, lists: ['GPTBot'] }, []],
    ['it is in one of all', { provider: 'OPENAI', bot: 'ChatGPT-User', lists: openAiLists }, []],
    [
      'it is in none, and in the own network',
      { ...icloud, asn: apple, lists: ['Apple Private Relay'] },
      [],
    ],
    ['it is hosted, for a residential proxy', { says: { hosting: true } }, ['hosting']],
    ['it is hosted, for a proxy network', { provider: 'WEBSHARE', says: { hosting: true } }, []],
    ['it is hosted, for a VPN', { ...nordVpn, says: { hosting: true } }, []],
    ['it is a VPN, for a VPN', { ...nordVpn, says: { vpn: true } }, []],
    ['it is a VPN, for a residential proxy', { says: { vpn: true } }, []],
    ['a reputation list has it', { listed: true }, ['listed']],
    [
      'everything speaks against it',
      { country: 'FR', asn: apple, says: { tor: true, hosting: true } },
      ['country_mismatch', 'provider_mismatch', 'listed', 'hosting'],
    ],
  ])('when %s', (_, given, reasons) => {
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
    ['one that a database names', { ...nordVpn, ...named('NordVPN') }, true],
    ['one where a database names another', { ...nordVpn, ...named('Mullvad') }, true],
  ])('then of %s it says whether the provider was checked', (_, given, checked) => {
    expect(decide(given).provider_checked).toBe(checked)
  })

  type Listing = 'proxy' | 'residential_proxy' | 'tor'
  it.each<[OperatorCategory, string, Listing[]]>([
    ['residential_proxy', 'BYTEFUL', ['proxy', 'tor']],
    ['proxy_network', 'WEBSHARE', ['tor']],
    ['consumer_vpn', 'NORDVPN', ['proxy', 'residential_proxy', 'tor']],
    ['enterprise_egress', 'ZSCALER', ['proxy', 'residential_proxy', 'tor']],
    ['crawler_agent', 'OPENAI', ['proxy', 'residential_proxy', 'tor']],
  ])('when it is listed, for a %s (%s): %j are reasons', (category, provider, reasons) => {
    expect(findOperator(provider)?.category).toBe(category)
    const kinds: Listing[] = ['proxy', 'residential_proxy', 'tor']
    const listed = kinds.filter((kind) =>
      decide({ provider, says: { [kind]: true } }).reasons.includes('listed'),
    )
    expect(listed).toEqual(reasons)
  })
})

describe('facts', () => {
  const network: Network = {
    ...sessionScored().network,
    routing: { asn: '64512', organization: null },
    evaluated_at: 5,
  }
  const located = (country_code: string | null): Network => ({
    ...network,
    location: { ...nowhere, country_code },
  })

  it('are country, network and flags', () => {
    const flags = { anonymity: noFlags, provider: null, listed: false }
    const facts = { countryCode: 'PT', asn: '64512', ...flags, evaluatedAt: 5 }
    expect(factsOf(located('PT'), null)).toEqual(facts)
    const named = { ...located('PT'), anonymity: { ...noFlags, provider: 'Mullvad' } }
    expect(factsOf(named, 'GPTBot')).toMatchObject({ provider: 'Mullvad' })
    expect(factsOf(located('PT'), 'GPTBot')).toMatchObject({ provider: 'GPTBot' })
    expect(factsOf(located('XK'), null)).toMatchObject({ countryCode: 'XK' })
  })

  it.each<[string, Network]>([
    ['no place', network],
    ['no country', located(null)],
    ['a continent', located('EU')],
    ['a placeholder', located('XX')],
    ['lower case', located('pt')],
    ['no network', { ...located('PT'), routing: { asn: null, organization: 'Example' } }],
  ])('are not there with %s', (_, incomplete) => {
    expect(factsOf(incomplete, null)).toBeUndefined()
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

it('databases also say XK', () => {
  expect(pairs.filter(isObservedCountryCode)).toHaveLength(250)
  expect(isObservedCountryCode('XK')).toBe(true)
  expect(isObservedCountryCode('XX')).toBe(false)
})

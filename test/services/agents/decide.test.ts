import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  findOperator,
  type OperatorCategory,
  operatorCatalogue,
} from '../../../infra/ip/operators.ts'
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

const noFlags: Network['anonymity'] = {
  vpn: false,
  proxy: false,
  tor: false,
  relay: false,
  hosting: false,
  residential_proxy: false,
  callback_proxy: false,
  provider: null,
}

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
  it.each<[string, Given, RotationReason[]]>([
    ['it is in another country', { country: 'FR' }, ['country_mismatch']],
    ['its network is of another operator', { asn: apple }, ['provider_mismatch']],
    ['its network is the own operator’s', { provider: 'ICLOUD', asn: apple }, []],
    [
      'its network is the own operator’s, named by an alias',
      { provider: 'APPLE_PRIVATE_RELAY', asn: apple },
      [],
    ],
    [
      'its network is of several, the own operator among them',
      { provider: 'ICLOUD', asn: '714' },
      [],
    ],
    ['its network is nobody’s in the catalogue', { provider: 'ZSCALER', asn: '64512' }, []],
    [
      'it is named another provider’s',
      { provider: 'NORDVPN', says: { provider: 'Mullvad' } },
      ['provider_mismatch'],
    ],
    ['it is named the own provider’s', { provider: 'NORDVPN', says: { provider: 'NordVPN' } }, []],
    [
      'it is named by an earlier name of the own provider',
      { provider: 'DECODO', says: { provider: 'Smartproxy' } },
      [],
    ],
    [
      'it is named an unknown provider’s',
      { provider: 'NORDVPN', says: { provider: 'Example VPN' } },
      [],
    ],
    [
      'the name of the own provider counts before the network',
      { provider: 'NORDVPN', asn: zscaler, says: { provider: 'nordvpn' } },
      [],
    ],
    [
      'an unknown name leaves the network',
      { provider: 'NORDVPN', asn: zscaler, says: { provider: '?' } },
      ['provider_mismatch'],
    ],
    [
      'it is in the ranges of another’s crawler',
      { provider: 'OPENAI', bot: 'Googlebot' },
      ['provider_mismatch'],
    ],
    ['it is in the ranges of the own crawler', { provider: 'OPENAI', bot: 'GPTBot' }, []],
    [
      'the own operator publishes all its ranges, and it is in none',
      { provider: 'OPENAI', asn: '15169', lists: openAiLists },
      ['provider_mismatch'],
    ],
    [
      'it is in none of those that are known',
      { provider: 'OPENAI', asn: '15169', lists: ['GPTBot'] },
      [],
    ],
    [
      'it is in the ranges of one crawler of the own operator',
      { provider: 'OPENAI', bot: 'ChatGPT-User', lists: openAiLists },
      [],
    ],
    [
      'it is in none, and in the own network',
      { provider: 'ICLOUD', asn: apple, lists: ['Apple Private Relay'] },
      [],
    ],
    ['it is hosted, for a residential proxy', { says: { hosting: true } }, ['hosting']],
    ['it is hosted, for a proxy network', { provider: 'WEBSHARE', says: { hosting: true } }, []],
    ['it is hosted, for a VPN', { provider: 'NORDVPN', says: { hosting: true } }, []],
    ['it is a VPN, for a VPN', { provider: 'NORDVPN', says: { vpn: true } }, []],
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
    ['a VPN whose networks no list has', { provider: 'NORDVPN', lists: ['Mullvad'] }, false],
    ['a VPN that publishes some addresses', { provider: 'MULLVAD', lists: ['Mullvad'] }, false],
    ['a crawler some of whose lists are missing', { provider: 'OPENAI', lists: ['GPTBot'] }, false],
    ['a crawler with all its lists', { provider: 'OPENAI', lists: openAiLists }, true],
    ['an operator whose network it is', { provider: 'ZSCALER', asn: zscaler }, true],
    ['an operator with other networks', { provider: 'ZSCALER' }, false],
    ['one that a database names', { provider: 'NORDVPN', says: { provider: 'NordVPN' } }, true],
    [
      'one where a database names another',
      { provider: 'NORDVPN', says: { provider: 'Mullvad' } },
      true,
    ],
  ])('then of %s it says whether the provider was checked', (_, given, checked) => {
    expect(decide(given).provider_checked).toBe(checked)
  })

  type Listing = 'proxy' | 'residential_proxy' | 'tor'
  const examples: [OperatorCategory, string, Listing[]][] = [
    ['residential_proxy', 'BYTEFUL', ['proxy', 'tor']],
    ['proxy_network', 'WEBSHARE', ['tor']],
    ['consumer_vpn', 'NORDVPN', ['proxy', 'residential_proxy', 'tor']],
    ['enterprise_egress', 'ZSCALER', ['proxy', 'residential_proxy', 'tor']],
    ['crawler_agent', 'OPENAI', ['proxy', 'residential_proxy', 'tor']],
  ]
  it.each(examples)(
    'when it is listed, for a %s (%s): %j are reasons',
    (category, provider, reasons) => {
      expect(findOperator(provider)?.category).toBe(category)
      const kinds: Listing[] = ['proxy', 'residential_proxy', 'tor']
      const found = kinds.filter((kind) =>
        decide({ provider, says: { [kind]: true } }).reasons.includes('listed'),
      )
      expect(found).toEqual(reasons)
    },
  )

  it('then it is rotated exactly when there is a reason, each once and in order', () => {
    const seed = Date.now()
    console.log(`seed ${seed}`)
    const order = ['country_mismatch', 'provider_mismatch', 'listed', 'hosting']
    const any = fc.record({
      provider: fc.constantFrom(...operatorCatalogue.operators.map(({ tag }) => tag)),
      country: fc.constantFrom('DE', 'FR'),
      asn: fc.constantFrom('64512', apple, zscaler),
      listed: fc.boolean(),
      says: fc.record({
        tor: fc.boolean(),
        proxy: fc.boolean(),
        hosting: fc.boolean(),
        residential_proxy: fc.boolean(),
        provider: fc.constantFrom(null, 'NordVPN', 'nobody'),
      }),
    })
    fc.assert(
      fc.property(any, (given) => {
        const { decision, reasons } = decide(given)
        expect(decision).toBe(reasons.length > 0 ? 'rotate' : 'keep')
        expect(reasons).toEqual(order.filter((reason) => reasons.some((found) => found === reason)))
        expect(reasons.includes('country_mismatch')).toBe(given.country !== 'DE')
      }),
      { seed },
    )
  })
})

describe('facts', () => {
  const network: Network = {
    ip_address: '8.8.8.8',
    ip_version: 'ipv4',
    status: 'ready',
    summary: null,
    location: null,
    routing: { asn: '64512', organization: null },
    anonymity: noFlags,
    reputation: { listed: false, categories: [], suspicious_network: false },
    evidence: { risk_signals: [], operator_tags: [], client_types: [], client_count: null },
    evaluated_at: 5,
  }
  const located = (country_code: string | null): Network => ({
    ...network,
    location: {
      city: null,
      region: null,
      country: null,
      country_code,
      latitude: null,
      longitude: null,
      timezone: null,
      postal_code: null,
      accuracy_radius_km: null,
    },
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

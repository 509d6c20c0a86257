import codes from 'i18n-iso-countries/codes.json' with { type: 'json' }
import {
  findOperatorByName,
  type Operator,
  type OperatorCategory,
  operatorsOfNetwork,
} from '../../infra/ip/operators.ts'
import type { Network } from '../../schemas/events.ts'

export const rotationReasons = [
  'country_mismatch',
  'provider_mismatch',
  'listed',
  'hosting',
] as const
export type RotationReason = (typeof rotationReasons)[number]

interface RotationItem {
  ip: string
  operator: Operator
  /** True if the address file has all addresses of the operator. */
  areAllAddressesKnown: boolean
  desiredCountryCode: string
}

export type AddressFacts = NonNullable<ReturnType<typeof addressFactsOf>>

/** Returns undefined if the address's country or network is unknown. `crawler`: tag of a crawler that publishes it. */
export function addressFactsOf(
  { location, routing, anonymity, reputation, evaluated_at }: Network,
  crawler: string | null,
) {
  const countryCode = location?.country_code
  if (!countryCode || !isObservedCountryCode(countryCode)) return undefined
  if (routing.asn === null || evaluated_at === null) return undefined
  const { asn } = routing
  const provider = anonymity.provider ?? crawler
  return {
    countryCode,
    asn,
    anonymity,
    provider,
    listed: reputation.listed,
    evaluatedAt: evaluated_at,
  }
}

/** Decides `rotate` if there is any reason. docs/operate/ip-rotation.md describes the reasons. */
export function decideRotation(item: RotationItem, facts: AddressFacts) {
  const reasons = rotationReasons.filter((reason) => hasReason[reason](item, facts))
  return {
    ip: item.ip,
    proxy_provider_brand: item.operator.tag,
    proxy_provider_category: item.operator.category,
    desired_country_code: item.desiredCountryCode,
    observed_country_code: facts.countryCode,
    decision: reasons.length > 0 ? ('rotate' as const) : ('keep' as const),
    reasons,
    provider_checked: holderOf(item, facts) !== 'unknown',
    evaluated_at: new Date(facts.evaluatedAt).toISOString(),
  }
}

const hasReason: Record<RotationReason, (item: RotationItem, facts: AddressFacts) => boolean> = {
  country_mismatch: ({ desiredCountryCode }, { countryCode }) => desiredCountryCode !== countryCode,
  provider_mismatch: (item, facts) => holderOf(item, facts) === 'another',
  listed: ({ operator }, facts) => isListed(operator.category, facts),
  hosting: ({ operator }, { anonymity }) =>
    operator.category === 'residential_proxy' && anonymity.hosting,
}

// The address's provider takes precedence over its network, because providers also sell addresses in other networks.
function holderOf(
  { operator, areAllAddressesKnown }: RotationItem,
  facts: AddressFacts,
): 'the operator' | 'another' | 'unknown' {
  const provider = providerOf(facts)
  const holders = provider ? [provider] : operatorsOfNetwork(facts.asn)
  if (holders.some(({ tag }) => tag === operator.tag)) return 'the operator'
  return holders.length > 0 || areAllAddressesKnown ? 'another' : 'unknown'
}

const providerOf = ({ provider }: AddressFacts) =>
  provider === null ? undefined : findOperatorByName(provider)

/** Returns true if the operator publishes its addresses, and the address file has all of its lists. */
export const knowsAllAddressesOf = (
  { lists }: Operator,
  listedOperators: ReadonlySet<string>,
): boolean => lists.length > 0 && lists.every((list) => listedOperators.has(list))

type Listing = 'proxy' | 'residential_proxy'

// Every address of the category has these listings, so they are no reason to rotate.
const expected: Record<OperatorCategory, Listing[]> = {
  residential_proxy: ['residential_proxy'],
  proxy_network: ['proxy', 'residential_proxy'],
  consumer_vpn: [],
  enterprise_egress: [],
  crawler_agent: [],
}

function isListed(category: OperatorCategory, { anonymity, listed }: AddressFacts): boolean {
  const proxies: Listing[] = ['proxy', 'residential_proxy']
  const isUnexpected = proxies.some((kind) => anonymity[kind] && !expected[category].includes(kind))
  return listed || anonymity.tor || isUnexpected
}

// Widely used and in `countryCodes`, but not assigned by ISO 3166-1.
const kosovo = 'XK'

const countryCodes = new Set(codes.map(([alpha2]) => alpha2))

export function isAssignedCountryCode(code: string): boolean {
  return code !== kosovo && countryCodes.has(code)
}

/** Returns false for `EU` and `XX`, which some IP databases use although they are not countries. */
export function isObservedCountryCode(code: string): boolean {
  return countryCodes.has(code)
}

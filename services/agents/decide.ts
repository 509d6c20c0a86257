import codes from 'i18n-iso-countries/codes.json' with { type: 'json' }
import {
  type Operator,
  type OperatorCategory,
  operatorNamed,
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
  /** The file of addresses has all addresses of the operator. */
  hasAllAddresses: boolean
  desiredCountryCode: string
}

export type AddressFacts = NonNullable<ReturnType<typeof factsOf>>

/** `bot`: the crawler whose ranges have the address. Returns undefined when the country or the network is not known. */
export function factsOf(
  { location, routing, anonymity, reputation, evaluated_at }: Network,
  bot: string | null,
) {
  const countryCode = location?.country_code
  if (!countryCode || !isObservedCountryCode(countryCode)) return undefined
  if (routing.asn === null || evaluated_at === null) return undefined
  const { asn } = routing
  const provider = anonymity.provider ?? bot
  return {
    countryCode,
    asn,
    anonymity,
    provider,
    listed: reputation.listed,
    evaluatedAt: evaluated_at,
  }
}

/** `rotate` exactly when there is a reason. docs/operate/ip-rotation.md says what each means. */
export function decideRotation(item: RotationItem, facts: AddressFacts) {
  const reasons = rotationReasons.filter((reason) => applies[reason](item, facts))
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

const applies: Record<RotationReason, (item: RotationItem, facts: AddressFacts) => boolean> = {
  country_mismatch: ({ desiredCountryCode }, { countryCode }) => desiredCountryCode !== countryCode,
  provider_mismatch: (item, facts) => holderOf(item, facts) === 'another',
  listed: ({ operator }, facts) => isListed(operator.category, facts),
  hosting: ({ operator }, { anonymity }) =>
    operator.category === 'residential_proxy' && anonymity.hosting,
}

// A named provider counts before the network, since providers also sell addresses in networks of others.
function holderOf(
  { operator, hasAllAddresses }: RotationItem,
  facts: AddressFacts,
): 'the operator' | 'another' | 'unknown' {
  const named = namedAt(facts)
  const holders = named ? [named] : operatorsOfNetwork(facts.asn)
  if (holders.some(({ tag }) => tag === operator.tag)) return 'the operator'
  return holders.length > 0 || hasAllAddresses ? 'another' : 'unknown'
}

const namedAt = ({ provider }: AddressFacts) =>
  provider === null ? undefined : operatorNamed(provider)

/** Tells operators that publish all their addresses, and whose lists are all in the file of addresses. */
export const hasAllAddresses = (
  { lists }: Operator,
  listedOperators: ReadonlySet<string>,
): boolean => lists.length > 0 && lists.every((list) => listedOperators.has(list))

type Listing = 'proxy' | 'residential_proxy'

// What addresses of a category are by their nature. Where one is listed as such, that says nothing more.
const explained: Record<OperatorCategory, Listing[]> = {
  residential_proxy: ['residential_proxy'],
  proxy_network: ['proxy', 'residential_proxy'],
  consumer_vpn: [],
  enterprise_egress: [],
  crawler_agent: [],
}

function isListed(category: OperatorCategory, { anonymity, listed }: AddressFacts): boolean {
  const proxies: Listing[] = ['proxy', 'residential_proxy']
  const unexplained = proxies.some((kind) => anonymity[kind] && !explained[category].includes(kind))
  return listed || anonymity.tor || unexplained
}

// The code is in general use for Kosovo and in the list, but ISO 3166-1 does not assign it.
const kosovo = 'XK'

const listed = new Set(codes.map(([alpha2]) => alpha2))

export function isAssignedCountryCode(code: string): boolean {
  return code !== kosovo && listed.has(code)
}

/** Some databases say `EU` or `XX`, which are no countries. */
export function isObservedCountryCode(code: string): boolean {
  return listed.has(code)
}

import codes from 'i18n-iso-countries/codes.json' with { type: 'json' }
import {
  type Operator,
  type OperatorCategory,
  operatorNamed,
  operatorsOfNetwork,
} from '../../infra/ip/operators.ts'
import type { Network } from '../../schemas/events.ts'

export const rotationReasons = ['country_mismatch', 'provider_mismatch', 'listed', 'hosting'] as const
export type RotationReason = (typeof rotationReasons)[number]

interface RotationItem {
  ip: string
  operator: Operator
  desiredCountryCode: string
}

export type AddressFacts = NonNullable<ReturnType<typeof factsOf>>

/** undefined when the country or the network is not known. */
export function factsOf({ location, routing, anonymity, reputation, evaluated_at }: Network) {
  const countryCode = location?.country_code
  if (!countryCode || !isObservedCountryCode(countryCode)) return undefined
  if (routing.asn === null || evaluated_at === null) return undefined
  const { asn } = routing
  return { countryCode, asn, anonymity, listed: reputation.listed, evaluatedAt: evaluated_at }
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
    evaluated_at: new Date(facts.evaluatedAt).toISOString(),
  }
}

const applies: Record<RotationReason, (item: RotationItem, facts: AddressFacts) => boolean> = {
  country_mismatch: ({ desiredCountryCode }, { countryCode }) => desiredCountryCode !== countryCode,
  provider_mismatch: ({ operator }, facts) => belongsToAnother(operator, facts),
  listed: ({ operator }, facts) => isListed(operator.category, facts),
  hosting: ({ operator }, { anonymity }) => operator.category === 'residential_proxy' && anonymity.hosting,
}

// A named provider counts before the network, since providers also sell addresses in networks of others.
function belongsToAnother(operator: Operator, { asn, anonymity }: AddressFacts): boolean {
  const named = anonymity.provider === null ? undefined : operatorNamed(anonymity.provider)
  if (named) return named.tag !== operator.tag
  const owners = operatorsOfNetwork(asn)
  return owners.length > 0 && owners.every(({ tag }) => tag !== operator.tag)
}

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

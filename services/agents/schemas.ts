import { z } from 'zod'
import { costOfItems } from '../../infra/access/charge.ts'
import { timestamp } from '../../infra/http/schemas.ts'
import { isCanonicalPublicAddress } from '../../infra/ip/network.ts'
import { findOperator, nearestTags, operatorCategory } from '../../infra/ip/operators.ts'
import { isAssignedCountryCode, rotationReasons } from './decide.ts'

export const maxItems = 10
const suggestedTags = 10

const countryCodePattern = /^[A-Z]{2}$/
const countryCode = z.string().regex(countryCodePattern)

const item = z.strictObject({
  ip: z
    .string()
    .refine(isCanonicalPublicAddress, { error: 'a public IPv4 or IPv6 address' })
    .meta({ anyOf: [{ format: 'ipv4' }, { format: 'ipv6' }] })
    .describe('Public IPv4 (four decimal numbers) or IPv6 address. No CIDR range or IPv6 zone.'),
  proxy_provider: z
    .string()
    .describe(
      'Operator that provides the address: a tag or alias from the operator catalogue, in upper case.',
    ),
  desired_country_code: z
    .string()
    .refine(isAssignedCountryCode, { error: 'an ISO 3166-1 alpha-2 code in upper case' })
    .meta({ pattern: countryCodePattern.source })
    .describe('ISO 3166-1 alpha-2 code in upper case.'),
})

const tagged = z.looseObject({ proxy_provider: z.string() })

// Checks every item with a tag, even if its other members are invalid.
function checkTags(items: readonly unknown[], context: z.RefinementCtx): void {
  items.forEach((entry, i) => {
    const input = tagged.safeParse(entry).data?.proxy_provider
    if (input === undefined || findOperator(input)) return
    const values = nearestTags(input, suggestedTags)
    const message = 'a tag or alias of the operator catalogue'
    context.addIssue({ code: 'invalid_value', values, input, path: [i, 'proxy_provider'], message })
  })
}

/** Checks tags only if the batch has a valid length, because suggesting tags for thousands of items would be slow. */
export const rotationBody = z.strictObject({
  items: z
    .array(item)
    .min(1)
    .max(maxItems)
    .superRefine(checkTags, {
      when: ({ value }) => Array.isArray(value) && value.length <= maxItems,
    }),
})

export const rotationDecision = z
  .strictObject({
    ip: z.string().describe('Address as sent in the request.'),
    proxy_provider_brand: z.string().describe('Canonical tag of the operator.'),
    proxy_provider_category: operatorCategory,
    desired_country_code: countryCode,
    observed_country_code: countryCode,
    decision: z.enum(['keep', 'rotate']),
    reasons: z
      .array(z.enum(rotationReasons))
      .describe('Reasons to rotate; empty if the decision is `keep`.'),
    provider_checked: z
      .boolean()
      .describe(
        'False if the server could not determine whether the address belongs to the operator.',
      ),
    evaluated_at: timestamp,
  })
  .meta({ id: 'AgentIpRotationDecision' })

/** The cost is read before the batch is validated. */
export const costOf = costOfItems('items', maxItems)

import { checkedName, invalid, type ParameterSet } from '../../../infra/http/checked-fields.ts'
import { type AddressRules, webhookUrlProblem } from '../../../infra/safe-http/addresses.ts'
import { type SubscribableType, subscribableTypes, uriOf } from '../../../infra/wire/webhooks/events.ts'

export const bounds = { name: 100, url: 2000 } as const

/** The name without outer spaces; 422 when it is none. */
export function checkedEndpointName(name: string, parameterSet: ParameterSet): string {
  return checkedName(name, { max: bounds.name, parameterSet })
}

/**
 * The URL as requests name it, which is a URI; 422 when nothing may be sent there. The answer does not repeat it: it
 * may hold a secret.
 */
export function checkedUrl(
  url: string,
  { rules, parameterSet }: { rules: AddressRules; parameterSet: ParameterSet },
): string {
  const problem = webhookUrlProblem(url, rules)
  const uri = problem === undefined ? uriOf(url) : null
  if (uri !== null) return uri
  const expected = problem ?? 'This is not a URI.'
  throw invalid({ name: 'url', issue: 'invalid', expected }, parameterSet)
}

/** The types, each once and always in the same order; 422 when there is none or one is unknown. */
export function checkedEventTypes(types: readonly string[], parameterSet: ParameterSet): SubscribableType[] {
  if (types.length === 0) {
    const expected = 'at least one event type'
    throw invalid({ name: 'event_types', issue: 'required', expected }, parameterSet)
  }
  const known: readonly string[] = subscribableTypes
  const unknown = types.findIndex((type) => !known.includes(type))
  if (unknown < 0) return subscribableTypes.filter((type) => types.includes(type))
  const field = { name: `event_types.${unknown}`, issue: 'invalid_value', expected: 'one of allowed_values' }
  throw invalid(field, parameterSet, { allowed_values: [...known] })
}

import { z } from 'zod'
import { checkAll, checkEach, checkPresent } from '../../../infra/errors/check-all.ts'
import { checkedName, invalid, type ParameterSet } from '../../../infra/http/checked-fields.ts'
import { atLeastOne, organizationParams, pathId, timestamp } from '../../../infra/http/schemas.ts'
import { type AddressRules, webhookUrlProblem } from '../../../infra/safe-http/addresses.ts'
import {
  type SubscribableType,
  subscribableTypes,
  uriOf,
} from '../../../infra/wire/webhooks/events.ts'
import { percent, verdict } from '../../../projections/sessions/decision-schemas.ts'
import { maxStatDeliveries, recentDeliveries } from '../../../projections/webhooks/queries.ts'
import type { EndpointRow } from '../../../projections/webhooks/tables.ts'
import type { EndpointFilter, WebhookEndpointCreated } from '../../../schemas/events.ts'
import {
  deliveryIdSchema,
  deliverySchema,
  endpointIdSchema,
  eventIdSchema,
} from '../events/schemas.ts'

const statuses = ['active', 'disabled'] as const

const milliseconds = z.int().min(0).nullable()

const healthSchema = z
  .strictObject({
    status: z
      .enum(['healthy', 'failing', 'idle', 'disabled'])
      .describe(
        `\`failing\`: at least half of the newest ${recentDeliveries} deliveries failed so far, or \`flagged_reason\` is set; \`idle\`: no attempts.`,
      ),
    deliveries: z.int().min(0).describe('Deliveries with at least one attempt.'),
    succeeded: z.int().min(0),
    pending: z.int().min(0).describe('Deliveries that are waiting for an attempt.'),
    success_rate: z
      .number()
      .min(0)
      .max(1)
      .nullable()
      .describe('`succeeded` divided by `deliveries`; null without deliveries.'),
    latency_p50_ms: milliseconds.describe(
      'Median time from an event to its successful delivery; null if there was none.',
    ),
    latency_p95_ms: milliseconds.describe('95th percentile of the same time.'),
    last_failure: z
      .strictObject({
        at: timestamp,
        event_id: eventIdSchema,
        response_status: z.int().nullable(),
        error: z.string().nullable(),
      })
      .nullable()
      .describe('Latest failed attempt of a delivery that has not succeeded since.'),
  })
  .meta({ id: 'WebhookEndpointHealth' })

const filterSchema = atLeastOne({
  verdicts: z.array(verdict).min(1).optional().describe('Verdicts that are sent.'),
  min_risk_score: percent.optional().describe('Lowest `risk_score` that is sent.'),
})
  .nullable()
  .describe(
    'Limits the session events that are sent. The first decision of a session that has the event counts: if it does not match, the event is not sent for a later one either. Null: all are sent.',
  )

export type EndpointHealthSummary = z.output<typeof healthSchema>

export const endpointSchema = z
  .strictObject({
    object: z.literal('webhook_endpoint'),
    id: endpointIdSchema,
    name: z.string(),
    url: z.url(),
    status: z.enum(statuses),
    disabled_reason: z
      .enum(['manual', 'failing', 'gone'])
      .nullable()
      .describe(
        'Null while active. `manual`: disabled by a request; `failing`: no delivery succeeded for five days; `gone`: the endpoint returned 410.',
      ),
    flagged_reason: z
      .enum(['failing', 'gone'])
      .nullable()
      .describe(
        'Reason for which the endpoint would be disabled if it did not receive the approvals of an active Gate service. Deliveries continue. Null again after a successful delivery, and when the endpoint is enabled, disabled or gets another URL.',
      ),
    event_types: z.array(z.enum(subscribableTypes)),
    filter: filterSchema,
    signing_secret: z
      .string()
      .optional()
      .describe(
        'Signing secret, `whsec_...`. Returned only when the endpoint is created or the secret rotated.',
      ),
    previous_secret_ends_at: timestamp
      .nullable()
      .describe(
        'Time until which deliveries are also signed with the previous secret; can be in the past. Null if the secret was never rotated.',
      ),
    health: healthSchema
      .optional()
      .describe(
        `Deliveries of the events of the last 24 hours: the newest ${maxStatDeliveries} of each event type. Only in the list.`,
      ),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .meta({ id: 'WebhookEndpoint' })

export type WebhookEndpoint = z.output<typeof endpointSchema>

export const testSchema = z
  .strictObject({
    object: z.literal('webhook_test'),
    event_id: eventIdSchema,
    delivery_ids: z.array(deliveryIdSchema),
    latest_delivery: deliverySchema.nullable(),
  })
  .meta({ id: 'WebhookTest' })

const maxLengths = { name: 100, url: 2000 } as const

// `meta` only documents the lengths; the functions below check them.
const name = z.string().meta({ minLength: 1, maxLength: maxLengths.name })
const url = z
  .string()
  .meta({ format: 'uri', maxLength: maxLengths.url })
  .describe(
    '`https` URL with a public host, unless the operator of the server allows its network. Stored percent-encoded, with the host in lower case.',
  )
const eventTypes = z.array(z.enum(subscribableTypes)).meta({ minItems: 1 })

export const createEndpointBody = z.strictObject({
  name,
  url,
  event_types: eventTypes,
  filter: filterSchema.optional(),
})

export const updateEndpointBody = atLeastOne({
  name: name.optional(),
  url: url.optional(),
  status: z
    .enum(statuses)
    .optional()
    .describe(
      '`disabled` stops deliveries until the endpoint is active again. Refused while an active Gate service sends its approvals there.',
    ),
  event_types: eventTypes
    .optional()
    .describe(
      'Replaces all subscriptions. `gate.session.approved` must be included while an active Gate service sends its approvals there.',
    ),
  filter: filterSchema.optional(),
})

export const endpointParams = z.object({ ...organizationParams.shape, endpointId: pathId('we') })

export interface EndpointRequest {
  name: string
  url: string
  event_types: readonly string[]
  filter?: z.output<typeof filterSchema> | undefined
}

export type EndpointSpec = Pick<WebhookEndpointCreated, 'name' | 'url' | 'event_types' | 'filter'>

export type EndpointChanges = {
  [Name in keyof EndpointRequest]?: EndpointRequest[Name] | undefined
} & { status?: EndpointRow['status'] | undefined }

export type EndpointUpdate = Partial<EndpointSpec> & Pick<EndpointChanges, 'status'>

/** Returns the request with name, URL and event types normalized. Throws 422 naming the invalid fields. */
export function checkedEndpointSpec(request: EndpointRequest, rules: AddressRules): EndpointSpec {
  const parameterSet = 'webhook_endpoint_create'
  return checkAll({
    name: () => checkedEndpointName(request.name, parameterSet),
    url: () => checkedUrl(request.url, { rules, parameterSet }),
    event_types: () => checkedEventTypes(request.event_types, parameterSet),
    filter: () => storedFilter(request.filter),
  })
}

/** Returns the changes with name, URL and event types normalized. Throws 422 naming the invalid fields. */
export function checkedEndpointChanges(
  { name, url, event_types: types, filter, status }: EndpointChanges,
  rules: AddressRules,
  parameterSet: ParameterSet = 'webhook_endpoint_update',
): EndpointUpdate {
  const changes = checkPresent<EndpointSpec>({
    name: name !== undefined && (() => checkedEndpointName(name, parameterSet)),
    url: url !== undefined && (() => checkedUrl(url, { rules, parameterSet })),
    event_types: types && (() => checkedEventTypes(types, parameterSet)),
    filter: filter !== undefined && (() => storedFilter(filter)),
  })
  return { ...changes, status }
}

// Contains each verdict once, in a fixed order.
function storedFilter(filter: EndpointRequest['filter']): EndpointFilter | null {
  if (!filter) return null
  const { verdicts, min_risk_score = null } = filter
  const sorted = verdicts && verdict.options.filter((option) => verdicts.includes(option))
  return { verdicts: sorted ?? null, min_risk_score }
}

function checkedEndpointName(name: string, parameterSet: ParameterSet): string {
  return checkedName(name, { max: maxLengths.name, parameterSet })
}

// Returns the URL percent-encoded. Throws 422 if webhooks must not be sent there, without quoting the URL, which may
// contain a secret.
function checkedUrl(
  url: string,
  { rules, parameterSet }: { rules: AddressRules; parameterSet: ParameterSet },
): string {
  const problem = webhookUrlProblem(url, rules)
  const uri = problem === undefined ? uriOf(url) : null
  if (uri !== null) return uri
  const expected = problem ?? 'This is not a URI.'
  throw invalid({ name: 'url', issue: 'invalid', expected }, parameterSet)
}

// Returns each type once, in a fixed order. Throws 422 if the list is empty or a type is unknown.
function checkedEventTypes(
  types: readonly string[],
  parameterSet: ParameterSet,
): SubscribableType[] {
  if (types.length === 0) {
    const expected = 'at least one event type'
    throw invalid({ name: 'event_types', issue: 'required', expected }, parameterSet)
  }
  const allowed: readonly string[] = subscribableTypes
  checkEach(types, (type, i) => {
    if (allowed.includes(type)) return
    const field = {
      name: `event_types.${i}`,
      issue: 'invalid_value',
      expected: 'one of allowed_values',
    }
    throw invalid(field, parameterSet, { allowed_values: [...allowed] })
  })
  return subscribableTypes.filter((type) => types.includes(type))
}

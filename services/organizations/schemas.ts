import { z } from 'zod'
import { scopes as knownScopes } from '../../infra/access/principal.ts'
import type { Config } from '../../infra/config.ts'
import {
  atLeastOne,
  implies,
  organizationParams,
  pathId,
  timestamp,
} from '../../infra/http/schemas.ts'
import { iso, isoOrNull } from '../../infra/iso.ts'
import type { ApiKeyRow, OrganizationRow } from '../../projections/organizations/tables.ts'
import type { DataPolicyRow, RetentionDays } from '../../projections/policies/tables.ts'
import { webhookRetentionMs } from '../../projections/webhooks/tables.ts'
import type { ActorType, ClientTarget } from '../../schemas/events.ts'
import { inputLimits } from './checked-input.ts'
import { defaultDataPolicy } from './decide-data-policy.ts'

const idCharacters = '[0-9a-hjkmnp-tv-z]{26}'
const types = ['publishable', 'secret'] as const
const environments = ['live', 'test'] as const
const organizationStatuses = ['active', 'suspended', 'deleted'] as const
const clientTargets = ['browser', 'native-ios', 'native-android'] as const

const days = z
  .int()
  .nullable()
  .describe('Days to keep. 0: forever; null: the default of this server.')

const keptDays = z.int().min(0)
const perMinute = z.int().min(1)

const rateLimitsSchema = z
  .strictObject({
    secret: perMinute.describe('Requests with secret keys, in units.'),
    publishable: perMinute.describe('Requests with publishable keys.'),
    scored_requests: perMinute.describe('Requests sent for scoring.'),
    console: perMinute.describe('Requests of each console session, in units.'),
  })
  .describe('Rate limits per minute, shared by all keys of a type.')

const dataPolicySchema = z
  .strictObject({
    session_days: days,
    decision_days: days,
    visitor_days: days,
    webhook_days: days,
    shortens_addresses: z
      .boolean()
      .describe(
        'If true, IP addresses are truncated to IPv4 /24 and IPv6 /48 before they are recorded.',
      ),
    allows_minimal_mode: z
      .boolean()
      .describe('If true, pages may skip fingerprinting (minimal mode).'),
    hidden_facts: z
      .array(z.string())
      .nullable()
      .describe(
        'Columns of session facts that are hidden from analysts; null: the default columns.',
      ),
    facts_topic: z.boolean().describe('If true, session facts are published to a Kafka topic.'),
    kept_days: z
      .strictObject({
        session_days: keptDays,
        decision_days: keptDays,
        visitor_days: keptDays,
        webhook_days: keptDays,
      })
      .describe('Days that apply, with the defaults of this server filled in. 0: forever.'),
    changed_at: timestamp.nullable().describe('Null if the policy was never changed.'),
  })
  .describe(
    'Data recorded about visitors, and how long it is kept. Set by the operator of the server.',
  )

export const organizationSchema = z
  .strictObject({
    object: z.literal('organization'),
    id: z.string().regex(new RegExp(`^org_${idCharacters}$`)),
    name: z.string(),
    slug: z.string(),
    status: z.enum(organizationStatuses),
    created_at: timestamp,
    updated_at: timestamp,
    data_policy: dataPolicySchema.optional(),
    rate_limits: rateLimitsSchema.optional(),
  })
  .meta({ id: 'Organization' })

export type Organization = z.output<typeof organizationSchema>

const keyHead = {
  object: z.literal('api_key'),
  id: z.string().regex(new RegExp(`^key_${idCharacters}$`)),
  type: z.enum(types),
  environment: z.enum(environments),
  name: z.string(),
  status: z
    .enum(['active', 'rotating', 'revoked'])
    .describe('`rotating`: replaced, but valid until `grace_expires_at`.'),
  client_target: z.enum(clientTargets),
  allowed_origins: z
    .array(z.string())
    .nullable()
    .describe('Origins that may use the key. Empty: any origin; null for secret keys.'),
  scopes: z.array(z.enum(knownScopes)).nullable().describe('Null for publishable keys.'),
  rate_limit: z.null().describe('Always null; rate limits apply per organization.'),
  key_preview: z.string(),
  display_key: z.string().optional().describe('Full key. Publishable keys only.'),
}
const keyTail = {
  last_used_at: timestamp.nullable().describe('Time of the last use, up to a minute late.'),
  created_at: timestamp,
  rotated_at: timestamp.nullable(),
  revoked_at: timestamp.nullable(),
  revoked_reason: z
    .enum(['requested', 'grace_ended', 'expired'])
    .nullable()
    .describe('Null unless revoked. `grace_ended`: 24 hours after the key was rotated.'),
  grace_expires_at: timestamp.nullable(),
  expires_at: timestamp
    .nullable()
    .describe('Time when the key expires. Null if it does not expire.'),
}

export const apiKeySchema = z.strictObject({ ...keyHead, ...keyTail }).meta({ id: 'ApiKey' })

export type ApiKey = z.output<typeof apiKeySchema>

export const issuedApiKeySchema = z
  .strictObject({
    ...keyHead,
    revealed_key: z.string().describe('Full key. A secret key is not shown again.'),
    ...keyTail,
  })
  .meta({ id: 'IssuedApiKey' })

export const directoryDomain = z
  .string()
  .describe(
    'Host of the directory, such as `agent.example` or `agent.example:8443`. Stored in lower case.',
  )

export const agentDirectorySchema = z
  .strictObject({
    object: z.literal('agent_directory'),
    domain: directoryDomain,
    name: z
      .string()
      .nullable()
      .describe('Name shown as `agent.provider` of signed sessions; null if the domain is used.'),
    added_at: timestamp,
  })
  .meta({ id: 'AgentDirectory' })

export type AgentDirectory = z.output<typeof agentDirectorySchema>

export const auditActorTypes = [
  'key',
  'operator',
  'person',
  'agent',
  'service',
  'scheduler',
  'other',
] as const

export const auditEntrySchema = z
  .strictObject({
    object: z.literal('audit_entry'),
    id: z.string().describe('Id of the event on the log. All events of a mark share one entry.'),
    type: z
      .string()
      .describe('Type of the event, such as `ApiKeyRevoked`. Later versions may add types.'),
    occurred_at: timestamp,
    environment: z
      .enum(['live', 'test'])
      .nullable()
      .describe('Null if the entry applies to both environments.'),
    subject_id: z.string().describe('Object of the change: a key, an endpoint, a session, ...'),
    reason: z
      .string()
      .nullable()
      .describe(
        'Reason given for a visitor correction or a change of the scoring model; otherwise null.',
      ),
    view: z
      .strictObject({
        name: z.string(),
        fields: z.array(z.string()).describe('Parameters in its query, without their values.'),
      })
      .meta({ id: 'AuditedView' })
      .nullable()
      .describe('Saved view that was created, changed or deleted; otherwise null.'),
    actor: z
      .strictObject({
        type: z.enum(auditActorTypes satisfies readonly ActorType[]),
        id: z
          .string()
          .describe(
            'Depends on `type`. `key`: the key id. To test keys, live keys appear only as `live`. `operator`: the command. `agent`: its delivery key or Gate account. `person`: the console session, or `consent-page`. Others: the component of the server.',
          ),
      })
      .meta({ id: 'AuditActor' }),
    request_id: z.string().nullable().describe('Request that caused the change; null if none did.'),
  })
  .meta({ id: 'AuditEntry' })

export type AuditEntry = z.output<typeof auditEntrySchema>

// These lengths and patterns are documentation only; checked-input.ts enforces them, also for the CLI.
const organizationName = z.string().meta({ minLength: 1, maxLength: inputLimits.organizationName })
const keyName = z.string().meta({ minLength: 1, maxLength: inputLimits.keyName })
const origins = z
  .array(z.string())
  .meta({ maxItems: inputLimits.origins })
  .describe(
    'Origins as `https://host[:port]` or `https://*.host`; test keys also accept any exact http or https origin. Stored in lower case without a trailing slash.',
  )
const scopes = z.array(z.enum(knownScopes)).meta({ minItems: 1 })

const expiry = z.iso
  .datetime({ offset: true, error: 'ISO 8601 with a time zone, such as 2026-11-26T08:00:00Z' })
  .transform((time) => Date.parse(time))
  .nullable()

export const createOrganizationBody = z.strictObject({
  name: organizationName,
  slug: z.string().meta({ minLength: 1, maxLength: inputLimits.slug, pattern: '^[a-z0-9-]+$' }),
})

export const updateOrganizationBody = atLeastOne({
  name: organizationName.optional(),
  status: z.enum(organizationStatuses).optional(),
})

const nativeTargets = clientTargets.filter((target) => target !== 'browser')
const has = (name: string, schema: object) => ({ required: [name], properties: { [name]: schema } })
const without = (...names: string[]) => ({
  not: { anyOf: names.map((name) => ({ required: [name] })) },
})

// Describes the combinations of members that `completeKeyRequest` accepts.
const keyConditions = [
  implies({ required: ['scopes'] }, has('type', { const: 'secret' })),
  implies(has('type', { const: 'secret' }), {
    required: ['scopes'],
    ...without('allowed_origins', 'client_target'),
  }),
  implies(has('client_target', { enum: nativeTargets }), without('allowed_origins')),
]

const keyFields = z.strictObject({
  name: keyName,
  type: z.enum(types).optional().describe('Required with `scopes`.'),
  environment: z
    .enum(environments)
    .optional()
    .describe("Default: the calling key's environment. Test keys can only create test keys."),
  client_target: z
    .enum(clientTargets)
    .optional()
    .describe('Platform of a publishable key. Default: `browser`.'),
  allowed_origins: origins.optional(),
  scopes: scopes.optional().describe('Required if `type` is `secret`.'),
  expires_at: expiry
    .optional()
    .describe(
      'Time when the key expires; null: never. Default: the maximum lifetime that the operator set for the organization, or never.',
    ),
})
export const createKeyBody = keyFields.meta({ allOf: keyConditions })

export const updateKeyBody = atLeastOne({
  name: keyName.optional(),
  allowed_origins: origins.optional(),
  scopes: scopes.optional(),
  expires_at: expiry.optional().describe('Time when the key expires; null: never.'),
})

export const keyParams = z.object({ ...organizationParams.shape, keyId: pathId('key') })

type PublicTarget = NonNullable<z.output<typeof createKeyBody>['client_target']>

const publicTargets: Record<ClientTarget, PublicTarget> = {
  browser: 'browser',
  native_ios: 'native-ios',
  native_android: 'native-android',
}

const storedTargets: Record<PublicTarget, ClientTarget> = {
  browser: 'browser',
  'native-ios': 'native_ios',
  'native-android': 'native_android',
}

export const storedTarget = (target: PublicTarget): ClientTarget => storedTargets[target]

export function organizationJson({ id, name, slug, status, ...times }: OrganizationRow) {
  const created_at = iso(times.created_at)
  return {
    object: 'organization',
    id,
    name,
    slug,
    status,
    created_at,
    updated_at: iso(times.updated_at),
  }
}

/** Returns the days that `retentionOf` gives, without null. Webhooks never stay longer than a month. */
export const keptDaysJson = (days: RetentionDays) => ({
  session_days: days.session_days ?? 0,
  decision_days: days.decision_days ?? 0,
  visitor_days: days.visitor_days ?? 0,
  webhook_days: days.webhook_days ?? webhookRetentionMs / dayMs,
})

type RateLimitSettings = Pick<
  Config,
  'RATE_LIMIT_SECRET' | 'RATE_LIMIT_PUBLISHABLE' | 'RATE_LIMIT_REQUESTS' | 'RATE_LIMIT_CONSOLE'
>

export const rateLimitsJson = (
  { secret_limit, publishable_limit }: OrganizationRow,
  config: RateLimitSettings,
) => ({
  secret: secret_limit ?? config.RATE_LIMIT_SECRET,
  publishable: publishable_limit ?? config.RATE_LIMIT_PUBLISHABLE,
  scored_requests: config.RATE_LIMIT_REQUESTS,
  console: config.RATE_LIMIT_CONSOLE,
})

export function dataPolicyJson(policy: DataPolicyRow | undefined) {
  if (!policy) return { ...defaultDataPolicy, changed_at: null }
  const { organization_id: _, changed_at, ...rest } = policy
  return { ...rest, changed_at: iso(changed_at) }
}

/** `lastUsedAt`: epoch milliseconds; undefined: never used. */
export function apiKeyJson(
  key: ApiKeyRow,
  { lastUsedAt, revealedKey }: { lastUsedAt?: number | undefined; revealedKey?: string },
) {
  return {
    object: 'api_key',
    id: key.id,
    type: key.type,
    environment: key.environment,
    name: key.name,
    status: key.status,
    client_target: publicTargets[key.client_target],
    allowed_origins: key.allowed_origins,
    scopes: key.scopes,
    rate_limit: null,
    key_preview: key.key_preview,
    ...(key.display_key !== null && { display_key: key.display_key }),
    ...(revealedKey !== undefined && { revealed_key: revealedKey }),
    last_used_at: isoOrNull(lastUsedAt ?? null),
    created_at: iso(key.created_at),
    rotated_at: isoOrNull(key.rotated_at),
    revoked_at: isoOrNull(key.revoked_at),
    revoked_reason: key.revoked_reason,
    grace_expires_at: isoOrNull(key.grace_expires_at),
    expires_at: isoOrNull(key.expires_at),
  }
}

const dayMs = 24 * 60 * 60 * 1000

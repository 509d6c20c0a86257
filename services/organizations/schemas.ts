import { z } from 'zod'
import { scopes as knownScopes } from '../../infra/access/principal.ts'
import {
  atLeastOne,
  implies,
  organizationParams,
  pathId,
  timestamp,
} from '../../infra/http/schemas.ts'
import type { ApiKeyRow, OrganizationRow } from '../../projections/organizations/tables.ts'
import type { DataPolicyRow } from '../../projections/policies/tables.ts'
import type { ClientTarget } from '../../schemas/events.ts'
import { inputLimits } from './checked-input.ts'
import { noDataPolicy } from './decide-data-policy.ts'

const idCharacters = '[0-9a-hjkmnp-tv-z]{26}'
const types = ['publishable', 'secret'] as const
const environments = ['live', 'test'] as const
const organizationStatuses = ['active', 'suspended', 'deleted'] as const
const clientTargets = ['browser', 'native-ios', 'native-android'] as const

const days = z.int().nullable().describe('0 = for ever; null = the default of this server.')

const dataPolicySchema = z
  .strictObject({
    session_days: days,
    decision_days: days,
    visitor_days: days,
    webhook_days: days,
    shortens_addresses: z.boolean().describe('Addresses are recorded as IPv4 /24 and IPv6 /48.'),
    allows_minimal_mode: z.boolean().describe('A page may leave fingerprints out.'),
    hidden_facts: z
      .array(z.string())
      .nullable()
      .describe('Columns of the flat rows that analysts do not see; null is the default ones.'),
    facts_topic: z.boolean().describe('The flat rows are published on a Kafka topic.'),
    changed_at: timestamp.nullable().describe('null: it has never been changed.'),
  })
  .describe('What is recorded of visitors, and for how many days. Set by the operator.')

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
    .describe('rotating: replaced, and still working until grace_expires_at.'),
  client_target: z.enum(clientTargets),
  allowed_origins: z
    .array(z.string())
    .nullable()
    .describe('null for secret keys; empty = any origin.'),
  scopes: z.array(z.enum(knownScopes)).nullable().describe('null for publishable keys.'),
  rate_limit: z.null().describe('Kept for compatibility; limits are those of the organization.'),
  key_preview: z.string(),
  display_key: z.string().optional().describe('The whole key, of publishable keys only.'),
}
const keyTail = {
  last_used_at: timestamp.nullable().describe('Up to a minute late.'),
  created_at: timestamp,
  rotated_at: timestamp.nullable(),
  revoked_at: timestamp.nullable(),
  grace_expires_at: timestamp.nullable(),
}

export const apiKeySchema = z.strictObject({ ...keyHead, ...keyTail }).meta({ id: 'ApiKey' })

export type ApiKey = z.output<typeof apiKeySchema>

export const issuedApiKeySchema = z
  .strictObject({
    ...keyHead,
    revealed_key: z.string().describe('The whole key. A secret key is shown this once.'),
    ...keyTail,
  })
  .meta({ id: 'IssuedApiKey' })

// Lengths and patterns are for the description; the deciders check them, for the command line as well.
const organizationName = z.string().meta({ minLength: 1, maxLength: inputLimits.organizationName })
const keyName = z.string().meta({ minLength: 1, maxLength: inputLimits.keyName })
const origins = z
  .array(z.string())
  .meta({ maxItems: inputLimits.origins })
  .describe(
    '`https://host[:port]` or `https://*.host`; for test keys also any exact http or https origin. Stored in lower case and without a slash at the end.',
  )
const scopes = z.array(z.enum(knownScopes)).meta({ minItems: 1 })

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

// What `completeKeyRequest` says of members together.
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
  type: z.enum(types).optional().describe('Needed with scopes.'),
  environment: z
    .enum(environments)
    .optional()
    .describe("Default: the calling key's own. A test key makes test keys only."),
  client_target: z.enum(clientTargets).optional().describe('Of publishable keys; default browser.'),
  allowed_origins: origins.optional(),
  scopes: scopes
    .optional()
    .describe('Required with type secret. A name alone makes a secret key with the narrow scopes.'),
})
export const createKeyBody = keyFields.meta({ allOf: keyConditions })

export const updateKeyBody = atLeastOne({
  name: keyName.optional(),
  allowed_origins: origins.optional(),
  scopes: scopes.optional(),
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

export function dataPolicyJson(policy: DataPolicyRow | undefined) {
  if (!policy) return { ...noDataPolicy, changed_at: null }
  const { organization_id: _, changed_at, ...rest } = policy
  return { ...rest, changed_at: iso(changed_at) }
}

/** `lastUsedAt`: epoch milliseconds; undefined = never. */
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
    grace_expires_at: isoOrNull(key.grace_expires_at),
  }
}

const iso = (at: number) => new Date(at).toISOString()
const isoOrNull = (at: number | null) => (at === null ? null : iso(at))

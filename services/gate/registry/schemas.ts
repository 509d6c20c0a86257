import { z } from 'zod'
import { atLeastOne, meta, timestamp } from '../../../infra/http/schemas.ts'
import { serviceBounds } from './fields.ts'

/** Only describes the format: `checkedServiceId` validates new ids, and other malformed ids match no service. */
export const serviceIdSchema = z
  .string()
  .meta({ minLength: 3, maxLength: 32, pattern: '^[a-z0-9](?:[a-z0-9_-]{1,30}[a-z0-9])$' })
  .describe(
    '3 to 32 lower-case letters, digits, `-` and `_`, starting and ending with a letter or digit.',
  )

export const serviceParams = z.object({ serviceId: serviceIdSchema })

// Lengths and formats only describe the fields; definition.ts checks them.
const text = (maxLength: number) => z.string().meta({ minLength: 1, maxLength })
const url = z.string().meta({ format: 'uri', maxLength: serviceBounds.url })
const color = z
  .string()
  .meta({ pattern: '^#(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{4}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})$' })
const webhookEndpointId = z
  .string()
  .meta({ pattern: '^we_[0-9a-f]{32}$' })
  .describe(
    'Webhook endpoint for approvals. It must belong to the same organization and environment, be active, and be subscribed to `gate.session.approved`.',
  )

const envVar = z
  .strictObject({
    name: text(serviceBounds.envVarName).describe('Name to show to people.'),
    key: z
      .string()
      .meta({ pattern: '^[A-Za-z_][A-Za-z0-9_]{0,127}$' })
      .describe(
        'Variable name, unique regardless of case. Variables that control what a process runs and those of Gate are refused.',
      ),
    secret: z.boolean(),
  })
  .meta({ id: 'GateEnvVar' })

const sdk = z
  .strictObject({
    label: text(serviceBounds.sdkLabel),
    install: text(serviceBounds.sdkInstall).describe(
      `At most ${serviceBounds.sdkInstallLines} lines.`,
    ),
    url,
  })
  .meta({ id: 'GateSdkInstall' })

const brandingFields = {
  logo_url: url.optional(),
  primary_color: color.optional(),
  secondary_color: color.optional(),
  ascii_art: text(serviceBounds.asciiArt)
    .optional()
    .describe(`At most ${serviceBounds.asciiArtLines} lines.`),
}
const consent = z
  .strictObject({ terms_url: url.optional(), privacy_url: url.optional() })
  .meta({ id: 'GateConsentConfig' })

const docsUrl = 'Documentation for agents. Default: the website.'
const loginUrl =
  'Dashboard page that accepts a login code. Without it, the service gets no dashboard logins and no agent tokens.'
const claimRequired = z
  .boolean()
  .describe(
    'If true, every signup must be claimed: after the approval, the agent has to send the code that the consent page shows. Signups by agents without support are refused.',
  )
const minimumVerdict = z
  .enum(['inconclusive', 'human'])
  .describe('Lowest verdict of the approving browser that is accepted.')
const writable = {
  name: text(serviceBounds.name),
  description: text(serviceBounds.description).describe(
    `At most ${serviceBounds.descriptionLines} lines.`,
  ),
  website: url.describe(
    'Website of the service. All URLs must be absolute, `https` and without a user name; the test environment also accepts `http`.',
  ),
  discoverable: z
    .boolean()
    .optional()
    .describe(
      'If true, the registry lists the service and agents can sign up for it. Default: false.',
    ),
  webhook_endpoint_id: webhookEndpointId,
  dashboard_login_url: url.optional().describe(loginUrl),
  docs_url: url.optional().describe(docsUrl),
  env_vars: z
    .array(envVar)
    .meta({ maxItems: serviceBounds.envVars })
    .optional()
    .describe('Variables delivered with a signup.'),
  sdks: z.array(sdk).meta({ maxItems: serviceBounds.sdks }).optional(),
  // Without `verified`, which only the operator sets.
  branding: z.strictObject(brandingFields).optional(),
  consent: consent.optional(),
  claim_required: claimRequired.optional(),
  minimum_verdict: minimumVerdict.optional(),
}

export const createServiceBody = z.strictObject({ id: serviceIdSchema, ...writable })

export const updateServiceBody = atLeastOne({
  ...writable,
  name: writable.name.optional(),
  description: writable.description.optional(),
  website: writable.website.optional(),
  webhook_endpoint_id: webhookEndpointId.optional(),
  dashboard_login_url: url.nullable().optional().describe(`${loginUrl} Null removes it.`),
  docs_url: url.nullable().optional().describe(`${docsUrl} Null removes it.`),
})

/** Fields of an update, without the rule that at least one is present. */
export const serviceFields = z.object(updateServiceBody.shape)
/** undefined = unchanged, null = cleared. */
export type ServiceFields = z.output<typeof serviceFields>

const prefixText = 'Prefix of variables that belong to the service, such as `ACME_` for acme.dev.'

const publicMembers = {
  status: z.enum(['active', 'disabled']),
  discoverable: z.boolean(),
  name: z.string(),
  description: z.string(),
  website: url,
  dashboard_login_url: url.optional(),
  env_vars: z.array(envVar),
  docs_url: url,
  sdks: z.array(sdk),
  branding: z
    .strictObject({
      ...brandingFields,
      verified: z
        .boolean()
        .describe(
          'True if the operator verified the name, website and logo. Changing one of them ends the verification.',
        ),
    })
    .meta({ id: 'GateBranding' }),
  consent,
  claim_required: claimRequired.optional(),
  minimum_verdict: minimumVerdict.optional(),
  verified_domain: z
    .string()
    .optional()
    .describe(
      'Registrable domain of the website, if the service has verified that it controls it.',
    ),
  env_prefix: z
    .string()
    .optional()
    .describe(`${prefixText} Present if the domain or the service is verified.`),
}

export const registryEntrySchema = z
  .strictObject({ id: serviceIdSchema, ...publicMembers })
  .meta({ id: 'GateRegistryEntry' })

export const managedServiceSchema = z
  .strictObject({
    object: z.literal('gate_service'),
    id: serviceIdSchema,
    ...publicMembers,
    webhook_endpoint_id: webhookEndpointId.nullable(),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .meta({ id: 'GateManagedService' })
export type ManagedGateService = z.output<typeof managedServiceSchema>

export const serviceDomainSchema = z
  .strictObject({
    object: z.literal('gate_service_domain'),
    service_id: serviceIdSchema,
    domain: z
      .string()
      .nullable()
      .describe(
        'Registrable domain of the website by the public suffix list; null if it has none.',
      ),
    verified: z.boolean(),
    env_prefix: z
      .string()
      .nullable()
      .describe(`${prefixText} Null unless the domain or the service is verified.`),
    challenge: z
      .strictObject({
        dns: z.strictObject({ name: z.string(), type: z.literal('TXT'), value: z.string() }),
        file: z.strictObject({
          url: z.string(),
          content: z.string().describe('Line that the file must contain.'),
        }),
      })
      .nullable()
      .describe(
        'Publish either one. Valid only for this organization, service and domain. Null if the website has no registrable domain.',
      ),
  })
  .meta({ id: 'GateServiceDomain' })

export const unpaginatedListSchema = <T extends z.ZodType>(item: T) =>
  z.strictObject({ data: z.array(item), meta })

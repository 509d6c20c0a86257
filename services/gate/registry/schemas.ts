import { z } from 'zod'
import { atLeastOne, meta, timestamp } from '../../../infra/http/schemas.ts'
import { serviceBounds } from './fields.ts'

/** For the description: deciders check more, and no service has a malformed id. */
export const serviceIdSchema = z
  .string()
  .meta({ minLength: 3, maxLength: 32, pattern: '^[a-z0-9](?:[a-z0-9_-]{1,30}[a-z0-9])$' })
  .describe('3-32 lower-case letters, digits, - and _, with a letter or digit at both ends.')

export const serviceParams = z.object({ serviceId: serviceIdSchema })

// Lengths and forms are for the description; the deciders check them.
const text = (maxLength: number) => z.string().meta({ minLength: 1, maxLength })
const url = z.string().meta({ format: 'uri', maxLength: serviceBounds.url })
const color = z
  .string()
  .meta({ pattern: '^#(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{4}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})$' })
const webhookEndpointId = z
  .string()
  .meta({ pattern: '^we_[0-9a-f]{32}$' })
  .describe(
    'A webhook endpoint of the same organization and environment, active and subscribed to gate.session.approved.',
  )

const envVar = z
  .strictObject({
    name: text(serviceBounds.envVarName).describe('For people.'),
    key: z
      .string()
      .meta({ pattern: '^[A-Za-z_][A-Za-z0-9_]{0,127}$' })
      .describe(
        'Each once, in whatever case. Not a variable that decides what a process runs, nor one of Gate.',
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

const docsUrl = 'Default: the website.'
const loginUrl =
  'Where the dashboard takes a login code. Without it there are neither logins nor agent tokens.'
const claimRequired = z
  .boolean()
  .describe(
    'Whether every approval of a signup waits until the agent has told the code that the consent page shows. Agents that cannot are refused.',
  )
const minimumVerdict = z
  .enum(['inconclusive', 'human'])
  .describe('What the browser that approves has to be taken for, at least.')
const writable = {
  name: text(serviceBounds.name),
  description: text(serviceBounds.description).describe(
    `At most ${serviceBounds.descriptionLines} lines.`,
  ),
  website: url.describe(
    'URLs are absolute, https and without a user name; in the test environment http, too.',
  ),
  discoverable: z
    .boolean()
    .optional()
    .describe('Whether agents can sign up for it and the registry lists it. Default: false.'),
  webhook_endpoint_id: webhookEndpointId,
  dashboard_login_url: url.optional().describe(loginUrl),
  docs_url: url.optional().describe(docsUrl),
  env_vars: z
    .array(envVar)
    .meta({ maxItems: serviceBounds.envVars })
    .optional()
    .describe('The variables that whoever signs up gets.'),
  sdks: z.array(sdk).meta({ maxItems: serviceBounds.sdks }).optional(),
  // Not `verified`, which is the operator's to say: only what is writable is taken.
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
  dashboard_login_url: url.nullable().optional().describe(`${loginUrl} null takes it away.`),
  docs_url: url.nullable().optional().describe(`${docsUrl} null takes it away.`),
})

/** The members of a change, whatever else there is. */
export const serviceFields = z.object(updateServiceBody.shape)
/** undefined = unchanged, null = cleared. */
export type ServiceFields = z.output<typeof serviceFields>

const prefixText =
  'What variables begin with that are the service’s own, such as ACME_ of acme.dev.'

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
          'The operator vouches for its name, website and logo; a change of one of them ends that.',
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
      'The registrable domain of the website, where the service has shown that it holds it.',
    ),
  env_prefix: z
    .string()
    .optional()
    .describe(`${prefixText} Only where the domain or the service is verified.`),
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

export const serviceDomainSchema = z
  .strictObject({
    object: z.literal('gate_service_domain'),
    service_id: serviceIdSchema,
    domain: z
      .string()
      .nullable()
      .describe(
        'The registrable domain of the website, by the public suffix list; null where it has none.',
      ),
    verified: z.boolean(),
    env_prefix: z.string().nullable().describe(`${prefixText} null where nothing is verified.`),
    challenge: z
      .strictObject({
        dns: z.strictObject({ name: z.string(), type: z.literal('TXT'), value: z.string() }),
        file: z.strictObject({
          url: z.string(),
          content: z.string().describe('One of its lines.'),
        }),
      })
      .nullable()
      .describe(
        'One of both is enough. It is good for this organization, service and domain alone.',
      ),
  })
  .meta({ id: 'GateServiceDomain' })

export const completeList = <T extends z.ZodType>(item: T) =>
  z.strictObject({ data: z.array(item), meta })

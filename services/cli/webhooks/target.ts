import type { Command } from 'commander'
import { z } from 'zod'
import { subscribableTypes } from '../../../infra/wire/webhooks/events.ts'
import type { Environment } from '../../../schemas/events.ts'
import { baseUrl, idOf, wordOf } from '../arguments.ts'
import { askServer } from '../ask-server.ts'
import { readCredentials, required } from '../credentials.ts'

export interface TargetFlags {
  baseUrl?: string
  secretKey?: string
  organization?: string
  environment: Environment
}

export interface Target {
  baseUrl: string
  secretKey: string
  publishableKey: string | undefined
  organizationId: string
  /** The key's: an endpoint gets the events of one environment only. */
  environment: Environment
}

export function withTarget(command: Command): Command {
  const flag = '--base-url <url>'
  return command
    .option(flag, 'the server (default: from credentials.json in DATA_DIR)', baseUrl({ command, flag }))
    .option('--secret-key <key>', 'with webhooks:read and webhooks:manage (default: from credentials.json)')
    .option(
      '--organization <id>',
      "the key's organization, org_... (default: from credentials.json)",
      idOf('org'),
    )
    .option(
      '--environment <name>',
      'whose keys of credentials.json: live or test',
      wordOf<Environment>('live', 'test'),
      'live',
    )
}

export async function readTarget(flags: TargetFlags): Promise<Target> {
  const known = await readCredentials()
  const keys = known?.[flags.environment]
  const secretKey = required(flags.secretKey ?? keys?.secret_key, '--secret-key')
  return {
    baseUrl: required(flags.baseUrl ?? known?.base_url, '--base-url').replace(/\/+$/, ''),
    secretKey,
    publishableKey: secretKey === keys?.secret_key ? keys.publishable_key : undefined,
    organizationId: required(flags.organization ?? known?.organization_id, '--organization'),
    environment: secretKey.startsWith('sk_test_') ? 'test' : 'live',
  }
}

/** What these commands read of a webhook endpoint; `signing_secret` only where it was just made. */
export const ownEndpointSchema = z.object({
  id: z.string(),
  url: z.string(),
  status: z.enum(['active', 'disabled']),
  event_types: z.array(z.enum(subscribableTypes)),
  signing_secret: z.string().optional(),
})
export type OwnEndpoint = z.infer<typeof ownEndpointSchema>

interface Request<T> {
  method: 'GET' | 'POST' | 'PATCH'
  // Below `/v1/organizations/{organizationId}`.
  path: string
  body?: object
  schema: z.ZodType<T>
}

/** Asks the API of one organization. ApiError: what the server refused; see askServer. */
export interface Api {
  request<T>(request: Request<T>): Promise<T>
}

export function createOrganizationApi({ baseUrl, secretKey, organizationId }: Target): Api {
  const base = `/v1/organizations/${organizationId}`
  return {
    request: ({ path, ...request }) =>
      askServer({ ...request, baseUrl, path: base + path, bearer: secretKey }),
  }
}

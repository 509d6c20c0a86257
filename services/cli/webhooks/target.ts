import type { Command } from 'commander'
import { z } from 'zod'
import type { Environment } from '../../../schemas/events.ts'
import { baseUrl, choice, idArgument } from '../arguments.ts'
import { readCredentials, requireValue } from '../credentials.ts'
import { requestServer, type ServerRequest } from '../request-server.ts'

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
  /** Environment of the secret key, and of all events that its endpoints receive. */
  environment: Environment
}

export function addTargetOptions(command: Command): Command {
  const flag = '--base-url <url>'
  return command
    .option(
      flag,
      'URL of the server (default: from credentials.json in DATA_DIR)',
      baseUrl({ command, flag }),
    )
    .option(
      '--secret-key <key>',
      'with webhooks:read and webhooks:manage (default: from credentials.json)',
    )
    .option(
      '--organization <id>',
      'organization of the secret key, org_... (default: from credentials.json)',
      idArgument('org'),
    )
    .option(
      '--environment <name>',
      'keys to use from credentials.json: live or test',
      choice<Environment>('live', 'test'),
      'live',
    )
}

export async function readTarget(flags: TargetFlags): Promise<Target> {
  const credentials = await readCredentials()
  const keys = credentials?.[flags.environment]
  const secretKey = requireValue(flags.secretKey ?? keys?.secret_key, '--secret-key')
  return {
    baseUrl: requireValue(flags.baseUrl ?? credentials?.base_url, '--base-url').replace(/\/+$/, ''),
    secretKey,
    publishableKey: secretKey === keys?.secret_key ? keys.publishable_key : undefined,
    organizationId: requireValue(
      flags.organization ?? credentials?.organization_id,
      '--organization',
    ),
    environment: secretKey.startsWith('sk_test_') ? 'test' : 'live',
  }
}

export const endpointStatusSchema = z.object({
  id: z.string(),
  status: z.enum(['active', 'disabled']),
})

/**
 * Calls the API of the target's organization and returns the response data. `path` is relative to
 * `/v1/organizations/{organizationId}`. Throws as requestServer does.
 */
export function requestOrganization<T>(
  { baseUrl, secretKey: bearer, organizationId }: Target,
  { path, ...request }: Pick<ServerRequest<T>, 'method' | 'path' | 'body' | 'schema'>,
): Promise<T> {
  return requestServer({
    ...request,
    baseUrl,
    path: `/v1/organizations/${organizationId}${path}`,
    bearer,
  })
}

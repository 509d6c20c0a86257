import type { Command } from 'commander'
import { z } from 'zod'
import type { Environment } from '../../../schemas/events.ts'
import { baseUrl, idOf, wordOf } from '../arguments.ts'
import { askServer, type ServerRequest } from '../ask-server.ts'
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
  /** The environment of the key. An endpoint gets only its events. */
  environment: Environment
}

export function withTarget(command: Command): Command {
  const flag = '--base-url <url>'
  return command
    .option(
      flag,
      'the server (default: from credentials.json in DATA_DIR)',
      baseUrl({ command, flag }),
    )
    .option(
      '--secret-key <key>',
      'with webhooks:read and webhooks:manage (default: from credentials.json)',
    )
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

/** What these commands read of a webhook endpoint. */
export const ownEndpointSchema = z.object({
  id: z.string(),
  status: z.enum(['active', 'disabled']),
})

/**
 * What the API of the target's organization answers. `path` is below `/v1/organizations/{organizationId}`. ApiError: what
 * the server refused; see askServer.
 */
export function askOrganization<T>(
  { baseUrl, secretKey: bearer, organizationId }: Target,
  { path, ...request }: Pick<ServerRequest<T>, 'method' | 'path' | 'body' | 'schema'>,
): Promise<T> {
  return askServer({
    ...request,
    baseUrl,
    path: `/v1/organizations/${organizationId}${path}`,
    bearer,
  })
}

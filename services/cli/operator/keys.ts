import type { Command } from 'commander'
import { loadLastUses } from '../../../infra/access/key-usage.ts'
import { defaultScopes } from '../../../infra/access/principal.ts'
import { listKeys } from '../../../projections/organizations/queries.ts'
import type { ApiKeyRow } from '../../../projections/organizations/tables.ts'
import type { Environment, KeyType } from '../../../schemas/events.ts'
import {
  type IssuedKey,
  issueApiKey,
  revokeApiKey,
  rotateApiKey,
} from '../../organizations/commands.ts'
import { apiKeyJson, storedTarget } from '../../organizations/schemas.ts'
import type { Core } from '../../server/dependencies.ts'
import { choice, commaList, instant, jsonFlag } from '../arguments.ts'
import { keyTable } from '../tables.ts'
import {
  asOperator,
  type CommandOutcome,
  type OperatorOptions,
  organizationCommand,
  requireKey,
  requireOrganization,
  runAndPrint,
} from './run.ts'

export function defineKeys(keys: Command): void {
  createCommand(keys)
  organizationCommand(
    keys,
    { name: 'list', description: 'List keys, newest first, including revoked ones' },
    async (core, organizationId) => keysOutcome(core, await listAllKeys(core, organizationId)),
  ).option(...jsonFlag)
  keyCommand(keys, {
    name: 'rotate',
    description: 'Replace a key and print the new one; the old key works for another 24 hours',
    run: async (core, key) =>
      revealedOutcome(
        core,
        key.organizationId,
        await rotateApiKey(asOperator(core, 'keys rotate'), key),
      ),
  })
  keyCommand(keys, {
    name: 'revoke',
    description: 'Revoke a key permanently, on every server within 15 seconds',
    async run(core, key) {
      await revokeApiKey(asOperator(core, 'keys revoke'), key)
      const { data, text } = await keysOutcome(core, [
        await requireKey(core.pool, key.organizationId, key.keyId),
      ])
      return { data: data[0] ?? {}, text }
    },
  })
}

async function keysOutcome({ pool }: Core, keys: ApiKeyRow[]) {
  const lastUses = await loadLastUses(
    pool,
    keys.map(({ id }) => id),
  )
  const data = keys.map((key) => apiKeyJson(key, { lastUsedAt: lastUses.get(key.id) }))
  return { data, text: keyTable(keys) }
}

const pageSize = 200

async function listAllKeys({ pool }: Core, organizationId: string): Promise<ApiKeyRow[]> {
  const keys: ApiKeyRow[] = []
  for (;;) {
    const last = keys.at(-1)
    const after = last && { createdAt: last.created_at, id: last.id }
    const page = await listKeys(pool, organizationId, { limit: pageSize, after })
    keys.push(...page.rows)
    if (!page.hasMore) return keys
  }
}

type Target = Parameters<typeof storedTarget>[0]

interface CreateFlags extends OperatorOptions {
  name: string
  type?: KeyType
  environment: Environment
  scopes?: string[]
  origins?: string[]
  clientTarget?: Target
  expiresAt?: number
}

function createCommand(keys: Command): void {
  organizationCommand(
    keys,
    { name: 'create', description: 'Create a key and print it; a secret key is shown only once' },
    async (
      core,
      organizationId,
      { origins: allowed_origins, clientTarget, expiresAt: expires_at, ...flags }: CreateFlags,
    ) => {
      const { name, type, environment } = flags
      const { scopes = type === 'secret' ? [...defaultScopes] : undefined } = flags
      const client_target = clientTarget && storedTarget(clientTarget)
      const request = {
        name,
        type,
        environment,
        scopes,
        allowed_origins,
        client_target,
        expires_at,
      }
      const command = { ...request, organizationId, by: 'operator' } as const
      return revealedOutcome(
        core,
        organizationId,
        await issueApiKey(asOperator(core, 'keys create'), command),
      )
    },
  )
    .requiredOption('--name <name>', '1-100 characters')
    .option(
      '--type <type>',
      'secret or publishable (default: publishable with --origins or --client-target, else secret)',
      choice('secret', 'publishable'),
    )
    .option('--environment <name>', 'live or test', choice('live', 'test'), 'live')
    .option(
      '--scopes <list>',
      `scopes of a secret key, comma-separated; needs --type secret (default: ${defaultScopes.join(',')})`,
      commaList,
    )
    .option(
      '--origins <list>',
      'allowed origins of a publishable key, comma-separated (default: any)',
      commaList,
    )
    .option(
      '--client-target <client>',
      'client of a publishable key: browser, native-ios or native-android',
      choice<Target>('browser', 'native-ios', 'native-android'),
    )
    .option(
      '--expires-at <time>',
      'expiry as a date or time, such as 2027-06-30 (default: the maximum of the organization, or never)',
      instant,
    )
    .option(...jsonFlag)
}

interface KeyCommand {
  name: string
  description: string
  run(
    core: Core,
    key: { organizationId: string; keyId: string; by: 'operator' },
  ): Promise<CommandOutcome>
}

function keyCommand(keys: Command, { name, description, run }: KeyCommand): void {
  keys
    .command(name)
    .description(description)
    .argument('<organization>', 'organization id or slug')
    .argument('<key>', 'key id (key_...), not the key itself')
    .option(...jsonFlag)
    .action((organization: string, id: string, options: OperatorOptions) =>
      runAndPrint(options, async (core) => {
        const { id: organizationId } = await requireOrganization(core.pool, organization)
        const { id: keyId } = await requireKey(core.pool, organizationId, id)
        return run(core, { organizationId, keyId, by: 'operator' })
      }),
    )
}

// Returns an outcome that shows the key itself, not only its preview.
async function revealedOutcome(
  { pool }: Core,
  organizationId: string,
  { keyId, revealedKey }: IssuedKey,
): Promise<CommandOutcome> {
  const key = await requireKey(pool, organizationId, keyId)
  const label = key.type === 'secret' ? 'Key (shown only once, save it now)' : 'Key'
  return {
    data: apiKeyJson(key, { revealedKey }),
    text: `${keyTable([key])}\n\n${label}:\n${revealedKey}`,
  }
}

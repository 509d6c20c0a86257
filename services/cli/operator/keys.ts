import type { Command } from 'commander'
import { lastUsedAt } from '../../../infra/access/key-usage.ts'
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
import { commaList, jsonFlag, wordOf } from '../arguments.ts'
import { keyTable } from '../tables.ts'
import {
  asOperator,
  type CommandOutcome,
  type OperatorOptions,
  operate,
  organizationCommand,
  requireKey,
  requireOrganization,
} from './operate.ts'

export function defineKeys(keys: Command): void {
  createCommand(keys)
  organizationCommand(
    keys,
    { name: 'list', does: 'List its keys, newest first, revoked ones too' },
    async (core, organizationId) => outcomeOf(core, await keysOf(core, organizationId)),
  ).option(...jsonFlag)
  oneKeyCommand(keys, {
    name: 'rotate',
    does: 'Replace a key, print the replacement, and let the key work for 24 more hours',
    run: async (core, key) =>
      revealed(core, key.organizationId, await rotateApiKey(asOperator(core, 'keys rotate'), key)),
  })
  oneKeyCommand(keys, {
    name: 'revoke',
    does: 'End a key for good; every server follows within 15 seconds',
    async run(core, key) {
      await revokeApiKey(asOperator(core, 'keys revoke'), key)
      const { data, text } = await outcomeOf(core, [
        await requireKey(core.pool, key.organizationId, key.keyId),
      ])
      return { data: data[0] ?? {}, text }
    },
  })
}

async function outcomeOf({ pool }: Core, keys: ApiKeyRow[]) {
  const used = await lastUsedAt(
    pool,
    keys.map(({ id }) => id),
  )
  const data = keys.map((key) => apiKeyJson(key, { lastUsedAt: used.get(key.id) }))
  return { data, text: keyTable(keys) }
}

const pageSize = 200

async function keysOf({ pool }: Core, organizationId: string): Promise<ApiKeyRow[]> {
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
}

function createCommand(keys: Command): void {
  organizationCommand(
    keys,
    { name: 'create', does: 'Create a key and print it; a secret key is shown this once' },
    async (
      core,
      organizationId,
      { origins: allowed_origins, clientTarget, ...flags }: CreateFlags,
    ) => {
      const { name, type, environment } = flags
      const { scopes = type === 'secret' ? [...defaultScopes] : undefined } = flags
      const client_target = clientTarget && storedTarget(clientTarget)
      const request = { name, type, environment, scopes, allowed_origins, client_target }
      const command = { ...request, organizationId, by: 'operator' } as const
      return revealed(
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
      wordOf('secret', 'publishable'),
    )
    .option('--environment <name>', 'live or test', wordOf('live', 'test'), 'live')
    .option(
      '--scopes <list>',
      `of a secret key, comma-separated; needs --type secret (default: ${defaultScopes.join(',')})`,
      commaList,
    )
    .option(
      '--origins <list>',
      'that a publishable key works from, comma-separated (default: any)',
      commaList,
    )
    .option(
      '--client-target <client>',
      'browser, native-ios or native-android',
      wordOf<Target>('browser', 'native-ios', 'native-android'),
    )
    .option(...jsonFlag)
}

interface OneKeyCommand {
  name: string
  does: string
  run(
    core: Core,
    key: { organizationId: string; keyId: string; by: 'operator' },
  ): Promise<CommandOutcome>
}

function oneKeyCommand(keys: Command, { name, does, run }: OneKeyCommand): void {
  keys
    .command(name)
    .description(does)
    .argument('<organization>', 'its id or slug')
    .argument('<key>', 'its id (key_...), never its value')
    .option(...jsonFlag)
    .action((organization: string, id: string, options: OperatorOptions) =>
      operate(options, async (core) => {
        const { id: organizationId } = await requireOrganization(core.pool, organization)
        const { id: keyId } = await requireKey(core.pool, organizationId, id)
        return run(core, { organizationId, keyId, by: 'operator' })
      }),
    )
}

async function revealed(
  { pool }: Core,
  organizationId: string,
  { keyId, revealedKey }: IssuedKey,
): Promise<CommandOutcome> {
  const key = await requireKey(pool, organizationId, keyId)
  const once = key.type === 'secret' ? 'The key, shown this once; keep it now' : 'The key'
  return {
    data: apiKeyJson(key, { revealedKey }),
    text: `${keyTable([key])}\n\n${once}:\n${revealedKey}`,
  }
}

import type { Command } from 'commander'
import { lastUsedAt } from '../../../infra/access/key-usage.ts'
import type { Environment, KeyType } from '../../../schemas/events.ts'
import {
  type IssuedKey,
  issueApiKey,
  type KeyPath,
  revokeApiKey,
  rotateApiKey,
} from '../../organizations/commands.ts'
import { apiKeyJson, storedTarget } from '../../organizations/schemas.ts'
import type { Core } from '../../server/dependencies.ts'
import { commaList, jsonFlag, organizationArgument, wordOf } from '../arguments.ts'
import { keyTable } from '../tables.ts'
import {
  asOperator,
  type CommandOutcome,
  keysOfOrganization,
  type OperatorOptions,
  operate,
  requireKey,
  requireOrganization,
} from './operate.ts'

const keyArgument = ['<key>', 'its id (key_...), never its value'] as const

export function defineKeys(keys: Command): void {
  createCommand(keys)
  keys
    .command('list')
    .description('List its keys, newest first, revoked ones too')
    .argument(...organizationArgument)
    .option(...jsonFlag)
    .action((organization: string, options: OperatorOptions) =>
      operate(options, async (core) => {
        const { id } = await requireOrganization(core.pool, organization)
        const rows = await keysOfOrganization(core.pool, id)
        const ids = rows.map((key) => key.id)
        const used = await lastUsedAt(core.pool, ids)
        const data = rows.map((key) => apiKeyJson(key, { lastUsedAt: used.get(key.id) }))
        return { data, text: keyTable(rows) }
      }),
    )
  rotateCommand(keys)
  revokeCommand(keys)
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
  keys
    .command('create')
    .description('Create a key and print it; a secret key is shown this once')
    .argument(...organizationArgument)
    .requiredOption('--name <name>', '1-100 characters')
    .option(
      '--type <type>',
      'secret or publishable (default: publishable with --origins or --client-target, else secret)',
      wordOf('secret', 'publishable'),
    )
    .option('--environment <name>', 'live or test', wordOf('live', 'test'), 'live')
    .option('--scopes <list>', 'of a secret key, comma-separated; needs --type secret', commaList)
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
    .action((organization: string, flags: CreateFlags) =>
      operate(flags, async (core) => {
        const { id: organizationId } = await requireOrganization(core.pool, organization)
        const { name, type, environment, scopes, origins: allowedOrigins } = flags
        const clientTarget = flags.clientTarget && storedTarget(flags.clientTarget)
        const request = { name, type, environment, scopes, allowedOrigins, clientTarget }
        return revealed(
          core,
          organizationId,
          await issueApiKey(asOperator(core, 'keys create'), { ...request, organizationId, by: 'operator' }),
        )
      }),
    )
}

function rotateCommand(keys: Command): void {
  oneKeyCommand(keys, {
    name: 'rotate',
    does: 'Replace a key, print the replacement, and let the key work for 24 more hours',
    run: async (core, key) =>
      revealed(
        core,
        key.organizationId,
        await rotateApiKey(asOperator(core, 'keys rotate'), { ...key, by: 'operator' }),
      ),
  })
}

function revokeCommand(keys: Command): void {
  oneKeyCommand(keys, {
    name: 'revoke',
    does: 'End a key for good; every server follows within 15 seconds',
    async run(core, { organizationId, keyId }) {
      await revokeApiKey(asOperator(core, 'keys revoke'), { organizationId, keyId, by: 'operator' })
      const key = await requireKey(core.pool, organizationId, keyId)
      const used = await lastUsedAt(core.pool, [keyId])
      return { data: apiKeyJson(key, { lastUsedAt: used.get(keyId) }), text: keyTable([key]) }
    },
  })
}

interface OneKeyCommand {
  name: string
  does: string
  run: (core: Core, key: KeyPath) => Promise<CommandOutcome>
}

function oneKeyCommand(keys: Command, { name, does, run }: OneKeyCommand): void {
  keys
    .command(name)
    .description(does)
    .argument(...organizationArgument)
    .argument(...keyArgument)
    .option(...jsonFlag)
    .action((organization: string, id: string, options: OperatorOptions) =>
      operate(options, async (core) => {
        const { id: organizationId } = await requireOrganization(core.pool, organization)
        const { id: keyId } = await requireKey(core.pool, organizationId, id)
        return run(core, { organizationId, keyId })
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
  return { data: apiKeyJson(key, { revealedKey }), text: `${keyTable([key])}\n\n${once}:\n${revealedKey}` }
}

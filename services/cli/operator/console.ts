import { type Command, InvalidArgumentError } from 'commander'
import { organizationFor } from '../../../infra/access/organization.ts'
import { asId } from '../../../infra/ids.ts'
import { characterCount, isPlainText } from '../../../infra/text.ts'
import type { Environment } from '../../../schemas/events.ts'
import { makeLoginLink } from '../../console/commands.ts'
import { type ConsoleRole, roleNames } from '../../console/decide.ts'
import type { Core } from '../../server/dependencies.ts'
import { consoleUrlOf } from '../../server/http.ts'
import { baseUrl, jsonFlag, wordOf } from '../arguments.ts'
import { readCredentials } from '../credentials.ts'
import {
  type CommandOutcome,
  type OperatorOptions,
  operate,
  requireOrganization,
} from './operate.ts'

interface LoginFlags extends OperatorOptions {
  role: ConsoleRole
  environment: Environment | 'both'
  name: string
  url?: string
}

export function defineConsole(consoles: Command): void {
  const login = consoles
    .command('login')
    .description('Print a link that logs in once, within five minutes')
    .argument('<organization>', 'its id or slug')
    .requiredOption('--role <role>', roleNames.join(', '), wordOf(...roleNames))
    .requiredOption(
      '--environment <environment>',
      'live, test or both',
      wordOf('live', 'test', 'both'),
    )
    .requiredOption(
      '--name <name>',
      'who logs in, 1-120 characters; on no log, and deleted after 30 days',
      name,
    )
  login
    .option(
      '--url <url>',
      'where the console is (default: PUBLIC_URL)',
      baseUrl({ command: login, flag: '--url <url>' }),
    )
    .option(...jsonFlag)
    .action((organization: string, flags: LoginFlags) =>
      operate(flags, (core) => loginOutcome(core, { ...flags, organization })),
    )
}

async function loginOutcome(
  core: Core,
  { organization, role, environment, name, url }: LoginFlags & { organization: string },
): Promise<CommandOutcome> {
  const { id } = organizationFor(await requireOrganization(core.pool, organization), 'key')
  const environments: Environment[] = environment === 'both' ? ['live', 'test'] : [environment]
  const rights = { organizationId: asId('org', id), role, environments, name }
  const link = await makeLoginLink(core, {
    ...rights,
    consoleUrl: url ?? (await settingsUrl(core)),
  })
  return { data: { object: 'console_link', url: link, role, environments, name }, text: link }
}

async function settingsUrl({ config }: Core): Promise<string> {
  const known =
    config.PUBLIC_URL ?? (config.DATABASE_URL ? undefined : (await readCredentials())?.base_url)
  if (known || config.CONSOLE_PORT) return consoleUrlOf(config, known ?? '')
  throw new Error('PUBLIC_URL is not set: name the address of the console with --url.')
}

function name(text: string): string {
  const trimmed = text.trim()
  if (trimmed !== '' && characterCount(trimmed) <= 120 && isPlainText(trimmed)) return trimmed
  throw new InvalidArgumentError('It must have 1-120 characters, and no control characters.')
}

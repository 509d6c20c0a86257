import { type Command, InvalidArgumentError } from 'commander'
import { requireUsableOrganization } from '../../../infra/access/organization.ts'
import { asId } from '../../../infra/ids.ts'
import { characterCount, isPlainText } from '../../../infra/text.ts'
import type { Environment } from '../../../schemas/events.ts'
import { createLoginLink } from '../../console/commands.ts'
import { type ConsoleRole, roleNames } from '../../console/decide.ts'
import type { Core } from '../../server/dependencies.ts'
import { consoleUrlOf } from '../../server/http.ts'
import { baseUrl, choice, jsonFlag } from '../arguments.ts'
import { readCredentials } from '../credentials.ts'
import {
  type CommandOutcome,
  type OperatorOptions,
  requireOrganization,
  runAndPrint,
} from './run.ts'

interface LoginFlags extends OperatorOptions {
  role: ConsoleRole
  environment: Environment | 'both'
  name: string
  url?: string
}

export function defineConsole(command: Command): void {
  const login = command
    .command('login')
    .description('Print a single-use login link that is valid for five minutes')
    .argument('<organization>', 'organization id or slug')
    .requiredOption('--role <role>', roleNames.join(', '), choice(...roleNames))
    .requiredOption(
      '--environment <environment>',
      'live, test or both',
      choice('live', 'test', 'both'),
    )
    .requiredOption(
      '--name <name>',
      'name of the person who logs in, 1-120 characters; not on the event log, deleted after 30 days',
      name,
    )
  login
    .option(
      '--url <url>',
      'URL of the console (default: PUBLIC_URL)',
      baseUrl({ command: login, flag: '--url <url>' }),
    )
    .option(...jsonFlag)
    .action((organization: string, flags: LoginFlags) =>
      runAndPrint(flags, (core) => loginOutcome(core, { ...flags, organization })),
    )
}

async function loginOutcome(
  core: Core,
  { organization, role, environment, name, url }: LoginFlags & { organization: string },
): Promise<CommandOutcome> {
  const { id } = requireUsableOrganization(
    await requireOrganization(core.pool, organization),
    'key',
  )
  const environments: Environment[] = environment === 'both' ? ['live', 'test'] : [environment]
  const loginLink = { organizationId: asId('org', id), role, environments, name }
  const link = await createLoginLink(core, {
    ...loginLink,
    consoleUrl: url ?? (await defaultConsoleUrl(core)),
  })
  return { data: { object: 'console_link', url: link, role, environments, name }, text: link }
}

async function defaultConsoleUrl({ config }: Core): Promise<string> {
  const publicUrl =
    config.PUBLIC_URL ?? (config.DATABASE_URL ? undefined : (await readCredentials())?.base_url)
  if (publicUrl || config.CONSOLE_PORT) return consoleUrlOf(config, publicUrl ?? '')
  throw new Error('PUBLIC_URL is not set: pass the URL of the console with --url.')
}

function name(text: string): string {
  const trimmed = text.trim()
  if (trimmed !== '' && characterCount(trimmed) <= 120 && isPlainText(trimmed)) return trimmed
  throw new InvalidArgumentError('It must be 1-120 characters, without control characters.')
}

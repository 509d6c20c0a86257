import { setTimeout as delay } from 'node:timers/promises'
import { Argument, type Command, InvalidArgumentError } from 'commander'
import { baseUrl } from '../webhooks/arguments.ts'
import { tellSignupFailure } from './failure.ts'
import { createGateApi } from './gate-api.ts'
import { listServices } from './list.ts'
import { logIn } from './login.ts'
import { jsonReport, textReport } from './report.ts'
import { defaultAccountName, metadata, seconds, serverUrl } from './settings.ts'
import { signUp } from './sign-up.ts'

interface Flags {
  baseUrl?: string
  accountName?: string
  envFile: string
  metadata?: Record<string, string>
  overwrite: boolean
  open: boolean
  timeout?: number
  json: boolean
}

const help = `
tidegate signup <service>         asks for an account; credentials end up in the env file
tidegate signup <service> login   opens the dashboard of an account, with the agent token in the env file
tidegate signup list              shows what there is to sign up for`

/** `tidegate signup`: accounts that an agent asks for and a person approves in a browser. */
export function registerSignup(program: Command): void {
  const command = program.command('signup')
  const flag = '--base-url <url>'
  command
    .description('Sign up for a service; a person approves in a browser')
    .addArgument(new Argument('<service>', 'its id, or "list"').argParser(serviceId))
    .addArgument(new Argument('[action]', '"login" opens its dashboard instead').choices(['login']))
    .option(flag, 'the server (default: TIDEGATE_URL, or a running tidegate dev)', baseUrl({ command, flag }))
    .option('--account-name <name>', "of the account (default: the user's in git, or the folder's)")
    .option('--env-file <path>', 'where credentials are written', '.env')
    .option('--metadata <key=value>', 'for the service; up to five times', metadata)
    .option('--overwrite', 'replace variables that the env file has', false)
    .option('--no-open', 'do not open a browser')
    .option('--timeout <seconds>', 'cancel when nobody has decided by then', seconds)
    .option('--json', 'print a JSON line for each event', false)
    .addHelpText('after', help)
    .action((service: string, action: 'login' | undefined, flags: Flags) => run({ service, action, flags }))
}

interface Asked {
  service: string
  action: 'login' | undefined
  flags: Flags
}

async function run({ service, action, flags }: Asked): Promise<void> {
  if (service === 'list' && !action) return listServices(flags)
  const { overwrite, open, json, envFile } = flags
  try {
    const api = createGateApi(await serverUrl(flags.baseUrl))
    if (action) return await logIn(api, { serviceId: service, envFile, open, json })
    const report = json ? jsonReport() : textReport({ open, json })
    const options = {
      serviceId: service,
      accountName: flags.accountName ?? (await defaultAccountName()),
      metadata: flags.metadata ?? {},
      envFile: { file: envFile, overwrite },
    }
    const parts = { api, report, sleep, now: Date.now, stop: stopSignal(flags) }
    await signUp(options, parts).finally(report.end)
  } catch (error) {
    tellSignupFailure(error, { json })
  }
}

const echoMs = 1000

/** Aborted by Ctrl-C or when the time is over. A later Ctrl-C ends the process at once. */
function stopSignal({ timeout }: Flags): AbortSignal {
  const controller = new AbortController()
  let since: number | undefined
  const onSignal = () => {
    // One Ctrl-C in a terminal arrives twice: from the terminal, and passed on by npm.
    if (since !== undefined && performance.now() - since > echoMs) process.exit(130)
    since ??= performance.now()
    controller.abort('interrupted')
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  if (timeout !== undefined) setTimeout(() => controller.abort('timed_out'), timeout * 1000).unref()
  return controller.signal
}

async function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await delay(ms, undefined, signal ? { signal } : {}).catch(() => {})
}

function serviceId(text: string): string {
  if (/^[a-z0-9][a-z0-9_-]{1,30}[a-z0-9]$/.test(text)) return text
  throw new InvalidArgumentError('It must be the id of a service: 3-32 lower-case letters, digits, - and _.')
}

import { setTimeout as delay } from 'node:timers/promises'
import { Argument, type Command } from 'commander'
import { ApiError } from '../../../infra/errors/errors.ts'
import { baseUrl } from '../arguments.ts'
import { textTable } from '../tables.ts'
import type { Patience } from './decision.ts'
import { SignupFailed, tellSignupFailure } from './failure.ts'
import { createGateApi, type GateApi, persistently, type RegistryEntry } from './gate-api.ts'
import { jsonReport, textReport } from './report.ts'
import { defaultAccountName, metadata, seconds, serverUrl, serviceId, typed } from './settings.ts'
import { logIn, signUp } from './sign-up.ts'

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

const defaultEnvFile = '.env'

const help = `
tidegate signup <service>         asks for an account; credentials end up in the env file
tidegate signup <service> login   opens the dashboard of an account, with the agent token in the env file
tidegate signup list              shows what there is to sign up for

"tidegate" stands for "npm run -s tidegate --" here.

With --json standard output has one JSON document a line. A signup: {"event": "consent_required", ...}, perhaps
"warning" and "in_progress" (a person has approved, the service makes the account), at the end "approved" or "failed".
A login: "consent_required". list: {"data": [...]}. Whatever fails: {"event": "failed", "error": {...}}, exit code 1.`

export function defineSignup(command: Command): void {
  const flag = '--base-url <url>'
  const id = serviceId({ command, of: "argument '<service>'" })
  command
    .addArgument(new Argument('<service>', 'its id, or "list"').argParser(id))
    .addArgument(new Argument('[action]', '"login" opens its dashboard instead').choices(['login']))
    .option(flag, 'the server (default: TIDEGATE_URL, or a running tidegate dev)', baseUrl({ command, flag }))
    .option('--account-name <name>', "of the account (default: the user's in git, or the folder's)")
    .option('--env-file <path>', 'where credentials are written', defaultEnvFile)
    .option('--metadata <key=value>', 'for the service; up to five times', metadata)
    .option('--overwrite', 'replace variables that the env file has', false)
    .option('--no-open', 'do not open a browser')
    .option('--timeout <seconds>', 'give up when there are no credentials by then', seconds)
    .option('--json', 'print a JSON line for each event', false)
    .addHelpText('after', help)
    .action((service: string, action: 'login' | undefined, flags: Flags) => {
      refuseOthers(command, service === 'list' && !action ? 'list' : action)
      return run({ service, action, flags })
    })
}

const optionsOf = {
  login: ['baseUrl', 'envFile', 'open', 'json'],
  list: ['baseUrl', 'json'],
}

function refuseOthers(command: Command, action: 'login' | 'list' | undefined): void {
  if (!action) return
  const ignored = command.options.find((option) => {
    const name = option.attributeName()
    return command.getOptionValueSource(name) === 'cli' && !optionsOf[action].includes(name)
  })
  if (ignored) command.error(`error: option '${ignored.flags}' is not one of ${action}`)
}

interface Asked {
  service: string
  action: 'login' | undefined
  flags: Flags
}

async function run({ service, action, flags }: Asked): Promise<void> {
  try {
    const api = createGateApi(await serverUrl(flags.baseUrl))
    if (action) return await logIn(api, loginOptions(service, flags))
    if (service === 'list') return await printServices(api, flags)
    await runSignup(api, service, flags)
  } catch (error) {
    tellSignupFailure(error, flags)
  }
}

function loginOptions(serviceId: string, { envFile, open, json, ...flags }: Flags) {
  return {
    serviceId,
    envFile,
    open,
    json,
    signupCommand: typed('signup', serviceId, ...repeated({ envFile, ...flags })),
  }
}

async function runSignup(api: GateApi, serviceId: string, flags: Flags): Promise<void> {
  const { overwrite, open, json, envFile } = flags
  const loginCommand = typed('signup', serviceId, 'login', ...repeated(flags))
  const report = json ? jsonReport() : textReport({ open, json, loginCommand })
  const options = {
    serviceId,
    accountName: flags.accountName ?? (await defaultAccountName()),
    metadata: flags.metadata ?? {},
    envFile: { file: envFile, overwrite },
  }
  const parts = { api, report, sleep, now: Date.now, ...stopSignals(flags) }
  await signUp(options, parts).finally(report.end)
}

function repeated({ baseUrl: url, envFile }: Pick<Flags, 'baseUrl' | 'envFile'>): string[] {
  return [
    ...(envFile === defaultEnvFile ? [] : ['--env-file', envFile]),
    ...(url === undefined ? [] : ['--base-url', url]),
  ]
}

async function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await delay(ms, undefined, signal ? { signal } : {}).catch(() => {})
}

export async function printServices(
  api: Pick<GateApi, 'baseUrl' | 'services'>,
  { json }: { json: boolean },
): Promise<void> {
  const services = await persistently(api.services).catch((cause: unknown) => {
    if (!(cause instanceof ApiError && cause.status === 404)) throw cause
    const message = `${api.baseUrl} has no list of services: give the address of the server, without the path of a page.`
    throw new ApiError('request.not_found', { message, cause })
  })
  console.log(json ? JSON.stringify({ data: services }) : registryTable(services))
}

function registryTable(services: RegistryEntry[]): string {
  const head = ['id', 'name', 'verified', 'website', 'gives out', 'dashboard']
  return textTable(
    head,
    services.map(({ id, name, branding, website, env_vars, dashboard_login_url }) => [
      ...[id, name, branding.verified ? 'yes' : 'no', website],
      env_vars.map(({ key }) => key).join('\n') || null,
      dashboard_login_url ? 'yes' : 'no',
    ]),
  )
}

const echoMs = 1000

const givenUp =
  'Given up. Where a person has approved already the account may still be made; its credentials are lost then.'

/** Aborted by Ctrl-C or when the time, in seconds, is over. A later Ctrl-C says so and ends the process at once. */
export function stopSignals({ timeout, json }: { timeout?: number; json: boolean }): Patience {
  const [stop, timeUp] = [new AbortController(), new AbortController()]
  let since: number | undefined
  const onSignal = () => {
    // One Ctrl-C in a terminal arrives twice: from the terminal, and passed on by npm.
    if (since !== undefined && performance.now() - since > echoMs) {
      tellSignupFailure(new SignupFailed('interrupted', givenUp), { json })
      process.exit(130)
    }
    since ??= performance.now()
    stop.abort('interrupted')
  }
  const onTimeUp = () => {
    stop.abort('timed_out')
    timeUp.abort('timed_out')
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  if (timeout !== undefined) setTimeout(onTimeUp, timeout * 1000).unref()
  return { stop: stop.signal, timeUp: timeUp.signal }
}

import { setTimeout as delay } from 'node:timers/promises'
import { ApiError } from '../../../infra/errors/errors.ts'
import { commandLine } from '../command-line.ts'
import { onStopSignals } from '../stop-signals.ts'
import { tableOf } from '../tables.ts'
import { createClaimCodes } from './claim-codes.ts'
import type { StopSignals } from './decision.ts'
import { reportSignupFailure, SignupFailed } from './failure.ts'
import { createGateApi, type GateApi, type RegistryEntry, withRetries } from './gate-api.ts'
import { jsonReport, textReport } from './report.ts'
import { defaultAccountName, defaultEnvFile, serverUrl } from './settings.ts'
import { logIn, signUp } from './sign-up.ts'

export interface SignupFlags {
  baseUrl?: string
  accountName?: string
  envFile?: string
  stdout?: true
  metadata?: Record<string, string>
  open: boolean
  timeout?: number
  json: boolean
  codeFile?: string
}

export async function runSignup(
  service: string,
  action: 'login' | undefined,
  flags: SignupFlags,
): Promise<void> {
  try {
    const api = createGateApi(await serverUrl(flags.baseUrl))
    if (action)
      return await logIn(api, {
        ...flags,
        serviceId: service,
        envFile: flags.envFile ?? defaultEnvFile(service),
        signupCommand: commandLine('signup', service, ...repeatedOptions(flags)),
      })
    if (service === 'list') return await printServices(api, flags)
    await signUpAt(api, service, flags)
  } catch (error) {
    reportSignupFailure(error, flags)
  }
}

async function signUpAt(api: GateApi, serviceId: string, flags: SignupFlags): Promise<void> {
  const { open, json, stdout } = flags
  const loginCommand = commandLine('signup', serviceId, 'login', ...repeatedOptions(flags))
  const report = json
    ? jsonReport()
    : textReport({ open, json, loginCommand, ...(stdout && { print: console.error }) })
  const options = {
    serviceId,
    accountName: flags.accountName ?? (await defaultAccountName()),
    metadata: flags.metadata ?? {},
    envFile: stdout ? undefined : (flags.envFile ?? defaultEnvFile(serviceId)),
  }
  const codes = createClaimCodes({ input: process.stdin, file: flags.codeFile })
  const deps = { api, report, codes, print, sleep, now: Date.now, ...createStopSignals(flags) }
  await signUp(options, deps).finally(codes.close)
}

// Returns the options to repeat in a suggested command line.
function repeatedOptions({
  baseUrl: url,
  envFile,
}: Pick<SignupFlags, 'baseUrl' | 'envFile'>): string[] {
  return [
    ...(envFile === undefined ? [] : ['--env-file', envFile]),
    ...(url === undefined ? [] : ['--base-url', url]),
  ]
}

function print(text: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  process.stdout.write(text, (error) => (error ? reject(error) : resolve()))
  return promise
}

async function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await delay(ms, undefined, signal ? { signal } : {}).catch(() => {})
}

export async function printServices(
  api: Pick<GateApi, 'baseUrl' | 'services'>,
  { json }: { json: boolean },
): Promise<void> {
  const services = await withRetries(api.services).catch((cause: unknown) => {
    if (!(cause instanceof ApiError && cause.status === 404)) throw cause
    const message = `${api.baseUrl} has no list of services: --base-url must be the URL of the server, without the path of a page.`
    throw new ApiError('request.not_found', { message, cause })
  })
  console.log(json ? JSON.stringify({ data: services }) : registryTable(services))
}

function registryTable(services: RegistryEntry[]): string {
  return tableOf(services, {
    id: ({ id }) => id,
    name: ({ name }) => name,
    verified: ({ branding }) => (branding.verified ? 'yes' : 'no'),
    website: ({ website }) => website,
    variables: ({ env_vars }) => env_vars.map(({ key }) => key).join('\n') || null,
    dashboard: ({ dashboard_login_url }) => (dashboard_login_url ? 'yes' : 'no'),
  })
}

const abandonedMessage =
  'Stopped. If a person already approved, the service may still create the account, but its credentials are lost.'

/** Returns signals that Ctrl-C or the timeout (in seconds) aborts. A second Ctrl-C prints a failure and exits. */
function createStopSignals({ timeout, json }: { timeout?: number; json: boolean }): StopSignals {
  const [stop, timeUp] = [new AbortController(), new AbortController()]
  onStopSignals(
    () => stop.abort('interrupted'),
    () => {
      reportSignupFailure(new SignupFailed('interrupted', abandonedMessage), { json })
      process.exit(130)
    },
  )
  const onTimeUp = () => {
    stop.abort('timed_out')
    timeUp.abort('timed_out')
  }
  if (timeout !== undefined) setTimeout(onTimeUp, timeout * 1000).unref()
  return { stop: stop.signal, timeUp: timeUp.signal }
}

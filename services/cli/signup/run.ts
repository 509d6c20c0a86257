import { setTimeout as delay } from 'node:timers/promises'
import { ApiError } from '../../../infra/errors/errors.ts'
import { onStopSignals } from '../lifetime.ts'
import { tableOf } from '../tables.ts'
import { typed } from '../typed.ts'
import { createClaimCodes } from './claim-codes.ts'
import type { Patience } from './decision.ts'
import { SignupFailed, tellSignupFailure } from './failure.ts'
import { createGateApi, type GateApi, persistently, type RegistryEntry } from './gate-api.ts'
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
        signupCommand: typed('signup', service, ...repeated(flags)),
      })
    if (service === 'list') return await printServices(api, flags)
    await signUpAt(api, service, flags)
  } catch (error) {
    tellSignupFailure(error, flags)
  }
}

async function signUpAt(api: GateApi, serviceId: string, flags: SignupFlags): Promise<void> {
  const { open, json, stdout } = flags
  const loginCommand = typed('signup', serviceId, 'login', ...repeated(flags))
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
  const parts = { api, report, codes, print, sleep, now: Date.now, ...stopSignals(flags) }
  await signUp(options, parts).finally(codes.close)
}

function repeated({ baseUrl: url, envFile }: Pick<SignupFlags, 'baseUrl' | 'envFile'>): string[] {
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
  const services = await persistently(api.services).catch((cause: unknown) => {
    if (!(cause instanceof ApiError && cause.status === 404)) throw cause
    const message = `${api.baseUrl} has no list of services: give the address of the server, without the path of a page.`
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
    'gives out': ({ env_vars }) => env_vars.map(({ key }) => key).join('\n') || null,
    dashboard: ({ dashboard_login_url }) => (dashboard_login_url ? 'yes' : 'no'),
  })
}

const abandoned =
  'Given up. Where a person has approved already the account may still be made; its credentials are lost then.'

/** Aborted by Ctrl-C or when the time, in seconds, is over. A later Ctrl-C says so and ends the process at once. */
function stopSignals({ timeout, json }: { timeout?: number; json: boolean }): Patience {
  const [stop, timeUp] = [new AbortController(), new AbortController()]
  onStopSignals(
    () => stop.abort('interrupted'),
    () => {
      tellSignupFailure(new SignupFailed('interrupted', abandoned), { json })
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

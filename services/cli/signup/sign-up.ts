import { randomBytes } from 'node:crypto'
import { ApiError } from '../../../infra/errors/errors.ts'
import { errorMessage } from '../../../infra/thrown.ts'
import {
  type DeliveryEnvelope,
  generateDeliveryKeys,
  openEnvelope,
} from '../../../infra/wire/delivery-envelope.ts'
import { agentTokenEnvName } from '../../../infra/wire/gate.ts'
import { printable } from '../tables.ts'
import { typed } from '../typed.ts'
import type { ClaimCodes } from './claim-codes.ts'
import { awaitDecision, type Patience, type SignupOutcome } from './decision.ts'
import { committable, readValues, requireNewFile } from './env-file.ts'
import { failureOf, SignupFailed } from './failure.ts'
import { type CreatedSession, type GateApi, persistently, type RegistryEntry } from './gate-api.ts'
import { openPage, type PageFlags, printConsent, type SignupReport } from './report.ts'
import {
  acceptedOutputs,
  agentTokenVariable,
  type Outputs,
  printedText,
  storeValues,
} from './store.ts'

export interface SignupParts extends Patience {
  api: GateApi
  report: SignupReport
  codes: ClaimCodes
  /** Writes to standard output. */
  print(text: string): Promise<void>
  sleep(ms: number, stop: AbortSignal | undefined): Promise<void>
  now(): number
}

interface SignupOptions {
  serviceId: string
  accountName: string
  metadata: Record<string, string>
  /** A new file; undefined = what the service gives out is printed. */
  envFile: string | undefined
}

/**
 * Asks for an account, waits for a person's decision, and writes what the service gives out to a new env file. Rejects
 * with SignupFailed, as askServer does, or with what is wrong with the file.
 */
export async function signUp(
  { serviceId, accountName, metadata, envFile }: SignupOptions,
  parts: SignupParts,
): Promise<void> {
  const { api, report } = parts
  const service = await requireService(api, serviceId)
  const announced = announcedNames(service)
  const owner = { serviceId, prefix: service.env_prefix }
  if (envFile !== undefined) await requireRoom(envFile)
  const { privateKey, delivery } = generateDeliveryKeys()
  const idempotencyKey = randomBytes(16).toString('hex')
  const session = await persistently(() =>
    api.createSession({ serviceId, accountName, metadata, delivery, idempotencyKey }),
  )
  await report.consentRequired({ service, session, accountName })
  const approved = await approval(session, parts)
  const open = (envelope: DeliveryEnvelope) => openEnvelope(envelope, privateKey)
  const { integrator, gate } = approved.delivery_bundle
  const [fromService, fromGate] = [open(integrator), open(gate)]
  const outputs = acceptedOutputs({ ...owner, integrator: fromService, gate: fromGate })
  const { values, skipped } = outputs
  const accepted = new Set(approved.accepted_env_vars)
  const received = { ...owner, gateSessionId: session.id, values, announced, accepted }
  const stored =
    envFile === undefined
      ? []
      : await storeValues(envFile, received).catch((error) => notWritten(envFile, error))
  if (envFile === undefined) await parts.print(printedText(received))
  const missing = missingNames(announced, outputs)
  if (missing.length > 0)
    report.warning(`${serviceId} announced ${missing.join(', ')}, which it did not deliver.`)
  const acknowledged = await acknowledge(api, { session, ackToken: fromGate.ack_token })
  report.approved({
    service,
    session,
    stored,
    skipped,
    missing,
    acknowledged,
    gateAccountId: approved.gate_account_id,
    accountName: approved.account_name,
    committable: await committable(stored.map(({ file }) => file)),
  })
}

function requireService(api: GateApi, serviceId: string): Promise<RegistryEntry> {
  return persistently(() => api.service(serviceId)).catch((error: unknown) => {
    if (!(error instanceof ApiError && error.status === 404)) throw error
    const message = `No service "${serviceId}" takes signups on ${api.baseUrl}. To see those that do: ${typed('signup', 'list')}`
    throw new ApiError('request.not_found', { message, cause: error })
  })
}

async function requireRoom(envFile: string): Promise<void> {
  await requireNewFile(envFile).catch((cause: unknown) => {
    const message =
      `${envFile} cannot be written: ${errorMessage(cause)}. Nothing was created. ` +
      'Name a new file with --env-file, or print the variables with --stdout.'
    throw new Error(message, { cause })
  })
}

function announcedNames(service: RegistryEntry): Set<string> {
  const own = service.env_vars.map(({ key }) => key)
  return new Set(service.dashboard_login_url ? [...own, agentTokenVariable(service.id)] : own)
}

function missingNames(announced: ReadonlySet<string>, { values, skipped }: Outputs): string[] {
  const refused = new Set(skipped.map(({ name }) => name))
  return [...announced].filter((name) => !values.has(name) && !refused.has(name))
}

async function approval(
  session: CreatedSession,
  { api, report, codes, sleep, now, ...patience }: SignupParts,
) {
  const endsAt = Date.parse(session.expires_at)
  const outcome: SignupOutcome = await awaitDecision(
    {
      poll: () => api.poll(session),
      cancel: () => api.cancel(session),
      claim: createClaim({ api, report, codes }, session),
      onWaiting: (waiting) => report.waiting({ ...waiting, remainingMs: endsAt - now() }),
      onTooLate: () => report.warning(tooLate),
      sleep,
      now,
    },
    patience,
  )
  if (outcome.kind === 'approved') return outcome.session
  throw failureOf(outcome)
}

// A wrong code is no failure: the server says when it was the last.
function createClaim(
  { api, report, codes }: Pick<SignupParts, 'api' | 'report' | 'codes'>,
  session: CreatedSession,
): () => Promise<void> {
  let isOpen = false
  return async () => {
    if (!isOpen) report.claimRequired(await codes.open())
    isOpen = true
    const code = await codes.next()
    if (code === undefined) return
    await persistently(() => api.claim(session, code)).catch((error: unknown) => {
      if (!(error instanceof ApiError)) throw error
      report.warning(error.message)
    })
  }
}

const tooLate =
  'It was decided already and cannot be cancelled. The credentials can be opened by this process alone, which waits ' +
  'for them; Ctrl-C once more gives them up.'

// Only this process can open the delivery, and it ends.
function notWritten(envFile: string, error: unknown): never {
  const why = `${envFile} cannot be written: ${errorMessage(error)}`
  throw new SignupFailed('not_written', `${why}. Nothing was acknowledged; sign up again.`)
}

// Whether the server knows that the credentials have arrived. It says so where the answer to an earlier try was lost.
async function acknowledge(
  api: GateApi,
  { session, ackToken }: { session: CreatedSession; ackToken: string | undefined },
): Promise<boolean> {
  if (ackToken === undefined) return false
  return persistently(() => api.acknowledge(session, ackToken)).then(
    () => true,
    (error: unknown) => error instanceof ApiError && error.code === 'gate.delivery_consumed',
  )
}

export interface LoginOptions extends PageFlags {
  serviceId: string
  envFile: string
  signupCommand: string
}

export async function logIn(api: GateApi, options: LoginOptions): Promise<void> {
  const { serviceId } = options
  const service = await requireService(api, serviceId)
  if (!service.dashboard_login_url)
    throw new Error(`${service.name} (${serviceId}) has no dashboard login.`)
  const { token, name, place } = await agentToken(options)
  const session = await api.createLogin(serviceId, token)
  if (options.json) return printConsent(serviceId, session)
  const { consent_url, confirmation_code } = session
  const isOpen = await openPage(consent_url, options)
  const lines = [
    `To log in to ${service.name} (${serviceId}), to the account of ${name} in ${place}.`,
    isOpen ? 'Opened in your browser:' : 'Open this page in a browser:',
    '',
    `  ${consent_url}`,
    '',
    `It must show the code ${confirmation_code}. Once the login is approved there, the browser goes on to the dashboard.`,
  ]
  console.log(printable(lines.join('\n')))
}

async function agentToken({ serviceId, envFile, signupCommand }: LoginOptions) {
  const values = await readValues(envFile)
  const names = [agentTokenVariable(serviceId), agentTokenEnvName(serviceId)]
  const found = [
    ...names.map((name) => ({ name, place: envFile, token: values.get(name) })),
    ...names.map((name) => ({ name, place: 'the environment', token: process.env[name] })),
  ]
  for (const { token, ...where } of found) if (token) return { token, ...where }
  throw new Error(
    `There is no ${names[0]} in ${envFile} or the environment: name the file that has it with --env-file, or sign up first: ${signupCommand}`,
  )
}

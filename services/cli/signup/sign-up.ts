import { randomBytes } from 'node:crypto'
import { ApiError } from '../../../infra/errors/errors.ts'
import { errorMessage } from '../../../infra/thrown.ts'
import {
  type DeliveryEnvelope,
  generateDeliveryKeys,
  openEnvelope,
} from '../../../infra/wire/delivery-envelope.ts'
import { agentTokenEnvName } from '../../../infra/wire/gate.ts'
import { commandLine } from '../command-line.ts'
import { printable } from '../tables.ts'
import type { ClaimCodes } from './claim-codes.ts'
import { awaitDecision, type SignupOutcome, type StopSignals } from './decision.ts'
import { findCommittable, readValues, requireNewFile } from './env-file.ts'
import { failureOf, SignupFailed } from './failure.ts'
import { type CreatedSession, type GateApi, type RegistryEntry, withRetries } from './gate-api.ts'
import { openPage, type PageFlags, printConsent, type SignupReport } from './report.ts'
import {
  agentTokenVariable,
  type Outputs,
  stdoutText,
  storableOutputs,
  storeValues,
} from './store.ts'

export interface SignupDeps extends StopSignals {
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
  /** New file for the credentials; undefined prints them instead. */
  envFile: string | undefined
}

/**
 * Requests an account, waits for a person's decision, and writes the delivered credentials to a new env file. Throws
 * SignupFailed, an error of requestServer, or an error that says why the file cannot be written.
 */
export async function signUp(
  { serviceId, accountName, metadata, envFile }: SignupOptions,
  deps: SignupDeps,
): Promise<void> {
  const { api, report } = deps
  const service = await requireService(api, serviceId)
  const announced = announcedNames(service)
  const deliveringService = { serviceId, prefix: service.env_prefix }
  if (envFile !== undefined) await requireWritable(envFile)
  const { privateKey, delivery } = generateDeliveryKeys()
  const idempotencyKey = randomBytes(16).toString('hex')
  const session = await withRetries(() =>
    api.createSession({ serviceId, accountName, metadata, delivery, idempotencyKey }),
  )
  await report.consentRequired({ service, session, accountName })
  const approved = await waitForApproval(session, deps)
  const open = (envelope: DeliveryEnvelope) => openEnvelope(envelope, privateKey)
  const { integrator, gate } = approved.delivery_bundle
  const [fromService, fromGate] = [open(integrator), open(gate)]
  const outputs = storableOutputs({ ...deliveringService, integrator: fromService, gate: fromGate })
  const { values, skipped } = outputs
  const accepted = new Set(approved.accepted_env_vars)
  const received = { ...deliveringService, gateSessionId: session.id, values, announced, accepted }
  const stored =
    envFile === undefined
      ? []
      : await storeValues(envFile, received).catch((error) => throwNotWritten(envFile, error))
  if (envFile === undefined) await deps.print(stdoutText(received))
  const missing = missingNames(announced, outputs)
  if (missing.length > 0)
    report.warning(`Not delivered, although ${serviceId} announced it: ${missing.join(', ')}.`)
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
    committable: await findCommittable(stored.map(({ file }) => file)),
  })
}

function requireService(api: GateApi, serviceId: string): Promise<RegistryEntry> {
  return withRetries(() => api.service(serviceId)).catch((error: unknown) => {
    if (!(error instanceof ApiError && error.status === 404)) throw error
    const message = `${api.baseUrl} has no service "${serviceId}" that accepts signups. To list them: ${commandLine('signup', 'list')}`
    throw new ApiError('request.not_found', { message, cause: error })
  })
}

async function requireWritable(envFile: string): Promise<void> {
  await requireNewFile(envFile).catch((cause: unknown) => {
    const message =
      `Cannot write ${envFile}: ${errorMessage(cause)}. No account was requested. ` +
      'Choose a new file with --env-file, or print the variables with --stdout.'
    throw new Error(message, { cause })
  })
}

function announcedNames(service: RegistryEntry): Set<string> {
  const keys = service.env_vars.map(({ key }) => key)
  return new Set(service.dashboard_login_url ? [...keys, agentTokenVariable(service.id)] : keys)
}

function missingNames(announced: ReadonlySet<string>, { values, skipped }: Outputs): string[] {
  const skippedNames = new Set(skipped.map(({ name }) => name))
  return [...announced].filter((name) => !values.has(name) && !skippedNames.has(name))
}

async function waitForApproval(
  session: CreatedSession,
  { api, report, codes, sleep, now, ...stopSignals }: SignupDeps,
) {
  const endsAt = Date.parse(session.expires_at)
  const outcome: SignupOutcome = await awaitDecision(
    {
      poll: () => api.poll(session),
      cancel: () => api.cancel(session),
      claim: createClaim({ api, report, codes }, session),
      onWaiting: (waiting) => report.waiting({ ...waiting, remainingMs: endsAt - now() }),
      onTooLateToCancel: () => report.warning(tooLateMessage),
      sleep,
      now,
    },
    stopSignals,
  )
  if (outcome.kind === 'approved') return outcome.session
  throw failureOf(outcome)
}

// Returns a function that sends the next code, if there is one. A wrong code only prints a warning, because the server
// counts the attempts and rejects the signup after the last one.
function createClaim(
  { api, report, codes }: Pick<SignupDeps, 'api' | 'report' | 'codes'>,
  session: CreatedSession,
): () => Promise<void> {
  let isOpen = false
  return async () => {
    if (!isOpen) report.claimRequired(await codes.open())
    isOpen = true
    const code = await codes.next()
    if (code === undefined) return
    await withRetries(() => api.claim(session, code)).catch((error: unknown) => {
      if (!(error instanceof ApiError)) throw error
      report.warning(error.message)
    })
  }
}

const tooLateMessage =
  'The signup is already approved and can no longer be canceled. Only this process can decrypt the credentials, so it ' +
  'keeps waiting for them; press Ctrl-C again to give them up.'

// Only this process can decrypt the delivery, so the credentials are lost when it exits.
function throwNotWritten(envFile: string, error: unknown): never {
  const problem = `Cannot write ${envFile}: ${errorMessage(error)}`
  throw new SignupFailed('not_written', `${problem}. The credentials are lost; sign up again.`)
}

// Returns true if the server has recorded the receipt. `gate.delivery_consumed` means that an earlier attempt succeeded,
// but its response was lost.
async function acknowledge(
  api: GateApi,
  { session, ackToken }: { session: CreatedSession; ackToken: string | undefined },
): Promise<boolean> {
  if (ackToken === undefined) return false
  return withRetries(() => api.acknowledge(session, ackToken)).then(
    () => true,
    (error: unknown) => error instanceof ApiError && error.code === 'gate.delivery_consumed',
  )
}

export interface LoginOptions extends PageFlags {
  serviceId: string
  envFile: string
  signupCommand: string
}

/** Requests a dashboard login with the stored agent token, and opens or prints its consent page. */
export async function logIn(api: GateApi, options: LoginOptions): Promise<void> {
  const { serviceId } = options
  const service = await requireService(api, serviceId)
  if (!service.dashboard_login_url)
    throw new Error(`${service.name} (${serviceId}) has no dashboard login.`)
  const { token, name, source } = await findAgentToken(options)
  const session = await api.createLogin(serviceId, token)
  if (options.json) return printConsent(serviceId, session)
  const { consent_url, confirmation_code } = session
  const isOpen = await openPage(consent_url, options)
  const lines = [
    `Logging in to ${service.name} (${serviceId}) with ${name} from ${source}.`,
    isOpen ? 'Opened in your browser:' : 'Open this page in a browser:',
    '',
    `  ${consent_url}`,
    '',
    `The page must show the code ${confirmation_code}. After you approve there, the browser continues to the dashboard.`,
  ]
  console.log(printable(lines.join('\n')))
}

async function findAgentToken({ serviceId, envFile, signupCommand }: LoginOptions) {
  const values = await readValues(envFile)
  const names = [agentTokenVariable(serviceId), agentTokenEnvName(serviceId)]
  const candidates = [
    ...names.map((name) => ({ name, source: envFile, token: values.get(name) })),
    ...names.map((name) => ({ name, source: 'the environment', token: process.env[name] })),
  ]
  for (const { token, ...origin } of candidates) if (token) return { token, ...origin }
  throw new Error(
    `${names[0]} is not in ${envFile} or the environment: choose the file with --env-file, or sign up first: ${signupCommand}`,
  )
}

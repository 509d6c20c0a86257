import open from 'open'
import { agentTokenEnvName } from '../../../infra/wire/gate.ts'
import { printable } from '../tables.ts'
import type { PendingDecision } from './decision.ts'
import type { CreatedSession, LoginSession, RegistryEntry } from './gate-api.ts'
import { agentTokenVariable, type Outputs, type StoredFile } from './store.ts'

interface ConsentRequest {
  service: RegistryEntry
  session: CreatedSession
  accountName: string
}

export interface Approval {
  service: RegistryEntry
  session: CreatedSession
  gateAccountId: string
  accountName: string
  /** The env file first, then the files next to it. Empty if the variables were printed. */
  stored: StoredFile[]
  skipped: Outputs['skipped']
  missing: string[]
  acknowledged: boolean
  committable: string[]
}

/** Output of a signup, as text or JSON. It never contains the value of a credential. */
export interface SignupReport {
  consentRequired(request: ConsentRequest): Promise<void>
  waiting(state: Omit<PendingDecision, 'kind' | 'ms'> & { remainingMs: number }): void
  /** Asks the person to type the code from the consent page, or write it to the file. */
  claimRequired(codeFile: string): void
  warning(message: string): void
  approved(approval: Approval): void
}

/** Prints one line of `--json` output. */
export function printJsonEvent(event: string, members: object = {}): void {
  console.log(JSON.stringify({ event, ...members }))
}

/** Prints the consent page of a signup or login as JSON. */
export function printConsent(
  serviceId: string,
  session: LoginSession,
  account: { account_name?: string } = {},
): void {
  const { id, consent_url, confirmation_code, expires_at } = session
  const ids = { service_id: serviceId, gate_session_id: id }
  const members = { ...ids, ...account, consent_url, confirmation_code, expires_at }
  printJsonEvent('consent_required', members)
}

export function jsonReport(): SignupReport {
  let isInProgress = false
  return {
    consentRequired: async ({ service, session, accountName }) =>
      printConsent(service.id, session, { account_name: accountName }),
    waiting({ inProgress }) {
      if (inProgress && !isInProgress) printJsonEvent('in_progress')
      isInProgress ||= inProgress
    },
    claimRequired: (codeFile) => printJsonEvent('claim_required', { code_file: codeFile }),
    warning: (message) => printJsonEvent('warning', { message }),
    approved: (approval) => printJsonEvent('approved', approvalJson(approval)),
  }
}

function approvalJson({ service, session, stored, ...approval }: Approval) {
  return {
    service_id: service.id,
    gate_session_id: session.id,
    gate_account_id: approval.gateAccountId,
    account_name: approval.accountName,
    env_file: stored[0]?.file,
    keys: stored.flatMap(({ names, reason }) => (reason ? [] : names)),
    elsewhere: stored.flatMap(({ file, names, reason }) =>
      reason ? [{ file, keys: names, reason }] : [],
    ),
    skipped: approval.skipped,
    missing: approval.missing,
    acknowledged: approval.acknowledged,
    committable: approval.committable,
    docs_url: service.docs_url,
  }
}

interface TextReportOptions extends PageFlags {
  loginCommand: string
  /** Default: standard output. */
  print?: (text: string) => void
}

export function textReport({
  loginCommand,
  print = console.log,
  ...flags
}: TextReportOptions): SignupReport {
  const printText = (text: string) => print(printable(text))
  let state = ''
  return {
    async consentRequired(request) {
      printText(consentText(request))
      const isOpen = await openPage(request.session.consent_url, flags)
      printText(isOpen ? 'Opened the page in your browser.\n' : 'Open the page in a browser.\n')
    },
    waiting({ remainingMs, inProgress, isClaiming, problem }) {
      const next =
        problem ??
        (inProgress ? 'Approved; the service is creating the account' : 'Waiting for a decision')
      if (isClaiming || next === state || !process.stderr.isTTY) return
      state = next
      const minutes = Math.max(1, Math.ceil(remainingMs / 60_000))
      console.error(printable(`${state}, ${minutes} min left.`))
    },
    claimRequired: (codeFile) =>
      printText(`Approved. Type the six-digit code from the page, or write it to ${codeFile}:`),
    warning: (message) => console.error(printable(message)),
    approved: (approval) => printText(approvalText(approval, loginCommand)),
  }
}

function consentText({ service, session, accountName }: ConsentRequest): string {
  const { name, id, website, description, branding, verified_domain } = service
  const verification = branding.verified
    ? 'verified'
    : verified_domain
      ? `${verified_domain} verified`
      : 'not verified'
  return [
    `${name} (${id}), ${verification}, ${website}`,
    "In the service's own words:",
    ...[description, branding.ascii_art ?? '']
      .flatMap((text) => (text ? text.split('\n') : []))
      .map((line) => `  | ${line}`),
    '',
    `A person must approve the account "${accountName}" on this page:`,
    '',
    `  ${session.consent_url}`,
    '',
    `The page must show the code ${session.confirmation_code}.`,
  ].join('\n')
}

const skipReasons: Record<string, string> = {
  steers_programs: 'it could change how other programs run',
  process_critical: 'it could change which programs run',
}

const separateFileReasons = {
  not_accepted:
    'not accepted for your env file at approval: load this file yourself if you trust the values',
  unannounced: 'not announced by the service',
  unquotable: 'not safe to quote in a .env file',
} as const

function approvalText(
  { service, stored, skipped, acknowledged, committable }: Approval,
  loginCommand: string,
): string {
  const token = agentTokenVariable(service.id)
  const delivered = agentTokenEnvName(service.id)
  const isRenamed = token !== delivered && stored.some(({ names }) => names.includes(token))
  return [
    `Approved: ${service.name} (${service.id}).`,
    ...stored.map(
      ({ file, names, reason }) =>
        `  ${file}: ${names.join(', ')}${reason ? `, ${separateFileReasons[reason]}` : ''}`,
    ),
    ...(isRenamed
      ? [`  ${token} is ${delivered}, renamed because shell variables cannot start with a digit.`]
      : []),
    ...skipped.map(
      ({ name, reason }) => `  not written: ${name} (${skipReasons[reason] ?? reason})`,
    ),
    ...committable.map((file) => `  ${file} is not ignored by git: add it to .gitignore.`),
    ...(acknowledged
      ? []
      : ['  Could not confirm the delivery; the server deletes its encrypted copy within a day.']),
    ...service.sdks.map(({ label, install }) => `  ${label}: ${install}`),
    `  ${service.docs_url}`,
    ...(service.dashboard_login_url ? [`To open the dashboard: ${loginCommand}`] : []),
  ].join('\n')
}

export interface PageFlags {
  open: boolean
  json: boolean
}

function hasScreen({ env, platform }: NodeJS.Process): boolean {
  if (!process.stdout.isTTY || env.CI) return false
  return platform !== 'linux' || Boolean(env.DISPLAY || env.WAYLAND_DISPLAY || env.WSL_DISTRO_NAME)
}

/** Opens the page in a browser unless flags or the environment prevent it. Returns true if it was opened. */
export async function openPage(url: string, flags: PageFlags): Promise<boolean> {
  if (!flags.open || flags.json || !hasScreen(process)) return false
  try {
    const browser = await open(url)
    browser.on('error', () => {})
    return true
  } catch {
    return false
  }
}

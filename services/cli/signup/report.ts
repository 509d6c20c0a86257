import open from 'open'
import { agentTokenEnvName } from '../../../infra/wire/gate.ts'
import { printable } from '../tables.ts'
import type { Waiting } from './decision.ts'
import type { CreatedSession, LoginSession, RegistryEntry } from './gate-api.ts'
import { agentTokenVariable, type Outputs, type Stored } from './store.ts'

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
  /** Paths of the env file and the files beside it; empty if the variables were printed. */
  stored: Stored[]
  skipped: Outputs['skipped']
  missing: string[]
  acknowledged: boolean
  committable: string[]
}

/** What a signup prints, for a person or for a program. Never a value that was delivered. */
export interface SignupReport {
  consentRequired(request: ConsentRequest): Promise<void>
  waiting(state: Omit<Waiting, 'kind' | 'ms'> & { remainingMs: number }): void
  /** A person has approved; the code that the page shows is written to the file, or typed. */
  claimRequired(codeFile: string): void
  warning(message: string): void
  approved(approval: Approval): void
}

/** One line of `--json`. Every event of the command is printed by this. */
export function printEvent(event: string, members: object = {}): void {
  console.log(JSON.stringify({ event, ...members }))
}

/** Prints where a person has to approve, a signup or a login. */
export function printConsent(
  serviceId: string,
  session: LoginSession,
  about: { account_name?: string } = {},
): void {
  const { id, consent_url, confirmation_code, expires_at } = session
  const ids = { service_id: serviceId, gate_session_id: id }
  printEvent('consent_required', { ...ids, ...about, consent_url, confirmation_code, expires_at })
}

export function jsonReport(): SignupReport {
  let isInProgress = false
  return {
    consentRequired: async ({ service, session, accountName }) =>
      printConsent(service.id, session, { account_name: accountName }),
    waiting({ inProgress }) {
      if (inProgress && !isInProgress) printEvent('in_progress')
      isInProgress ||= inProgress
    },
    claimRequired: (codeFile) => printEvent('claim_required', { code_file: codeFile }),
    warning: (message) => printEvent('warning', { message }),
    approved: (approval) => printEvent('approved', approvalJson(approval)),
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
  const say = (text: string) => print(printable(text))
  let state = ''
  return {
    async consentRequired(request) {
      say(consentText(request))
      const isOpen = await openPage(request.session.consent_url, flags)
      say(isOpen ? 'It was opened in your browser.\n' : 'Open it in a browser.\n')
    },
    waiting({ remainingMs, inProgress, isClaiming, problem }) {
      const next =
        problem ??
        (inProgress ? 'Approved; the service makes the account' : 'Waiting for a decision')
      if (isClaiming || next === state || !process.stderr.isTTY) return
      state = next
      const minutes = Math.max(1, Math.ceil(remainingMs / 60_000))
      console.error(printable(`${state}, ${minutes} min left.`))
    },
    claimRequired: (codeFile) =>
      say(`Approved. Type the six digits that the page shows, or write them to ${codeFile}:`),
    warning: (message) => console.error(printable(message)),
    approved: (approval) => say(approvalText(approval, loginCommand)),
  }
}

function consentText({ service, session, accountName }: ConsentRequest): string {
  const { name, id, website, description, branding, verified_domain } = service
  const standing = branding.verified
    ? 'verified'
    : verified_domain
      ? `${verified_domain} verified`
      : 'not verified'
  return [
    `${name} (${id}), ${standing}, ${website}`,
    'The service says of itself:',
    ...[description, branding.ascii_art ?? '']
      .flatMap((text) => (text ? text.split('\n') : []))
      .map((line) => `  | ${line}`),
    '',
    `An account named "${accountName}" has to be approved by a person on this page:`,
    '',
    `  ${session.consent_url}`,
    '',
    `The page must show the code ${session.confirmation_code}.`,
  ].join('\n')
}

const skips: Record<string, string> = {
  steers_programs: 'it would steer other programs',
  process_critical: 'it would decide what processes run',
}

const reasons = {
  not_accepted:
    'which you have not let into your env file: load that file yourself where you trust them',
  unannounced: 'which the service had not announced',
  unquotable: 'which not every reader of a .env file would read alike',
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
        `  ${file}: ${names.join(', ')}${reason ? `, ${reasons[reason]}` : ''}`,
    ),
    ...(isRenamed
      ? [`  ${token} is ${delivered}; no shell takes a name that begins with a digit.`]
      : []),
    ...skipped.map(({ name, reason }) => `  not written: ${name} (${skips[reason] ?? reason})`),
    ...committable.map((file) => `  ${file} is not ignored by git: add it to .gitignore.`),
    ...(acknowledged
      ? []
      : ['  The server could not be told; it deletes its sealed copy within a day.']),
    ...service.sdks.map(({ label, install }) => `  ${label}: ${install}`),
    `  ${service.docs_url}`,
    ...(service.dashboard_login_url ? [`To open its dashboard: ${loginCommand}`] : []),
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

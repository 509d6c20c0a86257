import { createHash } from 'node:crypto'
import { z } from 'zod'
import { base32Characters, type GateSessionId } from '../ids.ts'

/** A short text such as `K4-7M9`. A signup's terminal and its consent page both show it. */
export function confirmationCode(gateSessionId: GateSessionId): string {
  const digest = createHash('sha256').update(`confirmation\0${gateSessionId}`).digest()
  const text = base32Characters(digest.subarray(0, 5))
  return `${text.slice(0, 2)}-${text.slice(2)}`.toUpperCase()
}

export const confirmationCodeSchema = z
  .string()
  .describe(
    'Shown beside the consent URL: the page shows the same, so that a person sees that they belong together.',
  )

/** Variables that change what a process runs or trusts (open-points.md 68). */
const critical = new Set(
  `BASH_ENV BROWSER CDPATH DYLD_INSERT_LIBRARIES DYLD_LIBRARY_PATH EDITOR ENV GIT_ASKPASS GIT_SSH_COMMAND HOME
  LD_LIBRARY_PATH LD_PRELOAD NODE_OPTIONS NODE_PATH PATH PERL5OPT PERLLIB PROMPT_COMMAND PYTHONHOME PYTHONPATH
  PYTHONSTARTUP RUBYLIB RUBYOPT SHELLOPTS SSH_ASKPASS VISUAL XDG_CONFIG_HOME`.split(/\s+/),
)
const criticalPrefixes = ['NPM_CONFIG_', 'BUN_CONFIG_', 'GIT_CONFIG_']

export function isCriticalEnvName(name: string): boolean {
  const upper = name.toUpperCase()
  return critical.has(upper) || criticalPrefixes.some((prefix) => upper.startsWith(prefix))
}

const agentTokenSuffix = '_GATE_AGENT_TOKEN'

/** `acme-mail` -> `ACME_MAIL_GATE_AGENT_TOKEN`. */
export function agentTokenEnvName(serviceId: string): string {
  return serviceId.toUpperCase().replaceAll('-', '_') + agentTokenSuffix
}

/** Whether Gate itself writes the variable, so that no service may. */
export function isGateManagedEnvName(name: string): boolean {
  const upper = name.toUpperCase()
  return upper === 'FOIL_AGENT_TOKEN' || upper.endsWith(agentTokenSuffix)
}

export function isEnvName(name: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(name)
}

/** `publicUrl` has no slash at its end. */
export function consentUrl(publicUrl: string, gateSessionId: GateSessionId): string {
  return `${publicUrl}/gate/consent/${gateSessionId}`
}

import { confirmationCode } from '../../../infra/gate/confirmation-code.ts'
import { agentTokenEnvName } from '../../../infra/gate/env-names.ts'
import { printable } from '../operator/tables.ts'
import { valueIn } from './env-file.ts'
import { readText, targetOf } from './env-file-io.ts'
import type { GateApi } from './gate-api.ts'
import { openPage, type PageFlags } from './terminal.ts'

export interface LoginOptions extends PageFlags {
  serviceId: string
  envFile: string
}

/** Asks a person to open the dashboard of an account that was signed up for. Rejects as askServer does. */
export async function logIn(api: GateApi, { serviceId, envFile, ...flags }: LoginOptions): Promise<void> {
  const token = await agentToken(serviceId, envFile)
  const session = await api.createLogin(serviceId, token)
  const code = confirmationCode(session.id)
  const { consent_url, expires_at } = session
  if (flags.json) {
    const about = { service_id: serviceId, gate_session_id: session.id }
    const line = { event: 'consent_required', ...about, consent_url, confirmation_code: code, expires_at }
    return console.log(JSON.stringify(line))
  }
  const isOpen = await openPage(consent_url, flags)
  const lines = [
    isOpen ? 'Opened in your browser:' : 'Open this page in a browser:',
    ...['', `  ${consent_url}`, ''],
    `It must show the code ${code}. Once the login is approved there, the browser goes on to the dashboard.`,
  ]
  console.log(printable(lines.join('\n')))
}

async function agentToken(serviceId: string, envFile: string): Promise<string> {
  const name = agentTokenEnvName(serviceId)
  const token = valueIn(await readText(await targetOf(envFile)), name) || process.env[name]
  if (token) return token
  throw new Error(
    `There is no ${name} in ${envFile} or the environment; "tidegate signup ${serviceId}" writes it.`,
  )
}

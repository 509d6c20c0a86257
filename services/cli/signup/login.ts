import { confirmationCode } from '../../../infra/wire/gate/confirmation-code.ts'
import { agentTokenEnvName } from '../../../infra/wire/gate/env-names.ts'
import { printable } from '../operator/tables.ts'
import { valueIn } from './env-file.ts'
import { readText, targetOf } from './env-file-io.ts'
import type { GateApi } from './gate-api.ts'
import { agentTokenVariable } from './outputs.ts'
import { findService } from './sign-up.ts'
import { openPage, type PageFlags } from './terminal.ts'

export interface LoginOptions extends PageFlags {
  serviceId: string
  envFile: string
  /** The command that writes the agent token, as it can be typed. */
  signupCommand: string
}

/** Asks a person to open the dashboard of an account that was signed up for. Rejects as askServer does. */
export async function logIn(api: GateApi, options: LoginOptions): Promise<void> {
  const { serviceId, envFile, signupCommand, ...flags } = options
  const service = await findService(api, serviceId)
  if (!service.dashboard_login_url) throw new Error(`${service.name} (${serviceId}) has no dashboard login.`)
  const { token, name, place } = await agentToken(options)
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
    `To log in to ${service.name} (${serviceId}), to the account of ${name} in ${place}.`,
    isOpen ? 'Opened in your browser:' : 'Open this page in a browser:',
    ...['', `  ${consent_url}`, ''],
    `It must show the code ${code}. Once the login is approved there, the browser goes on to the dashboard.`,
  ]
  console.log(printable(lines.join('\n')))
}

interface Found {
  token: string
  /** The variable. */
  name: string
  /** Where it is. */
  place: string
}

/** Under the name that `signup` writes, or the one that it is delivered under. */
async function agentToken({ serviceId, envFile, signupCommand }: LoginOptions): Promise<Found> {
  const text = await readText(await targetOf(envFile))
  const names = [agentTokenVariable(serviceId), agentTokenEnvName(serviceId)]
  const found = [
    ...names.map((name) => ({ name, place: envFile, token: valueIn(text, name) })),
    ...names.map((name) => ({ name, place: 'the environment', token: process.env[name] })),
  ]
  for (const { token, ...where } of found) if (token) return { token, ...where }
  throw new Error(
    `There is no ${names[0]} in ${envFile} or the environment: name the file that has it with --env-file, or sign up first: ${signupCommand}`,
  )
}

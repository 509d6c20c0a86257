import { z } from 'zod'
import { engineFamilies } from '../../infra/challenges/challenges.ts'
import { timestamp } from '../../infra/http/schemas.ts'
import { type ConsoleSession, roleNames, scopesOf, sessionExpiry } from './decide.ts'

const credential = z.string().min(1).max(100).optional()

export const loginBody = z
  .strictObject({ code: credential, secret_key: credential })
  .refine(({ code, secret_key }) => (code === undefined) !== (secret_key === undefined), {
    error: 'either code or secret_key',
    path: ['code'],
  })

export const consoleSessionSchema = z.strictObject({
  object: z.literal('console_session'),
  id: z.string(),
  name: z.string(),
  role: z.enum(roleNames).nullable(),
  scopes: z.array(z.string()),
  organization: z.strictObject({ id: z.string(), name: z.string() }),
  environments: z.array(z.enum(['live', 'test'])),
  csrf_token: z.string(),
  api_url: z.string(),
  expires_at: timestamp,
  warnings: z
    .array(z.string())
    .describe('Server settings to fix. Always empty unless the person is an admin.'),
})

export type LoggedInPerson = z.output<typeof consoleSessionSchema>

export const engine = z.enum(engineFamilies)

export const enginesSchema = z.strictObject({
  engines: z.array(
    z.strictObject({
      engine,
      is_learned: z.boolean(),
      visitors: z.int(),
      visitors_needed: z.int(),
    }),
  ),
  own_engine: engine.nullable().describe('Engine of the requesting browser; null if unknown.'),
  teaches_at_login: z.boolean(),
})

export type Engines = z.output<typeof enginesSchema>

export function consoleSessionJson(
  session: ConsoleSession,
  { csrf_token, api_url, warnings }: { csrf_token: string; api_url: string; warnings: string[] },
): LoggedInPerson {
  const { id, name, rights, organization, environments } = session
  const scopes = [...scopesOf(session)]
  return {
    object: 'console_session',
    id,
    name,
    role: 'role' in rights ? rights.role : null,
    scopes,
    organization: { id: organization.id, name: organization.name },
    environments,
    csrf_token,
    api_url,
    expires_at: new Date(sessionExpiry(session)).toISOString(),
    warnings: scopes.some((scope) => scope === '*') ? warnings : [],
  }
}

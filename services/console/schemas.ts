import { z } from 'zod'
import { engineFamilies } from '../../infra/challenges/challenges.ts'
import { timestamp } from '../../infra/http/schemas.ts'
import { characterCount, isPlainText } from '../../infra/text.ts'
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

const environment = z.enum(['live', 'test'])

export const openSessionSchema = z.strictObject({
  id: z.string(),
  name: z.string().describe('Name of the person or of the key.'),
  role: z.enum(roleNames).nullable().describe('Null for a session with the permissions of a key.'),
  environments: z.array(environment),
  created_at: timestamp,
  last_used_at: timestamp,
  is_current: z.boolean(),
})

export type OpenSession = z.output<typeof openSessionSchema>

const maxNameLength = 120

export const loginLinkBody = z.strictObject({
  name: z
    .string()
    .trim()
    .refine((text) => text !== '' && characterCount(text) <= maxNameLength && isPlainText(text), {
      error: `1 to ${maxNameLength} characters, without control characters`,
    }),
  role: z.enum(roleNames),
  environments: z.array(environment).min(1, { error: 'at least one environment' }),
})

export const loginLinkSchema = z.strictObject({
  path: z.string().describe('Path of the link, with its one-time code as the fragment.'),
  expires_at: timestamp,
})

export type LoginLinkPath = z.output<typeof loginLinkSchema>

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

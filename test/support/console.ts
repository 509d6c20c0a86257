import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { asId } from '../../infra/ids.ts'
import type { Environment } from '../../schemas/events.ts'
import { type ConsoleDeps, createLoginLink } from '../../services/console/commands.ts'
import type { ConsoleRole } from '../../services/console/decide.ts'

const answer = z.object({
  data: z.looseObject({ id: z.string(), csrf_token: z.string(), expires_at: z.string() }),
})

/** Origin of requests by `app.inject`. */
export const here = { origin: 'http://localhost' }

export interface ConsoleLink {
  organizationId: string
  role: ConsoleRole
  environments?: readonly Environment[]
  name?: string
}

/** Returns the code of a new login link. */
export async function loginCode(
  deps: ConsoleDeps,
  { organizationId, environments = ['live', 'test'], name = 'Ann', role }: ConsoleLink,
): Promise<string> {
  const consoleUrl = 'http://localhost/'
  const link = { organizationId: asId('org', organizationId), environments, name, role }
  return new URL(await createLoginLink(deps, { ...link, consoleUrl })).hash.slice('#code='.length)
}

/** Sends the console's login request. */
export const postLogin = (
  app: FastifyInstance,
  body: object,
  headers: Record<string, string> = {},
) =>
  app.inject({ method: 'POST', url: '/console/api/login', headers: { ...here, ...headers }, body })

export interface Person {
  id: string
  /** Headers that the console sends with every request. */
  headers: { cookie: string; origin: string; 'x-csrf-token': string }
}

/** Logs in with the body and returns the person. */
export async function loggedInBy(app: FastifyInstance, body: object): Promise<Person> {
  const response = await postLogin(app, body)
  const { id, csrf_token } = answer.parse(response.json()).data
  const [cookie] = response.cookies
  const headers = {
    ...here,
    cookie: `${cookie?.name}=${cookie?.value}`,
    'x-csrf-token': csrf_token,
  }
  return { id, headers }
}

export const person = async (
  app: FastifyInstance,
  deps: ConsoleDeps,
  link: ConsoleLink,
): Promise<Person> => loggedInBy(app, { code: await loginCode(deps, link) })

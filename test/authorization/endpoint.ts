import type { ErrorCode } from '../../infra/errors/errors.ts'
import type { ApprovedSignup } from '../support/gate-flow.ts'
import type { Platform } from './credential.ts'
import type { Person } from './person.ts'
import type { CollectBodies } from './record-collect.ts'
import type { World } from './world.ts'

export interface Example {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  url: string
  body?: string | Buffer | object
  headers?: Record<string, string>
  /** The client's address (default: one that nobody else has). */
  from?: string
}

/** A well-formed request to one endpoint, and the status that a key which may do it gets. */
export interface Endpoint {
  /** As the specification names it; none = a collect endpoint, which takes publishable keys, or one for a token. */
  scope?: string
  /** The token of Gate's that it takes instead of a key. */
  token?: 'poll' | 'agent'
  success: number
  /** The answer to a key of another environment, or (where the path names no organization) of another organization. */
  elsewhere: number
  /** Callers that need rights in live, for an operation that changes a setting of live and test. */
  needsLive?: 'everyone' | 'people'
  /** The code of a 410, where that is not about a collect session. */
  gone?: ErrorCode
  example: (context: Context) => Example | Promise<Example>
}

export interface Context {
  world: World
  organizationId: string
  platform: Platform
  bodies: Record<Platform, CollectBodies>
  /** true: the request has its effect, so that it needs something of its own to end. */
  succeeds: boolean
  /** The id of a live key to change or end, which may no more than manage keys. */
  keyId(options: { fresh: boolean }): Promise<string>
  /** An endpoint of the live environment, and an event that was raised for it. */
  webhook(options: { fresh: boolean }): Promise<{ endpointId: string; eventId: string }>
  /** A saved view of the live environment. */
  viewId(options: { fresh: boolean }): Promise<string>
  /** An alert on that view. */
  alertId(options: { fresh: boolean }): Promise<string>
  /** Somebody whom the organization knows. */
  person(options: { fresh: boolean }): Promise<Person>
  /** The organization's services and accounts. */
  gate: GateContext
}

export interface GateContext {
  /** Open to signups, with a dashboard. */
  serviceId: string
  /** It is used for this alone. */
  doomedServiceId: string
  /** A signup of the service, with its poll token, its agent token and its credentials. */
  signup: ApprovedSignup
  /** An agent token that nobody else uses. */
  doomedToken: string
  /** Account of that token. */
  doomedAccountId: string
}

type Of<T> = T | ((context: Context) => T | Promise<T>)
type Facts = Partial<Omit<Endpoint, 'example'>> & { body?: Of<object> }

const resolve = <T>(value: Of<T>, context: Context): T | Promise<T> =>
  value instanceof Function ? value(context) : value

/** An endpoint that asks for a scope and answers 200, to others too unless told. */
export function keyed(
  method: Example['method'],
  url: Of<string>,
  asked: string | Facts,
  more: Facts = {},
): Endpoint {
  const { body, ...facts } = typeof asked === 'string' ? { scope: asked, ...more } : asked
  return {
    success: 200,
    elsewhere: 200,
    ...facts,
    async example(context) {
      const at = await resolve(url, context)
      if (body === undefined) return { method, url: at }
      return { method, url: at, body: await resolve(body, context) }
    },
  }
}

export interface OpenEndpoint {
  success: number
  example: (context: Pick<Context, 'world' | 'gate'>) => Example | Promise<Example>
}

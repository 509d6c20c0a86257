import type {
  FastifyReply,
  FastifyRequest,
  onErrorHookHandler,
  onRequestHookHandler,
  preParsingAsyncHookHandler,
} from 'fastify'
import type { Actor, Environment } from '../../schemas/events.ts'
import { ApiError } from '../errors/errors.ts'
import type { OrganizationId } from '../ids.ts'
import {
  type ChargeOptions,
  type Charges,
  type CostOf,
  chargeBody,
  createCharges,
} from './charge.ts'
import { createKeyCache, type KeyCacheOptions } from './key-cache.ts'
import {
  bearerOf,
  callerOnly,
  checkLiveAccess,
  checkOrganization,
  checkOrigin,
  checkScope,
  publishableOnly,
  secretOnly,
  usable,
} from './key-checks.ts'
import {
  type Caller,
  enforcing,
  type KeyPrincipal,
  type KeyRecord,
  type Principal,
  type PublishablePrincipal,
  type Scope,
  type SecretPrincipal,
  type SharedSetting,
} from './principal.ts'
import type { BucketName } from './rate-limit/limiter.ts'

type EndpointScope = Exclude<Scope, '*'>

/**
 * How routes of the REST API learn who calls them: hooks that set `request.principal`, charge the request and check the
 * scope, and typed readers of the principal. `createAuth` reads API keys, and the console reads its own sessions.
 */
export interface Auth {
  requireSecret(scope: EndpointScope, cost?: number): onRequestHookHandler
  /** For `/v1/organizations/:organizationId` and below: the caller must be that organization's own. */
  requireOwnOrganization(scope: EndpointScope, changes?: SharedSetting): onRequestHookHandler
  /** For endpoints whose cost is in their body. The units are taken once it is read, from the caller's bucket or another. */
  requireSecretCosting(
    scope: EndpointScope,
    costOf: CostOf,
    bucket?: BucketName,
  ): { onRequest: onRequestHookHandler; preParsing: preParsingAsyncHookHandler }
  /** Charges the units of a validated request in place of those of its hook. ApiError: 429. */
  charge(request: FastifyRequest, charge: { reply: FastifyReply; cost: number }): Promise<void>
  /** For `DecideAs`. */
  actor(request: FastifyRequest): Actor
  caller(request: FastifyRequest): Caller
  /** The organization and environment whose data the caller may read. */
  scope(request: FastifyRequest): { organizationId: OrganizationId; environment: Environment }
}

type Proceed<P> = (
  principal: P,
  request: FastifyRequest,
  reply: FastifyReply,
) => Promise<void> | undefined

/** Makes a hook that verifies who calls, sets `request.principal` and goes on with `proceed`. */
export type VerifyCaller = (proceed: Proceed<Caller>) => onRequestHookHandler

/** Units and the X-RateLimit-* headers come before the scope and the organization of the path. */
export function createCallerAuth(verified: VerifyCaller, charges: Charges): Auth {
  const charged = (check: (caller: Caller, request: FastifyRequest) => void, cost = 1) =>
    verified((caller, request, reply) =>
      then(charges.charge(caller, { reply, cost }), () => check(caller, request)),
    )
  return {
    requireSecret: (scope, cost) =>
      enforcing(
        { keyType: 'secret', scope },
        charged((caller) => checkScope(caller, scope), cost),
      ),
    requireOwnOrganization: (scope, changes) =>
      enforcing(
        { keyType: 'secret', scope, ownOrganization: true },
        charged((caller, { params }) => {
          checkScope(caller, scope)
          checkOrganization(caller, params)
          if (changes) checkLiveAccess(caller, changes)
        }),
      ),
    requireSecretCosting(scope, costOf, bucket) {
      const preParsing = chargeBody(costOf, async (request, { reply, cost }) => {
        const caller = callerOnly(request.principal)
        await charges.charge(caller, { reply, cost, bucket })
        checkScope(caller, scope)
      })
      return {
        onRequest: enforcing(
          { keyType: 'secret', scope },
          verified(() => undefined),
        ),
        preParsing,
      }
    },
    charge: ({ principal }, charge) => charges.recharge(callerOnly(principal), charge),
    actor: ({ principal }) => actorOf(callerOnly(principal)),
    caller: ({ principal }) => callerOnly(principal),
    scope({ principal }) {
      const { organizationId, environment } = callerOnly(principal)
      return { organizationId, environment }
    },
  }
}

function actorOf(caller: Caller): Actor {
  if (caller.type === 'person') return { type: 'person', id: caller.consoleSessionId }
  return { type: 'key', id: caller.keyId }
}

export interface AuthOptions extends Omit<KeyCacheOptions, 'cacheMs'>, ChargeOptions {
  /** Milliseconds for which a key is believed without another look-up (default 15,000). */
  cacheMs?: number
  onKeyUsed?: ((keyId: KeyPrincipal['keyId']) => void) | undefined
}

export type KeyAuth = ReturnType<typeof createAuth>

/**
 * Hooks that verify the bearer key. The order is: form of the key, look-up, status, organization, type of key and
 * origin; then units and the X-RateLimit-* headers; then scope and organization of the path. A request that is refused
 * before the units costs none.
 */
export function createAuth({ cacheMs = 15_000, onKeyUsed, ...options }: AuthOptions) {
  const keys = createKeyCache({ ...options, cacheMs })
  const charges = createCharges(options)

  // A cached key whose units this process holds, as nearly all are, is checked without a promise.
  function verified<P extends KeyPrincipal>(
    narrow: (principal: Principal, request: FastifyRequest) => P,
    proceed: Proceed<P>,
    before?: (key: string, request: FastifyRequest) => void,
  ): onRequestHookHandler {
    return (request, reply, done) => {
      const accept = (record: KeyRecord | undefined) => {
        request.principal = usable(record, options.clock)
        const principal = narrow(request.principal, request)
        onKeyUsed?.(principal.keyId)
        return proceed(principal, request, reply)
      }
      try {
        const key = bearerOf(request.headers.authorization)
        before?.(key, request)
        const found = keys.find(key, request)
        const rest = found instanceof Promise ? found.then(accept) : accept(found)
        if (rest) return void rest.then(() => done(), done)
      } catch (error) {
        return done(error instanceof Error ? error : new Error(String(error)))
      }
      done()
    }
  }

  // It runs before the key is verified once more, so that what is refused costs neither units nor a look-up.
  function shareOut(key: string, { ip }: FastifyRequest): void {
    const record = keys.peek(key)
    if (record?.principal.type === 'publishable') charges.shareOut(record.principal, ip)
  }

  return {
    ...createCallerAuth((proceed) => verified(secretOnly, proceed), charges),
    /** For collect endpoints: the key's origins are checked too. */
    requirePublishable: () =>
      enforcing(
        { keyType: 'publishable' },
        verified(
          fromItsOwnClient,
          (principal, _request, reply) => charges.charge(principal, { reply, cost: 1 }),
          shareOut,
        ),
      ),
    /**
     * onError of collect endpoints. Only a body shows that another platform's SDK uses a native key. The check is
     * part of verifying the key, so the units are given back and the headers removed.
     */
    refundOtherClient: ((request, reply, error, done) => {
      const other = error instanceof ApiError && error.code === 'auth.native_key_not_allowed'
      if (other && request.principal) charges.refund(request.principal, reply)
      done()
    }) satisfies onErrorHookHandler,
    principal(request: FastifyRequest): Principal {
      if (!request.principal) throw new Error(`${request.routeOptions.url} does not authenticate`)
      return request.principal
    },
    secret: (request: FastifyRequest): SecretPrincipal => secretOnly(request.principal),
    publishable: (request: FastifyRequest): PublishablePrincipal =>
      publishableOnly(request.principal),
    invalidate: keys.invalidate,
  }
}

function fromItsOwnClient(principal: Principal, { headers }: FastifyRequest): PublishablePrincipal {
  const publishable = publishableOnly(principal)
  checkOrigin(publishable, headers.origin)
  return publishable
}

function then(first: Promise<void> | undefined, next: () => void): Promise<void> | undefined {
  if (first) return first.then(next)
  next()
  return undefined
}

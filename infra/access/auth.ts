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
  type CostOf,
  chargeBody,
  createRequestMeter,
  type RequestMeter,
} from './charge.ts'
import { createKeyCache, type KeyCacheOptions } from './key-cache.ts'
import {
  asCaller,
  asPublishablePrincipal,
  asSecretPrincipal,
  bearerToken,
  checkLiveAccess,
  checkOrganization,
  checkOrigin,
  checkScope,
  requireUsableKey,
} from './key-checks.ts'
import {
  type Caller,
  declareAccess,
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
 * Authentication of REST API routes: hooks that set `request.principal`, charge the request and check the scope, and
 * typed readers of the principal. `createAuth` authenticates API keys; the console authenticates its own sessions.
 */
export interface Auth {
  requireSecret(scope: EndpointScope, cost?: number): onRequestHookHandler
  /** For `/v1/organizations/:organizationId` and below: the caller must belong to that organization. */
  requireOwnOrganization(scope: EndpointScope, setting?: SharedSetting): onRequestHookHandler
  /** For endpoints whose cost depends on the body. Charges `bucket` (default: the caller's) once the body is read. */
  requireSecretWithBodyCost(
    scope: EndpointScope,
    costOf: CostOf,
    bucket?: BucketName,
  ): { onRequest: onRequestHookHandler; preParsing: preParsingAsyncHookHandler }
  /** Raises the charge for the request to `cost` units. Throws 429 if there are not enough. */
  raiseCharge(request: FastifyRequest, charge: { reply: FastifyReply; cost: number }): Promise<void>
  /** Returns the caller as the actor that `DecideAs` records in events. */
  actor(request: FastifyRequest): Actor
  caller(request: FastifyRequest): Caller
  /** Returns the organization and environment whose data the caller may read. */
  dataScope(request: FastifyRequest): { organizationId: OrganizationId; environment: Environment }
}

type Proceed<P> = (
  principal: P,
  request: FastifyRequest,
  reply: FastifyReply,
) => Promise<void> | undefined

/** Creates a hook that authenticates the caller, sets `request.principal` and calls `proceed`. */
export type VerifyCaller = (proceed: Proceed<Caller>) => onRequestHookHandler

/** Creates hooks that charge units and set the X-RateLimit-* headers before they check scope and organization. */
export function createCallerAuth(verifyCaller: VerifyCaller, meter: RequestMeter): Auth {
  const chargeThen = (check: (caller: Caller, request: FastifyRequest) => void, cost = 1) =>
    verifyCaller((caller, request, reply) =>
      runAfter(meter.charge(caller, { reply, cost }), () => check(caller, request)),
    )
  return {
    requireSecret: (scope, cost) =>
      declareAccess(
        { keyType: 'secret', scope },
        chargeThen((caller) => checkScope(caller, scope), cost),
      ),
    requireOwnOrganization: (scope, setting) =>
      declareAccess(
        { keyType: 'secret', scope, ownOrganization: true },
        chargeThen((caller, { params }) => {
          checkScope(caller, scope)
          checkOrganization(caller, params)
          if (setting) checkLiveAccess(caller, setting)
        }),
      ),
    requireSecretWithBodyCost(scope, costOf, bucket) {
      const preParsing = chargeBody(costOf, async (request, { reply, cost }) => {
        const caller = asCaller(request.principal)
        await meter.charge(caller, { reply, cost, bucket })
        checkScope(caller, scope)
      })
      return {
        onRequest: declareAccess(
          { keyType: 'secret', scope },
          verifyCaller(() => undefined),
        ),
        preParsing,
      }
    },
    raiseCharge: ({ principal }, charge) => meter.raiseCharge(asCaller(principal), charge),
    actor: ({ principal }) => actorOf(asCaller(principal)),
    caller: ({ principal }) => asCaller(principal),
    dataScope({ principal }) {
      const { organizationId, environment } = asCaller(principal)
      return { organizationId, environment }
    },
  }
}

function actorOf(caller: Caller): Actor {
  if (caller.type === 'person') return { type: 'person', id: caller.consoleSessionId }
  return { type: 'key', id: caller.keyId }
}

export interface AuthOptions extends Omit<KeyCacheOptions, 'cacheMs'>, ChargeOptions {
  /** Time for which a key's record is cached (default 15 seconds). */
  cacheMs?: number
  onKeyUsed?: ((keyId: KeyPrincipal['keyId']) => void) | undefined
}

export type KeyAuth = ReturnType<typeof createAuth>

/**
 * Creates hooks that verify the bearer key. They check its form, look it up, and check status, organization, key type
 * and origin; then charge units and set the X-RateLimit-* headers; then check the scope and the path's organization. A
 * request refused before the charge costs no units.
 */
export function createAuth({ cacheMs = 15_000, onKeyUsed, ...options }: AuthOptions) {
  const keys = createKeyCache({ ...options, cacheMs })
  const meter = createRequestMeter(options)

  // Runs without a promise if the key is cached and this process holds units for it, as for nearly all requests.
  function verifyKey<P extends KeyPrincipal>(
    narrow: (principal: Principal, request: FastifyRequest) => P,
    proceed: Proceed<P>,
    beforeLookup?: (key: string, request: FastifyRequest) => void,
  ): onRequestHookHandler {
    return (request, reply, done) => {
      const accept = (record: KeyRecord | undefined) => {
        request.principal = requireUsableKey(record, options.clock)
        const principal = narrow(request.principal, request)
        onKeyUsed?.(principal.keyId)
        return proceed(principal, request, reply)
      }
      try {
        const key = bearerToken(request.headers.authorization)
        beforeLookup?.(key, request)
        const record = keys.find(key, request)
        const pending = record instanceof Promise ? record.then(accept) : accept(record)
        if (pending) return void pending.then(() => done(), done)
      } catch (error) {
        return done(error instanceof Error ? error : new Error(String(error)))
      }
      done()
    }
  }

  // Runs before the lookup of a stale key, so that a refused request costs neither units nor a lookup.
  function enforceFairShare(key: string, { ip }: FastifyRequest): void {
    const record = keys.peek(key)
    if (record?.principal.type === 'publishable') meter.enforceFairShare(record.principal, ip)
  }

  return {
    ...createCallerAuth((proceed) => verifyKey(asSecretPrincipal, proceed), meter),
    /** For collect endpoints. Also checks the key's allowed origins. */
    requirePublishable: () =>
      declareAccess(
        { keyType: 'publishable' },
        verifyKey(
          checkedPublishable,
          (principal, _request, reply) => meter.charge(principal, { reply, cost: 1 }),
          enforceFairShare,
        ),
      ),
    /**
     * onError hook of collect endpoints: if another platform's SDK used a native key, refunds the units and removes the
     * X-RateLimit-* headers. That shows only in the body, but counts as a failed key check.
     */
    refundWrongClient: ((request, reply, error, done) => {
      const isWrongKey = error instanceof ApiError && error.code === 'auth.native_key_not_allowed'
      if (isWrongKey && request.principal) meter.refund(request.principal, reply)
      done()
    }) satisfies onErrorHookHandler,
    principal(request: FastifyRequest): Principal {
      if (!request.principal) throw new Error(`${request.routeOptions.url} does not authenticate`)
      return request.principal
    },
    secret: (request: FastifyRequest): SecretPrincipal => asSecretPrincipal(request.principal),
    publishable: (request: FastifyRequest): PublishablePrincipal =>
      asPublishablePrincipal(request.principal),
    invalidate: keys.invalidate,
  }
}

function checkedPublishable(principal: Principal, request: FastifyRequest): PublishablePrincipal {
  const publishable = asPublishablePrincipal(principal)
  checkOrigin(publishable, request.headers.origin)
  return publishable
}

function runAfter(pending: Promise<void> | undefined, next: () => void): Promise<void> | undefined {
  if (pending) return pending.then(next)
  next()
  return undefined
}

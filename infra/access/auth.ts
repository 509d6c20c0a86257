import type {
  FastifyReply,
  FastifyRequest,
  onErrorHookHandler,
  onRequestHookHandler,
  preParsingAsyncHookHandler,
} from 'fastify'
import type { Actor } from '../../schemas/events.ts'
import { ApiError } from '../errors/errors.ts'
import { type ChargeOptions, type CostOf, chargeBody, createCharges } from './charge.ts'
import { createKeyCache, type KeyCacheOptions } from './key-cache.ts'
import {
  bearerOf,
  checkOrganization,
  checkOrigin,
  checkScope,
  publishableOnly,
  secretOnly,
  usable,
} from './key-checks.ts'
import {
  enforcing,
  type KeyRecord,
  type Principal,
  type PublishablePrincipal,
  type Scope,
  type SecretPrincipal,
} from './principal.ts'
import type { BucketName } from './rate-limit/bucket.ts'

export interface AuthOptions extends Omit<KeyCacheOptions, 'cacheMs'>, ChargeOptions {
  /** Milliseconds for which a key is believed without another look-up (default 15,000). */
  cacheMs?: number
  onKeyUsed?: ((keyId: KeyRecord['principal']['keyId']) => void) | undefined
}

export type Auth = ReturnType<typeof createAuth>
type EndpointScope = Exclude<Scope, '*'>

/**
 * Hooks that verify the bearer key, set `request.principal` and charge the request, and typed readers of the
 * principal. The order is: form of the key, look-up, status, organization, type of key and origin; then units and the
 * X-RateLimit-* headers; then scope and organization of the path. A request that is refused before the units costs
 * none.
 */
export function createAuth({ cacheMs = 15_000, onKeyUsed, ...options }: AuthOptions) {
  const keys = createKeyCache({ ...options, cacheMs })
  const charges = createCharges(options)

  // A cached key whose units this process holds, as nearly all are, is checked without a promise.
  function verified<P extends Principal>(
    narrow: (principal: Principal, request: FastifyRequest) => P,
    proceed: (principal: P, request: FastifyRequest, reply: FastifyReply) => Promise<void> | undefined,
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

  const secret = (check: (principal: SecretPrincipal, request: FastifyRequest) => void, cost = 1) =>
    verified(secretOnly, (principal, request, reply) =>
      then(charges.charge(principal, { reply, cost }), () => check(principal, request)),
    )

  // It runs before the key is verified once more, so that what is refused costs neither units nor a look-up.
  function shareOut(key: string, { ip }: FastifyRequest): void {
    const record = keys.peek(key)
    if (record?.principal.type === 'publishable') charges.shareOut(record.principal, ip)
  }

  return {
    requireSecret: (scope: EndpointScope, cost = 1) =>
      enforcing(
        { keyType: 'secret', scope },
        secret((principal) => checkScope(principal, scope), cost),
      ),
    /** For `/v1/organizations/:organizationId` and below: the key must be that organization's own. */
    requireOwnOrganization: (scope: EndpointScope) =>
      enforcing(
        { keyType: 'secret', scope, ownOrganization: true },
        secret((principal, { params }) => {
          checkScope(principal, scope)
          checkOrganization(principal, params)
        }),
      ),
    /** For REST endpoints whose cost is in their body. The units are taken once it is read, from the key's bucket or another. */
    requireSecretCosting(scope: EndpointScope, costOf: CostOf, bucket?: BucketName) {
      const preParsing: preParsingAsyncHookHandler = chargeBody(costOf, async (request, { reply, cost }) => {
        const principal = secretOnly(request.principal)
        await charges.charge(principal, { reply, cost, bucket })
        checkScope(principal, scope)
      })
      const onRequest = enforcing(
        { keyType: 'secret', scope },
        verified(secretOnly, () => undefined),
      )
      return { onRequest, preParsing }
    },
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
    /** For `DecideAs`. */
    actor: (request: FastifyRequest): Actor => ({ type: 'key', id: secretOnly(request.principal).keyId }),
    secret: (request: FastifyRequest): SecretPrincipal => secretOnly(request.principal),
    /** The organization and environment whose data a secret key may read. */
    scope(request: FastifyRequest) {
      const { organizationId, environment } = secretOnly(request.principal)
      return { organizationId, environment }
    },
    publishable: (request: FastifyRequest): PublishablePrincipal => publishableOnly(request.principal),
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

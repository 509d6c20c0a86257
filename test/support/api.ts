import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { Registry } from 'prom-client'
import { expect } from 'vitest'
import { type AuthOptions, createAuth } from '../../infra/access/auth.ts'
import { createRequestMeter } from '../../infra/access/charge.ts'
import { createReadLimiter } from '../../infra/access/read-limiter.ts'
import { readConfig } from '../../infra/config.ts'
import type { DomainEvent } from '../../infra/event-store/event.ts'
import { createApp } from '../../infra/http/app.ts'
import { createMissingProxyDetector } from '../../infra/http/missing-proxy.ts'
import { createIdempotency } from '../../infra/idempotency/idempotency.ts'
import { timeOrderedId } from '../../infra/ids.ts'
import { type NetworkSource, noNetwork } from '../../infra/ip/network.ts'
import type { WebhookClient } from '../../infra/safe-http/client.ts'
import { findKeyByLookupHash } from '../../projections/organizations/queries.ts'
import type { GateOptions } from '../../services/gate/context.ts'
import { startGate } from '../../services/gate/gate.ts'
import type { KeyRequest } from '../../services/organizations/checked-input.ts'
import { createOrganization, issueApiKey } from '../../services/organizations/commands.ts'
import { createConsentKeys } from '../../services/organizations/consent-keys.ts'
import { signUpOrganization } from '../../services/organizations/sign-up.ts'
import type { AccessControl } from '../../services/server/access.ts'
import { openRecipientCache } from '../../services/server/collect.ts'
import { type Core, projections } from '../../services/server/dependencies.ts'
import { createLocalDecisions } from '../../services/server/local-decisions.ts'
import type { Role } from '../../services/server/roles.ts'
import { type AgentKnowledge, addRoutes } from '../../services/server/routes.ts'
import { createSigningSecrets } from '../../services/webhooks/deliveries/attempt.ts'
import { createDirectCalls } from '../../services/webhooks/direct-calls.ts'
import { validateResponses } from './described.ts'
import { createMemoryClaims } from './memory-claims.ts'
import { createMemoryDataKeys } from './memory-data-keys.ts'
import { createMemoryLimiter } from './memory-limiter.ts'
import { noSkips } from './no-skips.ts'
import { openAdmission } from './open-admission.ts'
import { publicUrl, type Send, sendTo } from './send.ts'
import { openServiceWorld, type ServiceWorld } from './service-world.ts'

export interface ApiOptions {
  /** The server's roles. Default: `api` and `gate`. */
  roles?: readonly Role[]
  /** Settings of a server. */
  env?: Record<string, string>
  /** Default: in memory. Use Postgres if a test reads the log's tables. */
  log?: 'memory' | 'postgres'
  /** Replaces the rate limits. Default: in memory, and too high for any test. */
  auth?: Partial<Pick<AuthOptions, 'onKeyUsed' | 'limiter' | 'defaultLimits'>>
  network?: NetworkSource
  agents?: AgentKnowledge
  /** Responds to Gate's requests to services. Default: no service responds. */
  services?: Pick<WebhookClient, 'post'>
  /** Options of Gate to replace. By default its domains publish nothing. */
  gate?: (core: Core) => Partial<GateOptions>
  /** Adds hooks and routes before those of the server. */
  extend?: (app: FastifyInstance, parts: { core: Core; accessControl: AccessControl }) => void
  /** Default: true. Compares every response with the API description, which takes longer than most requests. */
  validates?: boolean
}

/** Organization with a secret key that has all scopes. */
export interface ApiOrganization {
  organizationId: `org_${string}`
  slug: string
  environment: 'live' | 'test'
  key: string
  keyId: string
  /** REST path of the organization. */
  path: string
}

type Answer = Awaited<ReturnType<typeof sendTo>>

interface Deed<Result> {
  /** Returns the response, or the result of the command. */
  thenExpect(expected: Outcome): Promise<Result>
}

interface Outcome {
  /** Expected members of the response, body included; others are allowed. */
  answer?: object
  /** All events appended meanwhile, in order. Members that are not named can have any value. */
  events?: object[]
  /** Expected rows of the read models, by the SQL that selects them. */
  rows?: Record<string, object[]>
}

/**
 * Starts the routes of a server in this process, on read models in a separate database. Closing it throws if a response
 * differed from the API description.
 *
 *     await api.given(...events).when({ method: 'POST', url, key, body }).thenExpect({ answer, events, rows })
 */
export async function startApi(options: ApiOptions = {}) {
  const { roles = ['api', 'gate'], network = noNetwork } = options
  const world = await openServiceWorld({ projections, log: options.log ?? 'memory' })
  const core = coreOf(world, options.env)
  const app = await createApp({
    ...world.base,
    publicUrl,
    trustedProxies: core.config.TRUSTED_PROXIES,
  })
  if (options.validates ?? true) validateResponses(app)
  const accessControl = createAccess(world, options.auth)
  options.extend?.(app, { core, accessControl })
  const gate = roles.includes('gate') ? startGate(gateOptionsOf(core, options)) : undefined
  const registry = new Registry()
  const missingProxy = createMissingProxyDetector(core)
  await using undo = new AsyncDisposableStack()
  const resultSealer = await addRoutes(app, {
    core,
    accessControl,
    network,
    roles,
    demo: undefined,
    gate,
    collect: roles.includes('collect')
      ? {
          claims: createMemoryClaims().open(),
          admission: openAdmission(),
          recipients: openRecipientCache(core, undo),
          countDocument: () => {},
          missingProxy,
          exemptsLoopback: false,
          localDecisions: createLocalDecisions(core.applied),
        }
      : undefined,
    publicUrl,
    agents: options.agents ?? { directories: noDirectories, findTrusted: () => null },
    registry,
    consoleApp: app,
    missingProxy,
    isDevelopment: false,
  })
  await app.ready()
  const undoing = undo.move()
  const send = (request: Send) => sendTo(app, request)

  /** Appends earlier events, after creating their organizations. */
  async function happen(events: DomainEvent[]): Promise<void> {
    for (const event of events) await world.write(aboutOf(event), event)
    await world.caughtUp()
  }

  function given(...events: DomainEvent[]) {
    function when(request: Send): Deed<Answer>
    function when<Result>(command: () => Promise<Result>): Deed<Result>
    function when(act: Send | (() => Promise<unknown>)): Deed<unknown> {
      const run = typeof act === 'function' ? act : () => send(act)
      return {
        async thenExpect(expected) {
          await happen(events)
          const before = (await world.events()).length
          const answer = await run()
          if (expected.answer) expect(answer).toMatchObject(expected.answer)
          await world.caughtUp()
          const appended = (await world.events()).slice(before)
          if (expected.events) expect(appended).toMatchObject(expected.events)
          for (const [sql, rows] of Object.entries(expected.rows ?? {}))
            expect((await world.pool.query(sql)).rows).toMatchObject(rows)
          return answer
        },
      }
    }
    return { when }
  }

  return {
    ...world,
    app,
    core,
    gate,
    accessControl,
    auth: accessControl.auth,
    send,
    newId: <P extends string>(prefix: P) => timeOrderedId(prefix, world.now.ms, randomBytes),
    async organization({ environment = 'live' as 'live' | 'test' } = {}): Promise<ApiOrganization> {
      const slug = `org-${randomBytes(6).toString('hex')}`
      const { organizationId } = await createOrganization(world.deps, { name: 'Acme', slug })
      const owner = { organizationId, environment, name: 'Owner', scopes: ['*'] }
      const { keyId, revealedKey: key } = await issueKey(world, owner)
      return {
        organizationId,
        slug,
        environment,
        key,
        keyId,
        path: `/v1/organizations/${organizationId}`,
      }
    },
    issue: (request: Partial<KeyRequest> & { organizationId: string }) => issueKey(world, request),
    given,
    async stop() {
      await app.close()
      resultSealer?.close()
      await gate?.stop()
      await undoing.disposeAsync()
      await world.close()
    },
  }
}

export type Api = Awaited<ReturnType<typeof startApi>>

const noServices = { post: () => Promise.reject(new Error('no receiver')) }
const noDirectories = { find: () => undefined, stop: async () => {} }

function coreOf(world: ServiceWorld, env: Record<string, string> = {}): Core {
  const { pool, url, log, codec, applied, base, deps } = world
  return {
    ...base,
    config: readConfig(env),
    databaseUrl: url,
    readPool: pool,
    readLimiter: createReadLimiter({ clock: base.clock, connections: 10 }),
    log,
    logRefusal: () => undefined,
    codec,
    dataKeys: createMemoryDataKeys(),
    skips: { ...noSkips, close: async () => {} },
    applied,
    decideAs: deps.decideAs,
    tracing: undefined,
    pool,
    close: async () => {},
  }
}

function createAccess({ pool, base, applied }: ServiceWorld, options: ApiOptions['auth'] = {}) {
  const { clock } = base
  const limits = {
    limiter: createMemoryLimiter(clock),
    defaultLimits: { secret: 1_000_000, publishable: 1_000_000 },
    // All requests come from one address, and many have unknown keys.
    sourceBudget: { spend: () => true, refund: () => {} },
    ...options,
  }
  const findKey = (hashes: string[]) => findKeyByLookupHash(pool, hashes)
  const auth = createAuth({ ...base, findKey, ...limits })
  applied.onChange('organizations', auth.invalidate)
  applied.onChange('policies', auth.invalidate)
  return {
    auth,
    idempotency: createIdempotency(base),
    consoleMeter: createRequestMeter({ clock, limiter: limits.limiter }),
  }
}

function gateOptionsOf(core: Core, options: ApiOptions): GateOptions {
  const { services: client = noServices, gate, network = noNetwork } = options
  return {
    ...core,
    publicUrl,
    network,
    leaseMs: 3000,
    integratorTimeoutMs: 10_000,
    directCalls: createDirectCalls({
      ...core,
      client,
      secrets: createSigningSecrets(core.keyring),
    }),
    consentKeys: createConsentKeys({ ...core, publicUrl }),
    domainReader: { lookUpTxt: async () => [], fileAt: async () => undefined },
    signUpOrganization: ({ startedAt, ...signup }) => {
      const decide = core.decideAs({ type: 'operator', id: 'test' })
      return signUpOrganization({ ...core, decide, idTime: startedAt }, signup)
    },
    eraseSession: async () => false,
    eraseSessions: async () => {},
    retentionMs: Number.MAX_SAFE_INTEGER,
    ...gate?.(core),
  }
}

const issueKey = (
  { deps }: ServiceWorld,
  request: Partial<KeyRequest> & { organizationId: string },
) =>
  issueApiKey(deps, {
    name: 'Key',
    environment: 'live',
    type: 'secret',
    by: 'operator',
    ...request,
  })

function aboutOf({ data }: DomainEvent) {
  return {
    organizationId: 'organization_id' in data ? data.organization_id : null,
    environment: 'environment' in data ? data.environment : null,
  }
}

import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { type Auth, createAuth } from '../../infra/access/auth.ts'
import { createCharges } from '../../infra/access/charge.ts'
import { createKeyring, type Keyring } from '../../infra/crypto/keyring.ts'
import { createApp } from '../../infra/http/app.ts'
import { metricsRoutes } from '../../infra/http/metrics.ts'
import { createIdempotency } from '../../infra/idempotency/idempotency.ts'
import { asId } from '../../infra/ids.ts'
import { type AddressNetwork, ipSources, noNetwork } from '../../infra/ip/network.ts'
import { openPostgresLog } from '../../infra/log/postgres/log.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import { createAddressRules } from '../../infra/safe-http/addresses.ts'
import { auditProjection } from '../../projections/audit/projection.ts'
import { correctionsProjection } from '../../projections/corrections/projection.ts'
import { createErasuresProjection } from '../../projections/erasures/projection.ts'
import { gateProjection } from '../../projections/gate/projection.ts'
import { findGateSession } from '../../projections/gate/queries.ts'
import { organizationsProjection } from '../../projections/organizations/projection.ts'
import { findKeyByLookupHash } from '../../projections/organizations/queries.ts'
import { policiesProjection } from '../../projections/policies/projection.ts'
import { repeatsProjection } from '../../projections/repeats/projection.ts'
import { sessionsProjection } from '../../projections/sessions/projection.ts'
import { webhooksProjection } from '../../projections/webhooks/projection.ts'
import type { Environment } from '../../schemas/events.ts'
import { agentRoutes } from '../../services/agents/routes.ts'
import { collectRoutes } from '../../services/collect/routes.ts'
import { consoleRoutes } from '../../services/console/routes.ts'
import { correctionRoutes } from '../../services/corrections/routes.ts'
import { erasureRoutes } from '../../services/erasure/routes.ts'
import type { DomainReader } from '../../services/gate/context.ts'
import { startGate } from '../../services/gate/gate.ts'
import { createService } from '../../services/gate/registry/commands.ts'
import { type DomainClaim, domainChallenge } from '../../services/gate/registry/ownership.ts'
import { gateRoutes } from '../../services/gate/routes.ts'
import { markRoutes } from '../../services/marks/routes.ts'
import { auditRoutes } from '../../services/organizations/audit-routes.ts'
import type { KeyRequest } from '../../services/organizations/checked-input.ts'
import {
  changeOrganization,
  createOrganization,
  issueApiKey,
} from '../../services/organizations/commands.ts'
import { createConsentKeys } from '../../services/organizations/consent-keys.ts'
import { decideCapability } from '../../services/organizations/decide-organization.ts'
import { organizationRoutes } from '../../services/organizations/routes.ts'
import { signUpOrganization } from '../../services/organizations/sign-up.ts'
import { readbackRoutes } from '../../services/readback/routes.ts'
import { linkedVisitors } from '../../services/scoring/correct-visitors.ts'
import { eraseStates, hideVisitors } from '../../services/scoring/erase.ts'
import { createScoreExplainer } from '../../services/scoring/explain/score.ts'
import { scoringModelRoutes } from '../../services/scoring/model/routes.ts'
import { requestRoutes } from '../../services/scoring/requests/routes.ts'
import { createLinkExplainer } from '../../services/scoring/visitors/explain.ts'
import { webRoutes } from '../../services/web/routes.ts'
import { createSigningSecrets } from '../../services/webhooks/deliveries/attempt.ts'
import { createDirectCalls } from '../../services/webhooks/direct-calls.ts'
import { createEndpoint } from '../../services/webhooks/endpoints/commands.ts'
import { sendTest } from '../../services/webhooks/endpoints/send-test.ts'
import { webhookRoutes } from '../../services/webhooks/routes.ts'
import { validateResponses } from '../support/described.ts'
import { answeringService, gateFlow } from '../support/gate-flow.ts'
import { registration } from '../support/gate-world.ts'
import { createMemoryClaims } from '../support/memory-claims.ts'
import { createMemoryDataKeys } from '../support/memory-data-keys.ts'
import { createMemoryLimiter } from '../support/memory-limiter.ts'
import { openAdmission } from '../support/open-admission.ts'
import { ensureTopics, openProjectionWorld, silent, tester } from '../support/projections.ts'
import { metaOf, sessionScored, visitorLink } from '../support/session-scored.ts'
import { storePerson } from './person.ts'

export const sessionId = 'sid_00000000000000000000000001'
export const visitorId = 'vid_00000000000000000000000001'

interface WorldOptions {
  trustedProxies?: string[]
  /** Default: every response is compared with the description, which takes longer than most requests. */
  validates?: boolean
}

/** Every route of a server on one database and one log, with a clock of the test's. */
export async function startWorld({ trustedProxies = [], validates = true }: WorldOptions = {}) {
  const world = await openProjectionWorld()
  const { pool, url } = world.database
  const log = await openPostgresLog({ pool, url, logger: silent })
  await ensureTopics(log)
  await log.ensureTopics([{ topic: 'tidegate.collect.v1', partitions: 1 }])
  const applied = await world.openApplied()
  await world.run(log, organizationsProjection, { applied })
  await world.run(log, sessionsProjection, { applied })
  await world.run(log, webhooksProjection, { applied })
  await world.run(log, gateProjection, { applied })
  await world.run(log, policiesProjection, { applied })
  for (const projection of [repeatsProjection, correctionsProjection, auditProjection])
    await world.run(log, projection, { applied })
  await world.run(log, createErasuresProjection([eraseStates]), { applied })
  const now = { ms: 1_800_000_000_000 }
  const clock = () => now.ms
  const keyring = createKeyring(randomBytes(32).toString('base64'))
  const base = { pool, keyring, clock, random: randomBytes, logger: silent }
  const limiter = createMemoryLimiter(clock)
  const auth = createAuth({
    ...base,
    findKey: (hashes) => findKeyByLookupHash(pool, hashes),
    limiter,
    defaultLimits: { secret: 1_000_000, publishable: 1_000_000 },
    // All requests come from one address, and many of their keys are unknown.
    sourceBudget: { spend: () => true, giveBack: () => {} },
  })
  applied.onChange('organizations', auth.invalidate)
  const { codec } = world
  const decideAs = await world.openDecide(log)
  const deps = {
    ...base,
    log,
    codec,
    auth,
    decideAs,
    decide: decideAs(tester),
    idempotency: createIdempotency(base),
    network: { ...noNetwork, lookup: knownAddress, missing: [] },
    readPool: pool,
    config: { WEBHOOK_ALLOWED_NETWORKS: [] },
    rules: createAddressRules([]),
    dataKeys: createMemoryDataKeys(),
    claims: createMemoryClaims().open(),
    admission: openAdmission(),
    sourceMbPerHour: 1_000_000,
    checkRecipients: async () => {},
    sealResult: async ({ decisionId }: { decisionId: string }) => `sealed:${decisionId}`,
  }
  const publicUrl = 'https://tidegate.example'
  const endpointsOfServices = new Map<
    string,
    Awaited<ReturnType<typeof createEndpoint>>['endpointId']
  >()
  const app = await createApp({ ...base, publicUrl, trustedProxies })
  const described = validates
    ? validateResponses(app)
    : { problems: [], count: () => 0, check() {} }
  const routes: string[] = []
  app.addHook('onRoute', ({ method, url }) => {
    for (const one of [method].flat()) routes.push(`${one} ${url.replace(/:([A-Za-z]+)/g, '{$1}')}`)
  })
  metricsRoutes(app, { projectionLags: async () => [] })
  const addRest = (to: FastifyInstance, auth: Auth) => {
    const by = { ...deps, auth }
    readbackRoutes(to, {
      ...by,
      identify: createLinkExplainer(pool),
      explainScore: createScoreExplainer(pool),
    })
    scoringModelRoutes(to, { ...by, pool })
    organizationRoutes(to, by)
    auditRoutes(to, { ...by, applied })
    agentRoutes(to, by)
    webhookRoutes(to, by)
    correctionRoutes(to, { ...by, visitors: linkedVisitors })
    markRoutes(to, by)
    erasureRoutes(to, {
      ...by,
      applied,
      scoringFollows: async () => {},
      ownOrganizationId: 'org_own',
      hideVisitors: (tx, { scope, visitorIds }) =>
        hideVisitors(tx, { scope, visitorIds, continuityIds: [] }),
      exporting: {
        pool,
        readStates: async () => new Map<string, object>(),
        readLinks: async () => [],
      },
    })
  }
  addRest(app, auth)
  const charges = createCharges({ clock, limiter })
  const engines = { questionsScript: async () => '', teachesAtLogin: false }
  await consoleRoutes(app, { ...deps, ...base, ...engines, publicUrl, charges, addRest })
  requestRoutes(app, {
    ...deps,
    directories: { find: () => undefined },
    findTrusted: () => null,
    onScored: () => {},
    firstPartyUrls: ['https://shop.example'],
    maxLifetimeMs: 3_600_000,
  })
  collectRoutes(app, { ...deps, signatures: { baseUrls: [publicUrl], maxLifetimeMs: 3_600_000 } })
  await webRoutes(app, { random: randomBytes })
  const consentKeys = createConsentKeys({ ...deps, publicUrl })
  const gate = startGate({
    ...deps,
    applied,
    publicUrl,
    leaseMs: 10_000,
    integratorTimeoutMs: 10_000,
    consentKeys,
    domainReader: showingDomains({ pool, keyring }),
    directCalls: createDirectCalls({
      ...deps,
      client: {
        post: (options) => (options.url === silentUrl ? silence : answeringService(options)),
      },
      secrets: createSigningSecrets(keyring),
    }),
    signUpOrganization: ({ startedAt, ...signup }) =>
      signUpOrganization({ ...deps, idTime: startedAt }, signup),
    eraseSession: async (_decide, id) => (await findGateSession(pool, id)) !== undefined,
    eraseSessions: async () => {},
    retentionMs: Number.MAX_SAFE_INTEGER,
  })
  await gateRoutes(app, { ...deps, gate })
  await app.ready()

  return {
    app,
    now,
    publicUrl,
    deps,
    log,
    gateParts: gate.parts,
    described,
    /** Method and path of what was added to the edge, as the description writes paths. */
    routes,
    async organization(name: string) {
      const { organizationId } = await createOrganization(deps, { name, slug: name.toLowerCase() })
      await changeOrganization(deps, organizationId, (organization, change) =>
        decideCapability(organization, { capability: 'ip_rotation', enabled: true, ...change }),
      )
      return organizationId
    },
    issue: (request: Partial<KeyRequest> & { organizationId: string }) =>
      issueApiKey(deps, { name: 'Key', environment: 'live', by: 'operator', ...request }),
    /** A webhook endpoint of the live environment, and an event that was raised for it. */
    async webhook(organizationId: string): Promise<{ endpointId: string; eventId: string }> {
      const asked = {
        name: 'Endpoint',
        url: 'https://shop.example/',
        event_types: ['session.result.persisted'],
      }
      const owner = { organizationId, environment: 'live' } as const
      const { endpointId } = await createEndpoint(deps, { ...asked, ...owner })
      return { endpointId, ...(await sendTest(deps, { ...owner, endpointId })) }
    },
    /** The steps of signups and logins. */
    gate: gateFlow({ app, publicUrl, clock, consentKeys }),
    /** A service of the organization, and its id. Those with one URL share an endpoint: an organization has 20. */
    async service(organizationId: string, { url = 'https://shop.example/' } = {}): Promise<string> {
      const id = `service-${randomBytes(6).toString('hex')}`
      const tenant = { organizationId: asId('org', organizationId), environment: 'live' } as const
      const asked = { ...tenant, name: 'Approvals', url, event_types: ['gate.session.approved'] }
      const shared = endpointsOfServices.get(`${organizationId} ${url}`)
      const endpointId = shared ?? (await createEndpoint(deps, asked)).endpointId
      endpointsOfServices.set(`${organizationId} ${url}`, endpointId)
      await createService(deps, { ...registration({ ...tenant, endpointId }), id })
      return id
    },
    /** Of the live environment. */
    person: (organizationId: string) =>
      storePerson({ pool, log, codec, applied, clock }, organizationId),
    /** Stores one session with its visitor. */
    async score(organizationId: string, environment: Environment): Promise<void> {
      const visitor = visitorLink({ id: visitorId })
      const scored = sessionScored({
        organization_id: organizationId,
        environment,
        session_id: sessionId,
        visitor,
      })
      const record = codec.toRecord({ type: 'SessionScored', data: scored }, metaOf(scored))
      await applied.waitFor('sessions', await log.append([record]), { timeoutMs: 20_000 })
    },
    async stop() {
      await app.close()
      await gate.stop()
      await world.stopRunners()
      await log.close()
      await world.close()
    },
  }
}

/** Of a receiver that is not there. */
export const silentUrl = 'https://silent.example/'
const silence = Promise.resolve({
  kind: 'failure',
  reason: 'connect',
  message: 'Nobody is there.',
  durationMs: 1,
} as const)

export type World = Awaited<ReturnType<typeof startWorld>>

export const unknownAddress = '9.9.9.9'
export const brokenAddress = '8.8.4.4'

/** As a database that knows every address but one would answer; with another one it breaks. */
function knownAddress(ip: string): AddressNetwork {
  const network = { ...sessionScored().network, sources: [...ipSources] }
  if (ip === unknownAddress) return network
  if (ip === brokenAddress) throw new Error('a bug')
  return {
    ...network,
    ip_address: ip,
    status: 'ready',
    location: {
      city: null,
      region: null,
      country: 'Germany',
      country_code: 'DE',
      latitude: null,
      longitude: null,
      timezone: null,
      postal_code: null,
      accuracy_radius_km: null,
    },
    routing: { asn: 'AS64512', organization: 'Example' },
    evaluated_at: 1_800_000_000_000,
  }
}

/** Every domain shows the challenge of every service. */
function showingDomains({ pool, keyring }: { pool: Db; keyring: Keyring }): DomainReader {
  return {
    async txtRecords(name) {
      const domain = name.slice('_tidegate.'.length)
      const { rows } = await pool.query<DomainClaim>(
        `select organization_id as "organizationId", service_id as "serviceId" from read.gate_services`,
      )
      return rows.map((claim) => domainChallenge(keyring, { ...claim, domain }).dns.value)
    },
    fileAt: async () => undefined,
  }
}

import { randomBytes } from 'node:crypto'
import { metricsRoutes } from '../../infra/http/metrics.ts'
import { asId } from '../../infra/ids.ts'
import { type AddressNetwork, ipSources, noNetwork } from '../../infra/ip/network.ts'
import { findGateSession } from '../../projections/gate/queries.ts'
import type { Environment } from '../../schemas/events.ts'
import { collectRoutes } from '../../services/collect/routes.ts'
import { createService } from '../../services/gate/registry/commands.ts'
import { type DomainClaim, domainChallenge } from '../../services/gate/registry/ownership.ts'
import type { KeyRequest } from '../../services/organizations/checked-input.ts'
import {
  changeOrganization,
  createOrganization,
  issueApiKey,
} from '../../services/organizations/commands.ts'
import { decideCapability } from '../../services/organizations/decide-organization.ts'
import type { Core } from '../../services/server/dependencies.ts'
import { createEndpoint } from '../../services/webhooks/endpoints/commands.ts'
import { sendTest } from '../../services/webhooks/endpoints/send-test.ts'
import { startApi } from '../support/api.ts'
import { answeringService, gateFlow } from '../support/gate-flow.ts'
import { registration } from '../support/gate-world.ts'
import { createMemoryClaims } from '../support/memory-claims.ts'
import { createMemoryLog } from '../support/memory-log.ts'
import { openAdmission } from '../support/open-admission.ts'
import { publicUrl } from '../support/send.ts'
import { sessionScored, visitorLink } from '../support/session-scored.ts'
import { storePerson } from './person.ts'

export const sessionId = 'sid_00000000000000000000000001'
export const visitorId = 'vid_00000000000000000000000001'

/** A server with all routes whose services answer, whose domains are verified and whose hand-offs need no scoring. */
export async function startWorld({ trustedProxies = [] as string[], validates = true } = {}) {
  const routes: string[] = []
  const api = await startApi({
    log: 'postgres',
    env: { FIRST_PARTY_URLS: 'https://shop.example', TRUSTED_PROXIES: trustedProxies.join() },
    network: { ...noNetwork, lookup: knownAddress, missing: [] },
    services: { post: async (sent) => (sent.url === silentUrl ? silence : answeringService(sent)) },
    gate: (core) => ({
      leaseMs: 10_000,
      domainReader: {
        lookUpTxt: (name) => challengesAt(core, name.slice('_tidegate.'.length)),
        fileAt: async () => undefined,
      },
      eraseSession: async (_decide, id) => (await findGateSession(core.pool, id)) !== undefined,
    }),
    validates,
    extend(app, { core, accessControl }) {
      app.addHook('onRoute', ({ method, url }) => {
        for (const one of [method].flat())
          routes.push(`${one} ${url.replace(/:([A-Za-z]+)/g, '{$1}')}`)
      })
      metricsRoutes(app, { projectionLags: async () => [] })
      collectRoutes(app, {
        ...core,
        ...accessControl,
        // Erasures wait until scoring has read the log, so collect has another one.
        log: createMemoryLog(),
        claims: createMemoryClaims().open(),
        admission: openAdmission(),
        sourceMbPerHour: 1_000_000,
        requireRecipients: async () => {},
        sealResult: async ({ decisionId }) => `sealed:${decisionId}`,
        signatures: { baseUrls: [publicUrl], maxLifetimeMs: 3_600_000 },
      })
    },
  })
  const { app, now, log, gate } = api
  if (!gate) throw new Error('there is no Gate')
  await log.ensureTopics([{ topic: 'tidegate.collect.v1', partitions: 1 }])
  now.ms = 1_800_000_000_000
  const deps = { ...api.core, ...api.deps }
  const endpointsOfServices = new Map<string, Awaited<ReturnType<typeof newEndpoint>>>()

  async function newEndpoint(organizationId: string, url: string, type: string) {
    const asked = { name: 'Endpoint', url, event_types: [type] }
    const owner = { organizationId, environment: 'live' as const }
    return (await createEndpoint(deps, { ...asked, ...owner })).endpointId
  }

  return {
    app,
    now,
    publicUrl,
    deps,
    log,
    gateParts: gate.parts,
    /** Method and path of each route, as the description writes paths. */
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
      const shop = 'https://shop.example/'
      const endpointId = await newEndpoint(organizationId, shop, 'session.result.persisted')
      const owner = { organizationId, environment: 'live' } as const
      return { endpointId, ...(await sendTest(deps, { ...owner, endpointId })) }
    },
    /** The steps of signups and logins. */
    gate: gateFlow({ app, publicUrl, clock: deps.clock, consentKeys: gate.parts.consentKeys }),
    /** A service of the organization, and its id. Those with one URL share an endpoint: an organization has 20. */
    async service(organizationId: string, { url = 'https://shop.example/' } = {}): Promise<string> {
      const id = `service-${randomBytes(6).toString('hex')}`
      const shared = `${organizationId} ${url}`
      const endpointId =
        endpointsOfServices.get(shared) ??
        (await newEndpoint(organizationId, url, 'gate.session.approved'))
      endpointsOfServices.set(shared, endpointId)
      const tenant = { organizationId: asId('org', organizationId), environment: 'live' } as const
      await createService(deps, { ...registration({ ...tenant, endpointId }), id })
      return id
    },
    /** Somebody in the live environment. */
    person: (organizationId: string) => storePerson(api, organizationId),
    /** Stores one session with its visitor. */
    async score(organizationId: string, environment: Environment): Promise<void> {
      const data = sessionScored({
        organization_id: organizationId,
        environment,
        session_id: sessionId,
        visitor: visitorLink({ id: visitorId }),
      })
      await api.write({ organizationId, environment }, { type: 'SessionScored', data })
      await api.caughtUp()
    },
    stop: api.stop,
  }
}

export type World = Awaited<ReturnType<typeof startWorld>>

/** The URL of a receiver that is not there. */
export const silentUrl = 'https://silent.example/'
const silence = Promise.resolve({
  kind: 'failure',
  reason: 'connect',
  message: 'Nobody is there.',
  durationMs: 1,
} as const)

export const unknownAddress = '9.9.9.9'
export const brokenAddress = '8.8.4.4'

/** The answers of a database that knows every address but one, and breaks at another one. */
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

/** The challenges of all services: every domain shows them. */
async function challengesAt({ pool, keyring }: Core, domain: string): Promise<string[]> {
  const { rows } = await pool.query<DomainClaim>(
    `select organization_id as "organizationId", service_id as "serviceId" from read.gate_services`,
  )
  return rows.map((claim) => domainChallenge(keyring, { ...claim, domain }).dns.value)
}

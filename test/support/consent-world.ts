import { createHash, generateKeyPairSync, randomBytes } from 'node:crypto'
import { createCodec } from '../../infra/event-store/codec.ts'
import type { DomainEvent } from '../../infra/event-store/event.ts'
import { derivedId, type GateSessionId, randomId } from '../../infra/ids.ts'
import { openPostgresLog } from '../../infra/log/postgres/log.ts'
import { createPool } from '../../infra/postgres/pool.ts'
import { systemServiceId } from '../../infra/wire/gate.ts'
import { findGateSession, findService } from '../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../projections/gate/tables.ts'
import type { GateServiceDefinition } from '../../schemas/events.ts'
import { systemService } from '../../services/gate/registry/registered.ts'
import { startCluster } from './cluster.ts'
import { eventually } from './eventually.ts'
import { findPage } from './gate-page-row.ts'
import { silent, testCause } from './projections.ts'

export interface ConsentWorld {
  baseUrl: string
  /** A service as the log has it, past what the API would take. */
  service(definition?: Partial<GateServiceDefinition>): Promise<string>
  /** A signup that waits for consent; of the built-in service where none is named. */
  signup(serviceId?: string): Promise<GateSessionId>
  session(id: GateSessionId): Promise<GateSessionRow | undefined>
  /** Whether its page was opened and not closed. */
  isOpen(id: GateSessionId): Promise<boolean>
  pageUrl(id: GateSessionId): string
  stop(): Promise<void>
}

/** A server, and requests on its log that are older than any limit on making them. */
export async function openConsentWorld(): Promise<ConsentWorld> {
  const cluster = await startCluster({ log: 'postgres', processes: 1 })
  const url = String(cluster.settings.DATABASE_URL)
  const pool = createPool({ url })
  const log = await openPostgresLog({ pool, url, logger: silent })
  const codec = createCodec()
  const baseUrl = String(cluster.baseUrls[0])
  const { organizationId } = cluster.owner

  async function append(event: DomainEvent): Promise<void> {
    const eventId = randomId('evt', randomBytes)
    await log.append([
      codec.toCausedRecord(
        event,
        { eventId, time: Date.now(), organizationId, environment: 'live' },
        testCause,
      ),
    ])
  }

  return {
    baseUrl,
    async service(definition = {}) {
      const data = { ...registered(organizationId), definition: { ...acme, ...definition } }
      await append({ type: 'GateServiceRegistered', data })
      await readable(() => findService(pool, data.service_id))
      return data.service_id
    },
    async signup(serviceId = systemServiceId) {
      const data = opened(serviceId, serviceId === systemServiceId ? null : organizationId)
      await append({ type: 'GateSessionOpened', data })
      await readable(() => findGateSession(pool, data.gate_session_id))
      return data.gate_session_id
    },
    session: (id) => findGateSession(pool, id),
    isOpen: async (id) => (await findPage(pool, id))?.closed_at === null,
    pageUrl: (id) => `${baseUrl}/gate/consent/${id}`,
    async stop() {
      await log.close()
      await pool.end()
      await cluster.stop()
    },
  }
}

function readable(find: () => Promise<unknown>): Promise<void> {
  return eventually(async () => {
    if (!(await find())) throw new Error('the read model does not have it yet')
  })
}

/** A service that says all that one can say. */
export const acme: GateServiceDefinition = {
  ...systemService('https://acme.example').definition,
  name: 'Acme Mail',
  description: 'Transactional mail for products and their agents. Free for 3,000 messages a month.',
  website: 'https://acme.example',
  dashboard_login_url: 'https://app.acme.example/auth/gate',
  webhook_endpoint_id: derivedId('we', 'acme'),
  env_vars: [
    { name: 'API key', key: 'ACME_API_KEY', secret: true },
    { name: 'Sending domain', key: 'ACME_DOMAIN', secret: false },
  ],
  branding: {
    logo_url: null,
    primary_color: '#5b3df5',
    secondary_color: '#f53d8a',
    ascii_art: null,
  },
  consent: { terms_url: 'https://acme.example/terms', privacy_url: 'https://acme.example/privacy' },
  claim_required: false,
  minimum_verdict: null,
}

const registered = (organizationId: string) => ({
  service_id: `acme-${randomBytes(4).toString('hex')}`,
  organization_id: organizationId,
  environment: 'live' as const,
  registered_at: Date.now(),
})

function opened(serviceId: string, organizationId: string | null) {
  const { publicKey } = generateKeyPairSync('x25519')
  const key = Buffer.from(String(publicKey.export({ format: 'jwk' }).x), 'base64url')
  return {
    gate_session_id: randomId('gate', randomBytes),
    service_id: serviceId,
    organization_id: organizationId,
    environment: 'live' as const,
    account_name: 'Harbour Notes',
    metadata: null,
    delivery_key_id: createHash('sha256').update(key).digest('base64url'),
    delivery_public_key: key.toString('base64url'),
    poll_token_hash: randomBytes(32).toString('hex'),
    claim: null,
    requested_ip: '127.0.0.1',
    requested_user_agent: 'tidegate-cli/0.1.0',
    confirmation_code: 'K4-7M9',
    opened_at: Date.now(),
    expires_at: Date.now() + 15 * 60 * 1000,
  }
}

import { randomBytes } from 'node:crypto'
import { readConfig } from '../../../infra/config.ts'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import { lastPositions } from '../../../infra/event-store/catch-up.ts'
import type { DomainEvent, RecordedEvent } from '../../../infra/event-store/event.ts'
import { type Clock, derivedHexId, randomId } from '../../../infra/ids.ts'
import type { EventLog, Position } from '../../../infra/log/port.ts'
import { generateSigningSecret, sealSigningSecret } from '../../../infra/wire/webhooks/signature.ts'
import { gateProjection } from '../../../projections/gate/projection.ts'
import { organizationsProjection } from '../../../projections/organizations/projection.ts'
import { sessionsProjection } from '../../../projections/sessions/projection.ts'
import { webhooksProjection } from '../../../projections/webhooks/projection.ts'
import { findDelivery } from '../../../projections/webhooks/queries.ts'
import type { DeliveryRow } from '../../../projections/webhooks/tables.ts'
import {
  eventTopics,
  type WebhookDeliveryAttempted,
  type WebhookEndpointCreated,
  type WebhookEventRaised,
} from '../../../schemas/events.ts'
import { runDispatcher } from '../../../services/webhooks/dispatch/dispatcher.ts'
import { allRecords } from '../../infra/log/all-records.ts'
import { eventually } from '../../support/eventually.ts'
import type { TestLog } from '../../support/logs.ts'
import { ensureTopics, openProjectionWorld, silent } from '../../support/projections.ts'

const hex = (bytes: number) => randomBytes(bytes).toString('hex')
const patience = { timeoutMs: 60_000 }
export const newEventId = () => randomId('evt', randomBytes)

export interface Endpoint {
  id: string
  organizationId: string
  secret: string
}

interface DispatcherStart {
  env?: Record<string, string | undefined>
  log?: EventLog
  clock?: Clock
  logger?: typeof silent
}

function projectionOf({ type }: DomainEvent): string {
  if (type.startsWith('Organization')) return 'organizations'
  return type.startsWith('Gate') ? 'gate' : 'webhooks'
}

export type WebhookLog = Awaited<ReturnType<typeof openWebhookLog>>

/** A real log and database with the read models, and dispatchers that send to loopback. */
export async function openWebhookLog(
  testLog: TestLog,
  keyring = createKeyring(randomBytes(32).toString('base64')),
) {
  const world = await openProjectionWorld()
  const { codec } = world
  const { pool, url } = world.database
  const log = await testLog.open()
  await ensureTopics(log)
  const applied = await world.openApplied()
  const decideAs = await world.openDecide(log)
  const running = new Set<{ stop(): Promise<void> }>()
  const openedAt = Date.now()
  const topic = eventTopics.WebhookEventRaised

  /** Appends events, each of one organization. */
  function append(...events: DomainEvent[]): Promise<Position[]> {
    const records = events.map((event) => {
      const { data } = event
      const organizationId = 'organization_id' in data ? data.organization_id : null
      const eventId = event.type === 'WebhookEventRaised' ? event.data.event_id : newEventId()
      return {
        event,
        meta: { eventId, time: Date.now(), organizationId, environment: 'live' as const },
      }
    })
    return world.append(log, records)
  }

  /** Resolves when the read model has the event. */
  async function happen(event: DomainEvent): Promise<void> {
    await applied.waitFor(projectionOf(event), await append(event), patience)
  }

  async function organization(): Promise<string> {
    const organization_id = randomId('org', randomBytes)
    const data = { organization_id, name: 'Acme', slug: hex(6), created_at: Date.now() }
    await happen({ type: 'OrganizationCreated', data })
    return organization_id
  }

  const seal = (endpointId: string, secret: string) =>
    sealSigningSecret({ keyring, random: randomBytes, secret, endpointId })

  function endpointCreated(some: Partial<WebhookEndpointCreated> = {}) {
    const endpoint_id = `we_${hex(16)}`
    const secret = generateSigningSecret(randomBytes)
    const data: WebhookEndpointCreated = {
      organization_id: randomId('org', randomBytes),
      endpoint_id,
      environment: 'live',
      name: 'Hooks',
      url: 'https://hooks.example/',
      event_types: ['session.result.persisted'],
      filter: null,
      signing_secret_sealed: seal(endpoint_id, secret),
      created_at: Date.now(),
      ...some,
    }
    const endpoint: Endpoint = { id: endpoint_id, organizationId: data.organization_id, secret }
    return { endpoint, event: { type: 'WebhookEndpointCreated', data } as const }
  }

  /** Creates an endpoint, by default of a new organization. */
  async function endpoint(
    url: string,
    some: Partial<WebhookEndpointCreated> = {},
  ): Promise<Endpoint> {
    const organization_id = some.organization_id ?? (await organization())
    const { endpoint, event } = endpointCreated({ url, ...some, organization_id })
    await happen(event)
    return endpoint
  }

  /** Raises events for the endpoint and returns their ids. */
  async function raise(
    { id, organizationId }: Endpoint,
    count = 1,
    some: Partial<WebhookEventRaised> = {},
  ): Promise<string[]> {
    const all = Array.from({ length: count }, () => ({
      type: 'WebhookEventRaised' as const,
      data: {
        event_id: newEventId(),
        organization_id: organizationId,
        environment: 'live' as const,
        type: 'session.result.persisted',
        subject_type: 'session',
        subject_id: 'sid_1',
        data: JSON.stringify({ object: 'session', note: 'ünïcode' }),
        created_at: openedAt,
        endpoint_ids: [id],
        route: 'queued' as const,
        ...some,
      },
    }))
    await applied.waitFor('webhooks', await append(...all), patience)
    return all.map(({ data }) => data.event_id)
  }

  const idsOf = (eventId: string, { id, organizationId }: Endpoint) => ({
    event_id: eventId,
    delivery_id: derivedHexId('wdlv', eventId, id),
    organization_id: organizationId,
    environment: 'live' as const,
    endpoint_id: id,
  })

  return {
    pool,
    url,
    log,
    codec,
    applied,
    decideAs,
    keyring,
    append,
    happen,
    organization,
    endpointCreated,
    endpoint,
    raise,
    idsOf,
    stopProjection: world.stopRunners,
    /** Starts the projections; the webhooks one consumes another view of the log. */
    async project(from: EventLog = log): Promise<void> {
      await world.run(log, organizationsProjection, { applied })
      await world.run(log, gateProjection, { applied })
      await world.run(log, sessionsProjection, { applied })
      await world.run(from, webhooksProjection, { applied })
    },
    async start({ env = {}, ...some }: DispatcherStart = {}) {
      const dispatcher = await runDispatcher({
        config: readConfig({ WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8', ...env }),
        databaseUrl: url,
        log,
        codec,
        applied: await world.openApplied(),
        decideAs,
        keyring,
        clock: Date.now,
        random: randomBytes,
        logger: silent,
        meter: { onAttempt: () => {}, onDelivered: () => {}, onSending: () => {} },
        ...some,
      })
      const stoppable = {
        stop() {
          running.delete(stoppable)
          return dispatcher.stop()
        },
      }
      running.add(stoppable)
      return stoppable
    },
    async disable(endpoint: Endpoint): Promise<void> {
      const { id: endpoint_id, organizationId: organization_id } = endpoint
      const data = { organization_id, endpoint_id, reason: 'manual', disabled_at: 1 } as const
      await happen({ type: 'WebhookEndpointDisabled', data })
    },
    /** Rotates the signing secret, so that the previous one is valid for another minute. Returns the new one. */
    async rotate({ id: endpoint_id, organizationId: organization_id }: Endpoint): Promise<string> {
      const secret = generateSigningSecret(randomBytes)
      const data = {
        organization_id,
        endpoint_id,
        signing_secret_sealed: seal(endpoint_id, secret),
        rotated_at: Date.now(),
        previous_expires_at: Date.now() + 60_000,
      }
      await happen({ type: 'WebhookEndpointSecretRotated', data })
      return secret
    },
    async suspend(organization_id: string): Promise<void> {
      await happen({ type: 'OrganizationSuspended', data: { organization_id, suspended_at: 1 } })
    },
    async delivery(eventId: string, endpoint: Endpoint): Promise<DeliveryRow> {
      const row = await findDelivery(pool, idsOf(eventId, endpoint).delivery_id)
      if (!row) throw new Error(`no delivery of ${eventId}`)
      return row
    },
    /** Appends a successful attempt without waiting for the read model. */
    async recordAttempt(
      eventId: string,
      endpoint: Endpoint,
      some: Partial<WebhookDeliveryAttempted> = {},
    ): Promise<void> {
      const data: WebhookDeliveryAttempted = {
        ...idsOf(eventId, endpoint),
        attempt: 1,
        attempted_at: Date.now(),
        duration_ms: 5,
        outcome: 'succeeded',
        response_status: 200,
        response_body: null,
        error: null,
        next_attempt_at: null,
        session_subject_id: null,
        ...some,
      }
      await append({ type: 'WebhookDeliveryAttempted', data })
    },
    /** Leases a delivery for a dead dispatcher; the lease expires after `leaseMs`, which can be negative. */
    async inFlightOfDead(eventId: string, endpoint: Endpoint, leaseMs: number): Promise<void> {
      const { delivery_id, endpoint_id } = idsOf(eventId, endpoint)
      await pool.query(
        `insert into tidegate.webhook_leases (delivery_id, attempt, due_at, event_id, endpoint_id, state, owner, expires_at)
         values ($1, 1, $2, $3, $4, 'sending', 'dead', extract(epoch from clock_timestamp()) * 1000 + $5)
         on conflict (delivery_id, attempt, due_at) do update set expires_at = excluded.expires_at`,
        [delivery_id, openedAt, eventId, endpoint_id, leaseMs],
      )
    },
    /** Returns the expiry of the delivery's lease as text; null if there is none. */
    async leaseEnd(eventId: string, endpoint: Endpoint): Promise<string | null> {
      const { rows } = await pool.query<{ at: string }>(
        'select expires_at::text as at from tidegate.webhook_leases where delivery_id = $1',
        [idsOf(eventId, endpoint).delivery_id],
      )
      return rows[0]?.at ?? null
    },
    /** Resolves to the number of deliveries by status, once none to the endpoint is pending. */
    ended({ id }: Endpoint): Promise<Record<string, number>> {
      return eventually(async () => {
        const { rows } = await pool.query<{ status: string; n: number }>(
          `select status, count(*)::int as n from read.webhook_deliveries where endpoint_id = $1 group by 1`,
          [id],
        )
        if (rows.some(({ status }) => status === 'pending')) throw new Error(JSON.stringify(rows))
        return Object.fromEntries(rows.map(({ status, n }) => [status, n]))
      }, patience)
    },
    /** Resolves when nothing is in flight. */
    released: () =>
      eventually(async () => {
        const { rowCount } = await pool.query(
          `select from tidegate.webhook_leases where state = 'sending'`,
        )
        if (rowCount !== 0) throw new Error(`${rowCount} are in flight`)
      }, patience),
    /** Resolves when the read model has applied the whole webhooks topic. */
    async readable(): Promise<void> {
      await applied.waitFor('webhooks', lastPositions(await log.endPositions(topic)), patience)
    },
    /** Returns all records of the webhooks topic. */
    history: async (): Promise<RecordedEvent[]> =>
      (await allRecords(log, topic)).map((record) => codec.fromRecord(record)),
    async close(): Promise<void> {
      await Promise.all([...running].map((one) => one.stop()))
      await world.close()
      await testLog.cleanup()
    },
  }
}

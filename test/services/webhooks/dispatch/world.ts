import { randomBytes } from 'node:crypto'
import { type Config, readConfig } from '../../../../infra/config.ts'
import { createKeyring } from '../../../../infra/crypto/keyring.ts'
import type { Applied } from '../../../../infra/event-store/applied.ts'
import { lastBefore } from '../../../../infra/event-store/catch-up.ts'
import type { DomainEvent } from '../../../../infra/event-store/event.ts'
import { type Clock, derivedHexId } from '../../../../infra/ids.ts'
import type { EventLog } from '../../../../infra/log/port.ts'
import {
  generateSigningSecret,
  sealSigningSecret,
} from '../../../../infra/wire/webhooks/signature.ts'
import { gateProjection } from '../../../../projections/gate/projection.ts'
import { organizationsProjection } from '../../../../projections/organizations/projection.ts'
import { webhooksProjection } from '../../../../projections/webhooks/projection.ts'
import { findDelivery } from '../../../../projections/webhooks/queries.ts'
import type { DeliveryRow } from '../../../../projections/webhooks/tables.ts'
import type {
  WebhookDeliveryAttempted,
  WebhookEndpointCreated,
  WebhookEventRaised,
} from '../../../../schemas/events.ts'
import {
  type RunningDispatcher,
  runDispatcher,
} from '../../../../services/webhooks/dispatch/dispatcher.ts'
import { eventually } from '../../../support/eventually.ts'
import type { TestLog } from '../../../support/logs.ts'
import { ensureTopics, openProjectionWorld, silent } from '../../../support/projections.ts'

const hex = (bytes: number) => randomBytes(bytes).toString('hex')
const newKeyring = () => createKeyring(randomBytes(32).toString('base64'))
const patience = { timeoutMs: 60_000 }

export interface Endpoint {
  id: string
  organizationId: string
  secret: string
}

export interface DispatcherStart {
  clock?: Clock
  env?: Record<string, string | undefined>
  log?: EventLog
  logger?: typeof silent
}

function projectionOf({ type }: DomainEvent): string {
  if (type.startsWith('Organization')) return 'organizations'
  return type.startsWith('Gate') ? 'gate' : 'webhooks'
}

export type DispatchWorld = Awaited<ReturnType<typeof openDispatchWorld>>

/** A real log and database with the read models, and dispatchers that come and go; receivers are on loopback. */
export async function openDispatchWorld(testLog: TestLog, keyring = newKeyring()) {
  const world = await openProjectionWorld()
  const { pool, url } = world.database
  const log = await testLog.open()
  await ensureTopics(log, 3)
  const applied: Applied = await world.openApplied()
  const dispatchers = new Set<RunningDispatcher>()
  const openedAt = Date.now()

  const decideAs = await world.openDecide(log)

  async function project(from: EventLog = log): Promise<void> {
    await world.run(log, organizationsProjection, { applied })
    await world.run(log, gateProjection, { applied })
    await world.run(from, webhooksProjection, { applied })
  }

  async function happen(event: DomainEvent, organizationId: string): Promise<void> {
    const meta = {
      eventId: `evt_${hex(13)}`,
      time: Date.now(),
      organizationId,
      environment: 'live' as const,
    }
    const positions = await world.append(log, [{ event, meta }])
    await applied.waitFor(projectionOf(event), positions, patience)
  }

  async function organization(): Promise<string> {
    const organization_id = `org_${hex(13)}`
    const data = { organization_id, name: 'Acme', slug: hex(6), created_at: Date.now() }
    await happen({ type: 'OrganizationCreated', data }, organization_id)
    return organization_id
  }

  async function endpoint(
    url: string,
    some: Partial<WebhookEndpointCreated> = {},
  ): Promise<Endpoint> {
    const organization_id = await organization()
    const endpoint_id = `we_${hex(16)}`
    const secret = generateSigningSecret(randomBytes)
    const data = {
      organization_id,
      endpoint_id,
      environment: 'live' as const,
      name: 'Hooks',
      url,
      event_types: ['session.result.persisted'],
      signing_secret_sealed: seal(endpoint_id, secret),
      created_at: Date.now(),
      ...some,
    }
    await happen({ type: 'WebhookEndpointCreated', data }, organization_id)
    return { id: data.endpoint_id, organizationId: organization_id, secret }
  }

  const seal = (endpointId: string, secret: string) =>
    sealSigningSecret({ keyring, random: randomBytes, secret, endpointId })

  function raisedEvent(
    { id, organizationId }: Endpoint,
    some: Partial<WebhookEventRaised>,
  ): WebhookEventRaised {
    return {
      event_id: `evt_${hex(13)}`,
      organization_id: organizationId,
      environment: 'live',
      type: 'session.result.persisted',
      subject_type: 'session',
      subject_id: 'sid_1',
      data: JSON.stringify({ object: 'session', note: 'ünïcode' }),
      created_at: openedAt,
      endpoint_ids: [id],
      route: 'queued',
      ...some,
    }
  }

  async function raise(
    endpoint: Endpoint,
    count = 1,
    some: Partial<WebhookEventRaised> = {},
  ): Promise<string[]> {
    const all = Array.from({ length: count }, () => raisedEvent(endpoint, some))
    const positions = await world.append(
      log,
      all.map((data) => ({
        event: { type: 'WebhookEventRaised' as const, data },
        meta: {
          eventId: data.event_id,
          time: data.created_at,
          organizationId: data.organization_id,
          environment: 'live' as const,
        },
      })),
    )
    await applied.waitFor('webhooks', positions, patience)
    return all.map(({ event_id }) => event_id)
  }

  async function start({
    clock = Date.now,
    env = {},
    ...some
  }: DispatcherStart = {}): Promise<RunningDispatcher> {
    const config: Config = readConfig({ WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8', ...env })
    const own = await world.openApplied()
    const meter = { onAttempt: () => {}, onDelivered: () => {}, onSending: () => {} }
    const shared = {
      config,
      databaseUrl: url,
      codec: world.codec,
      applied: own,
      decideAs,
      keyring,
      meter,
    }
    const random = randomBytes
    const running = await runDispatcher({ ...shared, log, clock, random, logger: silent, ...some })
    const stoppable = {
      ...running,
      stop() {
        dispatchers.delete(stoppable)
        return running.stop()
      },
    }
    dispatchers.add(stoppable)
    return stoppable
  }

  async function delivery(eventId: string, { id }: Endpoint): Promise<DeliveryRow> {
    const row = await findDelivery(pool, derivedHexId('wdlv', eventId, id))
    if (!row) throw new Error(`no delivery of ${eventId}`)
    return row
  }

  /** What a dispatcher records; nobody waits until it is applied. */
  async function recordAttempt(
    eventId: string,
    endpoint: Endpoint,
    some: Partial<WebhookDeliveryAttempted> = {},
  ): Promise<void> {
    const data: WebhookDeliveryAttempted = {
      event_id: eventId,
      delivery_id: derivedHexId('wdlv', eventId, endpoint.id),
      organization_id: endpoint.organizationId,
      environment: 'live',
      endpoint_id: endpoint.id,
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
    const meta = {
      eventId: `evt_${hex(13)}`,
      time: data.attempted_at,
      organizationId: endpoint.organizationId,
      environment: 'live' as const,
    }
    await world.append(log, [{ event: { type: 'WebhookDeliveryAttempted', data }, meta }])
  }

  /** A delivery in flight at a dispatcher that died; its lease expires after `leaseMs`, or before if negative. */
  async function inFlightOfDead(
    eventId: string,
    endpoint: Endpoint,
    leaseMs: number,
  ): Promise<void> {
    await pool.query(
      `insert into tidegate.webhook_leases (delivery_id, attempt, due_at, event_id, endpoint_id, state, owner, expires_at)
       values ($1, 1, $2, $3, $4, 'sending', 'dead', extract(epoch from clock_timestamp()) * 1000 + $5)
       on conflict (delivery_id, attempt, due_at) do update set expires_at = excluded.expires_at`,
      [derivedHexId('wdlv', eventId, endpoint.id), openedAt, eventId, endpoint.id, leaseMs],
    )
  }

  return {
    recordAttempt,
    inFlightOfDead,
    newEventId: () => `evt_${hex(13)}`,
    openLog: testLog.open,
    pool,
    url,
    log,
    codec: world.codec,
    applied,
    decideAs,
    keyring,
    project,
    stopProjection: world.stopRunners,
    happen,
    organization,
    endpoint,
    seal,
    raise,
    start,
    delivery,
    async ended({ id }: Endpoint): Promise<Record<string, number>> {
      return eventually(async () => {
        const { rows } = await pool.query<{ status: string; n: number }>(
          `select status, count(*)::int as n from read.webhook_deliveries where endpoint_id = $1 group by 1`,
          [id],
        )
        if (rows.some(({ status }) => status === 'pending')) throw new Error(JSON.stringify(rows))
        return Object.fromEntries(rows.map(({ status, n }) => [status, n]))
      }, patience)
    },
    async released(): Promise<void> {
      await eventually(async () => {
        const { rowCount } = await pool.query(
          `select from tidegate.webhook_leases where state = 'sending'`,
        )
        if (rowCount !== 0) throw new Error(`${rowCount} are in flight`)
      }, patience)
    },
    async readable(): Promise<void> {
      const records = lastBefore(await log.endPositions('tidegate.webhooks.v1'))
      await applied.waitFor('webhooks', records, patience)
    },
    async close(): Promise<void> {
      await Promise.all([...dispatchers].map((running) => running.stop()))
      await world.close()
      await testLog.cleanup()
    },
  }
}

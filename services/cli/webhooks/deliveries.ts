import type { Command } from 'commander'
import type { Db } from '../../../infra/postgres/pool.ts'
import { findSessionEventIds } from '../../../projections/sessions/session-events.ts'
import {
  type DeliveryQuery,
  listAttempts,
  listDeliveries,
} from '../../../projections/webhooks/list-deliveries.ts'
import {
  findDeliveriesByEvent,
  findDelivery,
  findEndpoints,
} from '../../../projections/webhooks/queries.ts'
import {
  type DeliveryRow,
  deliveryStatuses,
  type EndpointRow,
  webhookRetentionMs,
} from '../../../projections/webhooks/tables.ts'
import {
  resendDeliveries,
  retryDeliveries,
  selectForRedelivery,
} from '../../webhooks/deliveries/resend.ts'
import { attemptJson } from '../../webhooks/deliveries/schemas.ts'
import { deliveryJson } from '../../webhooks/events/schemas.ts'
import { choice, commaList, idArgument, jsonFlag, listLimit, since } from '../arguments.ts'
import {
  asOperator,
  type CommandOutcome,
  notFound,
  type OperatorOptions,
  requireOrganization,
  runAndPrint,
} from '../operator/run.ts'
import { tableOf, timeText } from '../tables.ts'

export function defineRedeliver(webhooks: Command): void {
  webhooks
    .command('redeliver')
    .description(
      'Redeliver an event to endpoints where it failed or was skipped, with the full retry schedule',
    )
    .argument('<event>', 'event id (evt_...)', idArgument('evt'))
    .option(
      '--endpoint <id>',
      'only to this endpoint (we_...), even if it already received the event',
      idArgument('we'),
    )
    .option(...jsonFlag)
    .action(
      (
        eventId: string,
        { endpoint: endpointId, ...options }: OperatorOptions & { endpoint?: string },
      ) =>
        runAndPrint(options, async (core) => {
          const found = await findDeliveriesByEvent(core.pool, [eventId])
          const [event] = found
          if (!event) throw notFound('event', 'no such event; events are kept for 30 days.')
          const endpointIds = selectForRedelivery(found, endpointId).map((row) => row.endpoint_id)
          await retryDeliveries(asOperator(core, 'webhooks redeliver'), event, endpointIds)
          const deliveries = await findDeliveriesByEvent(core.pool, [eventId])
          return outcomeOf(deliveries.filter((row) => endpointIds.includes(row.endpoint_id)))
        }),
    )
}

type ListFlags = OperatorOptions &
  Pick<DeliveryQuery, 'status' | 'limit'> & { endpoint?: string; session?: string }

export function defineDeliveries(webhooks: Command): void {
  webhooks
    .command('deliveries')
    .description('List the deliveries of the last 30 days, those of the newest events first')
    .argument('[organization]', 'organization id or slug (default: all)')
    .option('--endpoint <id>', 'only deliveries to this endpoint (we_...)', idArgument('we'))
    .option('--status <list>', `comma-separated: ${deliveryStatuses.join(', ')}`, (text) =>
      commaList(text).map(choice(...deliveryStatuses)),
    )
    .option('--session <id>', 'only about this session (sid_...) or signup (gate_...)', (text) =>
      idArgument(text.startsWith('gate_') ? 'gate' : 'sid')(text),
    )
    .option('--limit <n>', 'maximum number of deliveries', listLimit, 100)
    .option(...jsonFlag)
    .action((organization: string | undefined, flags: ListFlags) =>
      runAndPrint(flags, async ({ pool, clock }) => {
        const { endpoint: endpoint_id, session, status, limit } = flags
        const organizationId = organization && (await requireOrganization(pool, organization)).id
        if (endpoint_id) await requireEndpoint(pool, endpoint_id, organizationId)
        const eventIds = session ? await findSessionEventIds(pool, session) : undefined
        const filters = { organizationId, endpoint_id, eventIds, status, limit }
        const since = clock() - webhookRetentionMs
        return outcomeOf(await listDeliveries(pool, { ...filters, since }))
      }),
    )
}

export function defineAttempts(webhooks: Command): void {
  webhooks
    .command('attempts')
    .description('List the attempts of a delivery, oldest first')
    .argument('<delivery>', 'delivery id (wdlv_...)', idArgument('wdlv'))
    .option(...jsonFlag)
    .action((id: string, flags: OperatorOptions) =>
      runAndPrint(flags, async ({ pool }) => {
        const delivery = await findDelivery(pool, id)
        if (!delivery) throw notFound('delivery', 'no such id; deliveries are kept for 30 days.')
        const attempts = await listAttempts(pool, id)
        const text = tableOf(attempts, {
          attempt: ({ attempt }) => attempt,
          time: ({ attempted_at }) => timeText(attempted_at),
          ms: ({ duration_ms }) => duration_ms,
          response: ({ response_status }) => response_status,
          error: ({ error }) => error,
          body: ({ response_body }) => response_body,
        })
        return { data: attempts.map((attempt) => attemptJson(attempt, delivery)), text }
      }),
    )
}

interface ResendFlags extends OperatorOptions {
  since: number
  until?: number
  all: boolean
}

export function defineResend(webhooks: Command): void {
  webhooks
    .command('resend')
    .description(
      'Send the failed and skipped deliveries of an endpoint again, with the full retry schedule',
    )
    .argument('<endpoint>', 'endpoint id (we_...)', idArgument('we'))
    .requiredOption('--since <time>', 'only events since: 7d, 24h or 2026-11-23T12:00:00Z', since)
    .option('--until <time>', 'only events before: 24h or 2026-11-23T12:00:00Z', since)
    .option('--all', 'successful deliveries, too', false)
    .option(...jsonFlag)
    .action((id: string, { since, until, all, ...flags }: ResendFlags) =>
      runAndPrint(flags, async (core) => {
        const endpoint = await requireEndpoint(core.pool, id)
        const range = { until, status: all ? ('all' as const) : ('failed' as const) }
        let resent = 0
        for (let from: number | null = since; from !== null; ) {
          const deps = asOperator(core, 'webhooks resend')
          const page = await resendDeliveries(deps, endpoint, { ...range, since: from })
          resent += page.resent
          from = page.nextSince
        }
        return { data: { endpoint_id: id, resent }, text: `Deliveries queued: ${resent}` }
      }),
    )
}

// Without this check, an unknown endpoint would look like one without failures.
async function requireEndpoint(
  db: Db,
  endpointId: string,
  organizationId?: string,
): Promise<EndpointRow> {
  const endpoint = (await findEndpoints(db, [endpointId])).get(endpointId)
  if (endpoint && (organizationId ?? endpoint.organization_id) === endpoint.organization_id)
    return endpoint
  throw notFound('endpoint', `no such id${organizationId ? ' in this organization' : ''}.`)
}

function outcomeOf(deliveries: DeliveryRow[]): CommandOutcome {
  const data = deliveries.map((delivery) => {
    const { organization_id, environment } = delivery
    return { ...deliveryJson(delivery), organization_id, environment }
  })
  const text = tableOf(deliveries, {
    delivery: ({ id }) => id,
    event: ({ event_id }) => event_id,
    type: ({ event_type }) => event_type,
    organization: ({ organization_id }) => organization_id,
    endpoint: ({ endpoint_id }) => endpoint_id,
    status: ({ status }) => status,
    attempts: ({ attempts }) => attempts,
    'last response': ({ response_status }) => response_status,
    error: ({ error }) => error,
    'last change': ({ updated_at }) => timeText(updated_at),
  })
  return { data, text: data.length > 0 ? text : 'None.' }
}

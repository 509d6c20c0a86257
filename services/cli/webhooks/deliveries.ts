import type { Command } from 'commander'
import { ApiError } from '../../../infra/errors/errors.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import {
  findDeliveriesByEvent,
  findEndpoints,
  listUndelivered,
} from '../../../projections/webhooks/queries.ts'
import { type DeliveryRow, webhookRetentionMs } from '../../../projections/webhooks/tables.ts'
import type { Core } from '../../server/dependencies.ts'
import { redeliver } from '../../webhooks/deliveries/redeliver.ts'
import { deliveryJson } from '../../webhooks/events/schemas.ts'
import { idArgument, jsonFlag, listLimit } from '../arguments.ts'
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
          const ids = await redeliver(asOperator(core, 'webhooks redeliver'), {
            eventId,
            endpointId,
          })
          const deliveries = await findDeliveriesByEvent(core.pool, [eventId])
          return outcomeOf(deliveries.filter(({ id }) => ids.includes(id)))
        }),
    )
}

interface Flags extends OperatorOptions {
  endpoint?: string
  limit: number
  skipped: boolean
  redeliver: boolean
}

export function defineDeadLetters(webhooks: Command): void {
  webhooks
    .command('dead-letters')
    .description('List failed deliveries of the last 30 days, newest failure first')
    .argument('[organization]', 'organization id or slug (default: all)')
    .option('--endpoint <id>', 'only deliveries to this endpoint (we_...)', idArgument('we'))
    .option(
      '--skipped',
      'list skipped deliveries instead: their endpoint or organization was not active',
      false,
    )
    .option('--limit <n>', 'maximum number of deliveries', listLimit, 100)
    .option(
      '--redeliver',
      'redeliver the listed deliveries; the exit code is 1 if any is refused',
      false,
    )
    .option(...jsonFlag)
    .action((organization: string | undefined, flags: Flags) =>
      runAndPrint(flags, async (core) => {
        const deliveries = await listDeadLetters(core, organization, flags)
        if (flags.redeliver) return redeliverAll(core, deliveries)
        return deliveries.length > 0 ? outcomeOf(deliveries) : { data: [], text: 'None.' }
      }),
    )
}

async function listDeadLetters(
  { pool, clock }: Core,
  organization: string | undefined,
  { endpoint: endpointId, limit, skipped }: Flags,
): Promise<DeliveryRow[]> {
  const organizationId = organization && (await requireOrganization(pool, organization)).id
  if (endpointId) await requireEndpoint(pool, { endpointId, organizationId })
  return listUndelivered(pool, {
    status: skipped ? 'skipped' : 'failed',
    organizationId,
    endpointId,
    since: clock() - webhookRetentionMs,
    limit,
  })
}

/**
 * Redelivers one at a time. Continues after a refused delivery, such as to a disabled endpoint, but sets exit code 1.
 */
async function redeliverAll(core: Core, deliveries: DeliveryRow[]): Promise<CommandOutcome> {
  const data = []
  const deps = asOperator(core, 'webhooks dead-letters')
  for (const { id, event_id, endpoint_id } of deliveries) {
    const command = { eventId: event_id, endpointId: endpoint_id }
    const refused = await redeliver(deps, command).then(() => null, refusalMessage)
    data.push({ delivery_id: id, event_id, endpoint_id, redelivered: refused === null, refused })
  }
  if (data.some(({ redelivered }) => !redelivered)) process.exitCode = 1
  const lines = data.map(
    ({ event_id, endpoint_id, refused }) => `${event_id} to ${endpoint_id}: ${refused ?? 'queued'}`,
  )
  return { data, text: lines.join('\n') || 'None.' }
}

// Returns the message of a client error. Rethrows all other errors.
function refusalMessage(error: unknown): string {
  if (error instanceof ApiError && error.status < 500) return error.message
  throw error
}

// Without this check, an unknown endpoint would look like one without failures.
async function requireEndpoint(
  db: Db,
  { endpointId, organizationId }: { endpointId: string; organizationId: string | undefined },
): Promise<void> {
  const endpoint = (await findEndpoints(db, [endpointId])).get(endpointId)
  if (endpoint && (organizationId ?? endpoint.organization_id) === endpoint.organization_id) return
  throw notFound('endpoint', `no such id${organizationId ? ' in this organization' : ''}.`)
}

function outcomeOf(deliveries: DeliveryRow[]): CommandOutcome {
  const data = deliveries.map((delivery) => {
    const { organization_id, environment } = delivery
    return { ...deliveryJson(delivery), organization_id, environment }
  })
  const text = tableOf(deliveries, {
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
  return { data, text }
}

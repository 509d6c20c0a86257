import type { Command } from 'commander'
import { ApiError } from '../../../infra/errors/errors.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import {
  deliveriesOf,
  findEndpoints,
  listUndelivered,
} from '../../../projections/webhooks/queries.ts'
import { type DeliveryRow, webhookRetentionMs } from '../../../projections/webhooks/tables.ts'
import type { Core } from '../../server/dependencies.ts'
import { redeliver } from '../../webhooks/deliveries/redeliver.ts'
import { deliveryJson } from '../../webhooks/events/schemas.ts'
import { atMost, idOf, jsonFlag } from '../arguments.ts'
import {
  asOperator,
  type CommandOutcome,
  notFound,
  type OperatorOptions,
  operate,
  requireOrganization,
} from '../operator/operate.ts'
import { tableOf, timeText } from '../tables.ts'

export function registerRedeliver(webhooks: Command): void {
  webhooks
    .command('redeliver')
    .description(
      'Deliver an event again where it failed or was skipped, with the whole retry schedule',
    )
    .argument('<event>', 'its id (evt_...)', idOf('evt'))
    .option('--endpoint <id>', 'only to this one (we_...), even if it has the event', idOf('we'))
    .option(...jsonFlag)
    .action(
      (
        eventId: string,
        { endpoint: endpointId, ...options }: OperatorOptions & { endpoint?: string },
      ) =>
        operate(options, async (core) => {
          const ids = await redeliver(asOperator(core, 'webhooks redeliver'), {
            eventId,
            endpointId,
          })
          const deliveries = await deliveriesOf(core.pool, [eventId])
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

export function registerDeadLetters(webhooks: Command): void {
  webhooks
    .command('dead-letters')
    .description('List failed deliveries of the last 30 days, the newest failure first')
    .argument('[organization]', 'its id or slug (default: all)')
    .option('--endpoint <id>', 'only of this one (we_...)', idOf('we'))
    .option('--skipped', 'instead those not sent as endpoint or organization was not active', false)
    .option('--limit <n>', 'how many at most', atMost, 100)
    .option(
      '--redeliver',
      'deliver those listed again; the exit code is 1 when one is refused',
      false,
    )
    .option(...jsonFlag)
    .action((organization: string | undefined, flags: Flags) =>
      operate(flags, async (core) => {
        const found = await deadLetters(core, organization, flags)
        if (flags.redeliver) return redeliverAll(core, found)
        return found.length > 0 ? outcomeOf(found) : { data: [], text: 'None.' }
      }),
    )
}

async function deadLetters(
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
 * One after the other. What cannot be delivered, as to a disabled endpoint, is left as it is. That is no failure of the
 * command, whose outcome is printed all the same, but the exit code is 1, because a script must not miss it.
 */
async function redeliverAll(core: Core, deliveries: DeliveryRow[]): Promise<CommandOutcome> {
  const data = []
  const deps = asOperator(core, 'webhooks dead-letters')
  for (const { id, event_id, endpoint_id } of deliveries) {
    const command = { eventId: event_id, endpointId: endpoint_id }
    const refused = await redeliver(deps, command).then(() => null, refusalOf)
    data.push({ delivery_id: id, event_id, endpoint_id, redelivered: refused === null, refused })
  }
  if (data.some(({ redelivered }) => !redelivered)) process.exitCode = 1
  const lines = data.map(
    ({ event_id, endpoint_id, refused }) =>
      `${event_id} to ${endpoint_id}: ${refused ?? 'due again'}`,
  )
  return { data, text: lines.join('\n') || 'None.' }
}

function refusalOf(error: unknown): string {
  if (error instanceof ApiError && error.status < 500) return error.message
  throw error
}

// An empty list of an endpoint that does not exist would be taken for good news.
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
    'last answer': ({ response_status }) => response_status,
    error: ({ error }) => error,
    'last change': ({ updated_at }) => timeText(updated_at),
  })
  return { data, text }
}

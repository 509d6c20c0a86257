import type { Command } from 'commander'
import { ApiError } from '../../../infra/errors/errors.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import { deliveriesOf, findEndpoints, listUndelivered } from '../../../projections/webhooks/queries.ts'
import { type DeliveryRow, webhookRetentionMs } from '../../../projections/webhooks/tables.ts'
import type { Core } from '../../server/dependencies.ts'
import { redeliver } from '../../webhooks/deliveries/redeliver.ts'
import { deliveryJson as shownByTheApi } from '../../webhooks/events/schemas.ts'
import { atMost, idOf, jsonFlag } from '../arguments.ts'
import {
  asOperator,
  type CommandOutcome,
  type OperatorOptions,
  operate,
  requireOrganization,
} from '../operator/operate.ts'
import { shownTime, textTable } from '../tables.ts'

export function registerRedeliver(webhooks: Command): void {
  webhooks
    .command('redeliver')
    .description('Deliver an event again where it failed or was skipped, with the whole retry schedule')
    .argument('<event>', 'its id (evt_...)', idOf('evt'))
    .option('--endpoint <id>', 'only to this one (we_...), even if it has the event', idOf('we'))
    .option(...jsonFlag)
    .action((eventId: string, options: OperatorOptions & { endpoint?: string }) =>
      operate(options, (core) => redeliverEvent(core, { eventId, endpointId: options.endpoint })),
    )
}

async function redeliverEvent(
  core: Core,
  { eventId, endpointId }: { eventId: string; endpointId: string | undefined },
): Promise<CommandOutcome> {
  const ids = await redeliver(asOperator(core, 'webhooks redeliver'), { eventId, endpointId })
  const deliveries = await deliveriesOf(core.pool, [eventId])
  const again = deliveries.filter(({ id }) => ids.includes(id))
  return { data: again.map(deadLetterJson), text: deliveryTable(again) }
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
    .option('--redeliver', 'deliver those listed again; the exit code is 1 when one is refused', false)
    .option(...jsonFlag)
    .action((organization: string | undefined, flags: Flags) =>
      operate(flags, async (core) => {
        const found = await deadLetters(core, organization, flags)
        return flags.redeliver ? again(core, found) : shown(found)
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

function shown(found: DeliveryRow[]): CommandOutcome {
  return { data: found.map(deadLetterJson), text: found.length > 0 ? deliveryTable(found) : 'None.' }
}

// A refusal is no failure of the command, whose outcome is printed all the same, but a script must not miss it.
async function again(core: Core, found: DeliveryRow[]): Promise<CommandOutcome> {
  const results = await redeliverAll(core, found)
  if (results.some(({ redelivered }) => !redelivered)) process.exitCode = 1
  return resultsOutcome(results)
}

export interface Redelivered {
  delivery_id: string
  event_id: string
  endpoint_id: string
  redelivered: boolean
  refused: string | null
}

/** One after the other; what cannot be delivered, as to a disabled endpoint, is told and left as it is. */
export async function redeliverAll(core: Core, deliveries: DeliveryRow[]): Promise<Redelivered[]> {
  const results = []
  const deps = asOperator(core, 'webhooks dead-letters')
  for (const { id, event_id, endpoint_id } of deliveries) {
    const refused = await redeliver(deps, { eventId: event_id, endpointId: endpoint_id }).then(
      () => null,
      reasonOf,
    )
    results.push({ delivery_id: id, event_id, endpoint_id, redelivered: refused === null, refused })
  }
  return results
}

export function resultsOutcome(results: Redelivered[]): CommandOutcome {
  const lines = results.map(
    ({ event_id, endpoint_id, refused }) => `${event_id} to ${endpoint_id}: ${refused ?? 'due again'}`,
  )
  return { data: results, text: lines.join('\n') || 'None.' }
}

function reasonOf(error: unknown): string {
  if (error instanceof ApiError && error.status < 500) return error.message
  throw error
}

/** That there is the endpoint, so that nobody takes an empty list for good news. ApiError: 404. */
export async function requireEndpoint(
  db: Db,
  { endpointId, organizationId }: { endpointId: string; organizationId: string | undefined },
): Promise<void> {
  const endpoint = (await findEndpoints(db, [endpointId])).get(endpointId)
  if (endpoint && (organizationId ?? endpoint.organization_id) === endpoint.organization_id) return
  const where = organizationId ? ' in this organization' : ''
  const details = { fields: [{ name: 'endpoint', issue: 'not_found' }] }
  throw new ApiError('request.not_found', { message: `endpoint: no such id${where}.`, details })
}

export function deadLetterJson(delivery: DeliveryRow) {
  const { organization_id, environment } = delivery
  return { ...shownByTheApi(delivery), organization_id, environment }
}

export function deliveryTable(deliveries: DeliveryRow[]): string {
  const head = [
    'event',
    'type',
    'organization',
    'endpoint',
    'status',
    'attempts',
    'last answer',
    'error',
    'last change',
  ]
  return textTable(
    head,
    deliveries.map((delivery) => [
      ...[delivery.event_id, delivery.event_type, delivery.organization_id, delivery.endpoint_id],
      ...[delivery.status, delivery.attempts, delivery.response_status, delivery.error],
      shownTime(delivery.updated_at),
    ]),
  )
}

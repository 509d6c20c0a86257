import { type Command, InvalidArgumentError } from 'commander'
import { ApiError } from '../../../infra/http/errors.ts'
import { keptMs, listUndelivered } from '../../../projections/webhooks/queries.ts'
import type { DeliveryRow } from '../../../projections/webhooks/rows.ts'
import type { Core } from '../../core.ts'
import { redeliver } from '../../webhooks/redeliver/command.ts'
import { jsonFlag } from '../operator/arguments.ts'
import { organizationOf } from '../operator/lookup.ts'
import { type OperatorOptions, type Outcome, operate } from '../operator/operate.ts'
import { deliveryJson, deliveryTable } from './deliveries.ts'

interface Flags extends OperatorOptions {
  endpoint?: string
  limit: number
  redeliver: boolean
}

/** `tidegate webhooks dead-letters`: deliveries whose last attempt failed. */
export function registerDeadLetters(webhooks: Command): void {
  webhooks
    .command('dead-letters')
    .description('List failed deliveries of the last 30 days, the newest failure first')
    .argument('[organization]', 'its id or slug (default: all)')
    .option('--endpoint <id>', 'only of this one (we_...)')
    .option('--limit <n>', 'how many at most', limit, 100)
    .option('--redeliver', 'deliver those listed again', false)
    .option(...jsonFlag)
    .action((organization: string | undefined, flags: Flags) =>
      operate(flags, async (core) => {
        const failed = await deadLetters(core, organization, flags)
        return flags.redeliver ? redeliverAll(core, failed) : shown(failed)
      }),
    )
}

async function deadLetters(
  { pool, clock }: Core,
  organization: string | undefined,
  { endpoint: endpointId, limit }: Flags,
): Promise<DeliveryRow[]> {
  const organizationId = organization && (await organizationOf(pool, organization)).id
  const since = clock() - keptMs
  return listUndelivered(pool, {
    status: 'failed',
    ...(organizationId && { organizationId }),
    ...(endpointId && { endpointId }),
    since,
    limit,
  })
}

function shown(failed: DeliveryRow[]): Outcome {
  return { data: failed.map(deliveryJson), text: failed.length > 0 ? deliveryTable(failed) : 'None.' }
}

/** One after the other; what cannot be delivered, as to a disabled endpoint, is told and left as it is. */
async function redeliverAll(core: Core, failed: DeliveryRow[]): Promise<Outcome> {
  const results = []
  for (const { id, event_id, endpoint_id } of failed) {
    const refused = await redeliver(core, { eventId: event_id, endpointId: endpoint_id }).then(
      () => null,
      reasonOf,
    )
    results.push({ delivery_id: id, event_id, endpoint_id, redelivered: refused === null, refused })
  }
  const lines = results.map(
    ({ event_id, endpoint_id, refused }) => `${event_id} to ${endpoint_id}: ${refused ?? 'due again'}`,
  )
  return { data: results, text: lines.join('\n') || 'None.' }
}

/** Of a refusal; anything else ends the command. */
function reasonOf(error: unknown): string {
  if (error instanceof ApiError && error.status < 500) return error.message
  throw error
}

function limit(text: string): number {
  if (/^[1-9]\d{0,4}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It must be a whole number from 1 to 99999.')
}

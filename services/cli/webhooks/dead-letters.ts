import { type Command, InvalidArgumentError } from 'commander'
import { keptMs, listUndelivered } from '../../../projections/webhooks/queries.ts'
import type { DeliveryRow } from '../../../projections/webhooks/rows.ts'
import type { Core } from '../../server/dependencies.ts'
import { jsonFlag } from '../operator/arguments.ts'
import { organizationOf } from '../operator/lookup.ts'
import { type OperatorOptions, type Outcome, operate } from '../operator/operate.ts'
import { idOf } from './arguments.ts'
import { deliveryJson, deliveryTable } from './deliveries.ts'
import { requireEndpoint } from './lookup.ts'
import { redeliverAll, resultsOutcome } from './redeliver-all.ts'

interface Flags extends OperatorOptions {
  endpoint?: string
  limit: number
  skipped: boolean
  redeliver: boolean
}

/** `tidegate webhooks dead-letters`: deliveries whose last attempt failed, or that were skipped. */
export function registerDeadLetters(webhooks: Command): void {
  webhooks
    .command('dead-letters')
    .description('List failed deliveries of the last 30 days, the newest failure first')
    .argument('[organization]', 'its id or slug (default: all)')
    .option('--endpoint <id>', 'only of this one (we_...)', idOf('we'))
    .option('--skipped', 'instead those not sent as endpoint or organization was not active', false)
    .option('--limit <n>', 'how many at most', limit, 100)
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
  const organizationId = organization && (await organizationOf(pool, organization)).id
  if (endpointId) await requireEndpoint(pool, { endpointId, organizationId })
  return listUndelivered(pool, {
    status: skipped ? 'skipped' : 'failed',
    organizationId,
    endpointId,
    since: clock() - keptMs,
    limit,
  })
}

function shown(found: DeliveryRow[]): Outcome {
  return { data: found.map(deliveryJson), text: found.length > 0 ? deliveryTable(found) : 'None.' }
}

/** A refusal is no failure of the command, whose outcome is printed all the same, but a script must not miss it. */
async function again(core: Core, found: DeliveryRow[]): Promise<Outcome> {
  const results = await redeliverAll(core, found)
  if (results.some(({ redelivered }) => !redelivered)) process.exitCode = 1
  return resultsOutcome(results)
}

function limit(text: string): number {
  if (/^[1-9]\d{0,4}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It must be a whole number from 1 to 99999.')
}

import type { Command } from 'commander'
import { deliveriesOf } from '../../../projections/webhooks/queries.ts'
import type { Core } from '../../server/dependencies.ts'
import { redeliver } from '../../webhooks/redeliver/command.ts'
import { jsonFlag } from '../operator/arguments.ts'
import { type OperatorOptions, type Outcome, operate } from '../operator/operate.ts'
import { idOf } from './arguments.ts'
import { deliveryJson, deliveryTable } from './deliveries.ts'

/** `tidegate webhooks redeliver`: for an operator, against the database and the log of the settings. */
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
): Promise<Outcome> {
  const ids = await redeliver(core, { eventId, endpointId })
  const deliveries = await deliveriesOf(core.pool, [eventId])
  const again = deliveries.filter(({ id }) => ids.includes(id))
  return { data: again.map(deliveryJson), text: deliveryTable(again) }
}

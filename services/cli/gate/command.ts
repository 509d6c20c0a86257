import type { Command } from 'commander'
import { systemServiceId } from '../../../infra/wire/gate.ts'
import { findService } from '../../../projections/gate/queries.ts'
import { verifyService } from '../../gate/registry/commands.ts'
import { managedServiceJson } from '../../gate/registry/registered.ts'
import type { Core } from '../../server/dependencies.ts'
import { jsonFlag } from '../arguments.ts'
import { asOperator, type CommandOutcome, type OperatorOptions, operate } from '../operator/operate.ts'
import { serviceTable } from '../tables.ts'
import { registerDevIntegrator } from './dev-integrator.ts'

export function defineGate(gate: Command): void {
  registerVerification(gate)
  registerDevIntegrator(gate)
}

export function registerVerification(gate: Command): void {
  gate
    .command('verify')
    .description('Vouch for the name, website and logo of a service; a change of one of them ends that')
    .argument('<service>', 'its id')
    .option('--withdraw', 'vouch for it no more', false)
    .option(...jsonFlag)
    .action((serviceId: string, options: OperatorOptions & { withdraw: boolean }) =>
      operate(options, async (core) => {
        if (serviceId === systemServiceId) throw new Error(`${serviceId} is built in, and always verified.`)
        await verifyService(asOperator(core, 'gate verify'), { serviceId, verified: !options.withdraw })
        return outcome(core, serviceId)
      }),
    )
}

async function outcome({ pool }: Core, serviceId: string): Promise<CommandOutcome> {
  const service = await findService(pool, serviceId)
  if (!service) throw new Error(`${serviceId} is not in the read model`)
  return { data: managedServiceJson(service), text: serviceTable([service]) }
}

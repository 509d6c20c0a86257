import type { Command } from 'commander'
import { ApiError } from '../../../infra/errors/errors.ts'
import { isId } from '../../../infra/ids.ts'
import { systemServiceId } from '../../../infra/wire/gate.ts'
import { erasableSessions, findService } from '../../../projections/gate/queries.ts'
import { eraseGateSession } from '../../erasure/gate.ts'
import { verifyService } from '../../gate/registry/commands.ts'
import { managedServiceJson } from '../../gate/registry/registered.ts'
import { ownOrganizationId } from '../../organizations/consent-keys.ts'
import { jsonFlag } from '../arguments.ts'
import { asOperator, type OperatorOptions, operate } from '../operator/operate.ts'
import { serviceTable } from '../tables.ts'
import { registerDevIntegrator } from './dev-integrator.ts'

export function defineGate(gate: Command): void {
  registerVerification(gate)
  registerErasure(gate)
  registerDevIntegrator(gate)
}

function registerVerification(gate: Command): void {
  gate
    .command('verify')
    .description(
      'Verify the name, website, domain and logo of a service; changing one of them revokes the verification',
    )
    .argument('<service>', 'service id')
    .option('--withdraw', 'revoke the verification of the service and of its domain', false)
    .option(...jsonFlag)
    .action((serviceId: string, options: OperatorOptions & { withdraw: boolean }) =>
      operate(options, async (core) => {
        if (serviceId === systemServiceId)
          throw new Error(`${serviceId} is built in and always verified.`)
        await verifyService(asOperator(core, 'gate verify'), {
          serviceId,
          verified: !options.withdraw,
        })
        const service = await findService(core.pool, serviceId)
        if (!service) throw new Error(`${serviceId} is not in the read model`)
        return { data: managedServiceJson(service), text: serviceTable([service]) }
      }),
    )
}

function registerErasure(gate: Command): void {
  gate
    .command('erase')
    .description('Erase who requested and who approved a signup or login; the account is kept')
    .argument('<id>', 'id of an account (gacct_...), or of a signup or login (gate_...)')
    .option(...jsonFlag)
    .action((id: string, options: OperatorOptions) =>
      operate(options, async (core) => {
        const about = isId('gacct', id) ? { gateAccountId: id } : { gateSessionId: id }
        const sessions = await erasableSessions(core.pool, about)
        const [first] = sessions
        if (!first)
          throw new ApiError('request.not_found', {
            message: 'No Gate account, signup or login has this id.',
          })
        await eraseGateSession({ ...asOperator(core, 'gate erase'), ownOrganizationId }, first.id)
        const ids = sessions.map((session) => session.id)
        return { data: { id, gate_session_ids: ids }, text: `Erased: ${ids.join(', ')}.` }
      }),
    )
}

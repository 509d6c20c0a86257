import type { Command } from 'commander'
import { ApiError } from '../../../infra/errors/errors.ts'
import { isId } from '../../../infra/ids.ts'
import { systemServiceId } from '../../../infra/wire/gate.ts'
import { findErasableSessions, findService } from '../../../projections/gate/queries.ts'
import { eraseGateSession } from '../../erasure/gate.ts'
import { verifyService } from '../../gate/registry/commands.ts'
import { managedServiceJson } from '../../gate/registry/registered-services.ts'
import { serverOrganizationId } from '../../organizations/consent-keys.ts'
import { jsonFlag } from '../arguments.ts'
import { asOperator, type OperatorOptions, runAndPrint } from '../operator/run.ts'
import { serviceTable } from '../tables.ts'
import { defineDevIntegrator } from './dev-integrator.ts'

export function defineGate(gate: Command): void {
  defineVerify(gate)
  defineErase(gate)
  defineDevIntegrator(gate)
}

function defineVerify(gate: Command): void {
  gate
    .command('verify')
    .description(
      'Verify the name, website, domain and logo of a service; changing one of them revokes the verification',
    )
    .argument('<service>', 'service id')
    .option('--withdraw', 'revoke the verification of the service and of its domain', false)
    .option(...jsonFlag)
    .action((serviceId: string, options: OperatorOptions & { withdraw: boolean }) =>
      runAndPrint(options, async (core) => {
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

function defineErase(gate: Command): void {
  gate
    .command('erase')
    .description('Erase the requester and the approver of a signup or login; keep the account')
    .argument('<id>', 'id of an account (gacct_...), or of a signup or login (gate_...)')
    .option(...jsonFlag)
    .action((id: string, options: OperatorOptions) =>
      runAndPrint(options, async (core) => {
        const selector = isId('gacct', id) ? { gateAccountId: id } : { gateSessionId: id }
        const sessions = await findErasableSessions(core.pool, selector)
        const [first] = sessions
        if (!first)
          throw new ApiError('request.not_found', {
            message: 'No Gate account, signup or login has this id.',
          })
        const deps = asOperator(core, 'gate erase')
        await eraseGateSession({ ...deps, serverOrganizationId }, first.id)
        const ids = sessions.map((session) => session.id)
        return { data: { id, gate_session_ids: ids }, text: `Erased: ${ids.join(', ')}.` }
      }),
    )
}

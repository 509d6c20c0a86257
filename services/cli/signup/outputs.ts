import type { DeliveryPayload } from '../../../infra/wire/delivery-envelope.ts'
import {
  agentTokenEnvName,
  isCriticalEnvName,
  isEnvName,
  isGateManagedEnvName,
} from '../../../infra/wire/gate/env-names.ts'
import type { Values } from './env-file.ts'

export interface Skipped {
  /** A variable's name as it was delivered. */
  name: string
  reason: string
}

export interface Outputs {
  values: Values
  /** What was delivered and is not written anywhere. */
  skipped: Skipped[]
}

export interface Delivered {
  serviceId: string
  /** What the service sealed. */
  integrator: DeliveryPayload
  /** What Gate sealed. */
  gate: DeliveryPayload
}

/**
 * The variable that this command writes the agent token to: the name that it is delivered under, after an underscore
 * where that begins with a digit, since no shell takes such a name, and would print the line with the token instead.
 */
export const agentTokenVariable = (serviceId: string): string =>
  agentTokenEnvName(serviceId).replace(/^(?=\d)/, '_')

/** What of a delivery may become environment variables: nothing that could hand the machine or Gate's token over. */
export function acceptedOutputs({ serviceId, integrator, gate }: Delivered): Outputs {
  const delivered = agentTokenEnvName(serviceId)
  const written = agentTokenVariable(serviceId)
  const judged = [
    ...judge(integrator, integratorProblem),
    ...judge(gate, (name) => (name === delivered ? undefined : 'not_of_gate')),
  ]
  const accepted = judged.flatMap(({ name, value, reason }): [string, string][] =>
    reason ? [] : [[name === delivered ? written : name, value]],
  )
  return {
    values: new Map(accepted),
    skipped: judged.flatMap(({ name, reason }) => (reason ? [{ name, reason }] : [])),
  }
}

function judge({ outputs }: DeliveryPayload, problem: (name: string) => string | undefined) {
  return Object.entries(outputs).map(([name, value]) => ({ name, value, reason: problem(name) }))
}

function integratorProblem(name: string): string | undefined {
  if (!isEnvName(name) || name === '__proto__') return 'not_a_variable_name'
  if (isCriticalEnvName(name)) return 'process_critical'
  return isGateManagedEnvName(name) ? 'gate_managed' : undefined
}

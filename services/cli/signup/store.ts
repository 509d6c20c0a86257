import type { DeliveryPayload } from '../../../infra/wire/delivery-envelope.ts'
import {
  agentTokenEnvName,
  isCriticalEnvName,
  isEnvName,
  isGateManagedEnvName,
  isOperatorEnvName,
  isOwnEnvName,
  systemServiceId,
} from '../../../infra/wire/gate.ts'
import {
  additionTo,
  append,
  readText,
  requireWritable,
  type Values,
  valuesIn,
  writeBeside,
} from './env-file.ts'

export interface EnvFile {
  file: string
  /** Whether the service's own variables replace what the file has; those of others never do. */
  overwrite: boolean
}

export interface Stored {
  file: string
  names: string[]
  reason?: 'conflict' | 'unannounced' | 'unquotable'
}

export interface Storing extends EnvFile {
  serviceId: string
  gateSessionId: string
  values: Values
  announced: ReadonlySet<string>
}

interface Announced {
  serviceId: string
  names: ReadonlySet<string>
}

/** Before anything is created: rejects when the file cannot be written, or has a value for one of the names. */
export async function requireRoom(
  { serviceId, names }: Announced,
  { file, overwrite }: EnvFile,
): Promise<void> {
  await requireWritable(file).catch((cause: unknown) => {
    throw new Error(`${file} cannot be written: ${messageOf(cause)}`, { cause })
  })
  const existing = valuesIn(await readText(file))
  // A variable without a value is a place that waits for it.
  const taken = [...names].filter((name) => existing.get(name))
  const foreign = taken.filter((name) => !isOwnEnvName(name, serviceId))
  const inTheWay = overwrite ? foreign : taken
  if (inTheWay.length === 0) return
  const replaced = foreign.length > 0 ? '.' : ', or replace what is there with --overwrite.'
  throw new Error(
    `${file} has a value for ${inTheWay.join(', ')} already. Nothing was created. ` +
      `Name another file with --env-file${replaced}`,
  )
}

/**
 * Writes the values to the file, and each that must not or cannot be there to one of its own beside it. On disk when
 * it resolves; rejects when a file cannot be written, and may then be repeated.
 */
export async function storeValues(storing: Storing): Promise<Stored[]> {
  const { file, serviceId, gateSessionId, values, announced, overwrite } = storing
  const expected = new Map([...values].filter(([name]) => announced.has(name)))
  const { lines, kept, conflicts, unquotable } = additionTo(await readText(file), expected, {
    comment: `Signed up for ${serviceId} (${gateSessionId})`,
    overwrites: (name) => overwrite && isOwnEnvName(name, serviceId),
  })
  if (kept.length > 0) await append(file, lines)
  const stored: Stored[] = kept.length > 0 ? [{ file, names: kept }] : []
  for (const [name, value] of values) {
    if (kept.includes(name)) continue
    const reason = reasonOf(name, { conflicts, unquotable })
    stored.push({ file: await writeBeside(`${file}.${serviceId}.${name}`, value), names: [name], reason })
  }
  return stored
}

function reasonOf(name: string, { conflicts, unquotable }: { conflicts: string[]; unquotable: string[] }) {
  if (conflicts.includes(name)) return 'conflict'
  return unquotable.includes(name) ? 'unquotable' : 'unannounced'
}

const messageOf = (cause: unknown) => (cause instanceof Error ? cause.message : String(cause))

export interface Skipped {
  name: string
  reason: string
}

export interface Outputs {
  values: Values
  skipped: Skipped[]
}

export interface Delivered {
  serviceId: string
  integrator: DeliveryPayload
  gate: DeliveryPayload
}

/**
 * The variable that this command writes the agent token to: the name that it is delivered under, after an underscore
 * where that begins with a digit. No shell takes such a name, and it would print the line with the token.
 */
export const agentTokenVariable = (serviceId: string): string =>
  agentTokenEnvName(serviceId).replace(/^(?=\d)/, '_')

/** What of a delivery may become environment variables: nothing that could hand the machine or Gate's token over. */
export function acceptedOutputs({ serviceId, integrator, gate }: Delivered): Outputs {
  const delivered = agentTokenEnvName(serviceId)
  const written = agentTokenVariable(serviceId)
  const judged = [
    ...judge(integrator, (name) => integratorProblem(name, serviceId)),
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

function integratorProblem(name: string, serviceId: string): string | undefined {
  if (!isEnvName(name) || name === '__proto__') return 'not_a_variable_name'
  if (isCriticalEnvName(name)) return 'process_critical'
  if (isOperatorEnvName(name) && serviceId !== systemServiceId) return 'of_the_operator'
  return isGateManagedEnvName(name) ? 'gate_managed' : undefined
}

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
  type Merge,
  mergeEnv,
  readText,
  replaceFile,
  requireWritable,
  takenNames,
  targetOf,
  type Values,
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
  names: Iterable<string>
}

/** Before anything is created: rejects when the file cannot be written, or has a value for one of the names. */
export async function requireRoom(
  { serviceId, names }: Announced,
  { file, overwrite }: EnvFile,
): Promise<void> {
  const target = await targetOf(file)
  await requireWritable(target).catch((cause: unknown) => {
    throw new Error(`${file} cannot be written: ${messageOf(cause)}`, { cause })
  })
  const taken = takenNames(await readText(target), names)
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
 * Writes the values to the file, and beside it what must not or cannot be there. On disk when it resolves; rejects when
 * a file cannot be written, and may then be repeated.
 */
export async function storeValues(storing: Storing): Promise<Stored[]> {
  const { file, values, announced } = storing
  const [expected, unannounced] = partition(values, (name) => announced.has(name))
  const main = await mergeInto(storing, expected)
  const [conflicts] = partition(expected, (name) => main.conflicts.includes(name))
  const besideIt = [
    await storeBeside(storing, { reason: 'conflict', values: conflicts }),
    await storeBeside(storing, { reason: 'unannounced', values: unannounced }),
  ].flat()
  const [unquotable] = partition(expected, (name) => main.unquotable.includes(name))
  const all = [{ file, names: main.kept }, ...besideIt, ...(await storeRaw(storing, unquotable))]
  return all.filter(({ names }) => names.length > 0)
}

async function mergeInto({ file, ...storing }: Storing, values: Values): Promise<Merge> {
  const target = await targetOf(file)
  for (;;) {
    const before = await readText(target)
    const overwrites = (name: string) => storing.overwrite && isOwnEnvName(name, storing.serviceId)
    const merge = mergeEnv(before, values, { comment: commentOf(storing), overwrites })
    // Somebody else may write it, too, as another signup does.
    if ((await readText(target)) !== before) continue
    // Its owner only, also where nothing is new.
    if (before !== '' || merge.text !== '') await replaceFile(target, merge.text)
    return merge
  }
}

interface Beside {
  reason: 'conflict' | 'unannounced'
  values: Values
}

async function storeBeside(storing: Storing, { reason, values }: Beside): Promise<Stored[]> {
  if (values.size === 0) return []
  const { text, kept, unquotable } = mergeEnv('', values, {
    comment: commentOf(storing),
    overwrites: () => false,
  })
  const [raw] = partition(values, (name) => unquotable.includes(name))
  const rest = await storeRaw(storing, raw)
  if (kept.length === 0) return rest
  const file = await writeBeside(`${storing.file}.${storing.serviceId}`, text)
  return [{ file, names: kept, reason }, ...rest]
}

async function storeRaw({ file, serviceId }: Storing, values: Values): Promise<Stored[]> {
  const stored: Stored[] = []
  for (const [name, value] of values) {
    const written = await writeBeside(`${file}.${serviceId}.${name}`, value)
    stored.push({ file: written, names: [name], reason: 'unquotable' })
  }
  return stored
}

const commentOf = ({ serviceId, gateSessionId }: Pick<Storing, 'serviceId' | 'gateSessionId'>) =>
  `Signed up for ${serviceId} (${gateSessionId})`

function partition(values: Values, matches: (name: string) => boolean): [Values, Values] {
  const [yes, no] = [new Map<string, string>(), new Map<string, string>()]
  for (const [name, value] of values) (matches(name) ? yes : no).set(name, value)
  return [yes, no]
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

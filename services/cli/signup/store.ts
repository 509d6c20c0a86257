import path from 'node:path'
import type { DeliveryPayload } from '../../../infra/wire/delivery-envelope.ts'
import {
  agentTokenEnvName,
  envNameProblem,
  envPrefixOf,
  isEnvName,
  isUnderPrefix,
} from '../../../infra/wire/gate.ts'
import {
  type Addition,
  additionTo,
  changeText,
  type EnvPlace,
  readText,
  type Values,
  valuesIn,
  writablePlace,
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
  reason?: 'conflict' | 'not_accepted' | 'unannounced' | 'unquotable'
}

/** Whose variables they are, by their names. */
export interface Owner {
  serviceId: string
  /** What they begin with, where that is verified. */
  prefix: string | undefined
}

export interface Storing extends Owner, Pick<EnvFile, 'overwrite'> {
  place: EnvPlace
  gateSessionId: string
  values: Values
  announced: ReadonlySet<string>
  /** What the person who approved lets into the env file. */
  accepted: ReadonlySet<string>
}

interface Announced extends Owner {
  names: ReadonlySet<string>
}

function isOwn(name: string, { serviceId, prefix }: Owner): boolean {
  return isUnderPrefix(name, prefix) || isUnderPrefix(name, envPrefixOf(serviceId))
}

/** Before anything is created: rejects when the file cannot be written, or has a value for one of the names. */
export async function requireRoom(
  { names, ...owner }: Announced,
  { file, overwrite }: EnvFile,
): Promise<EnvPlace> {
  const place = await writablePlace(file).catch((cause: unknown) => {
    throw new Error(`${file} cannot be written: ${messageOf(cause)}`, { cause })
  })
  const existing = valuesIn(await readText(place.target))
  // A variable without a value is a place that waits for it.
  const isWritten = (name: string) =>
    name === agentTokenVariable(owner.serviceId) || !envNameProblem(name, owner)
  const taken = [...names].filter((name) => existing.get(name) && isWritten(name))
  const foreign = taken.filter((name) => !isOwn(name, owner))
  const inTheWay = overwrite ? foreign : taken
  if (inTheWay.length === 0) return place
  const replaced = foreign.length > 0 ? '.' : ', or replace what is there with --overwrite.'
  throw new Error(
    `${file} has a value for ${inTheWay.join(', ')} already. Nothing was created. ` +
      `Name another file with --env-file${replaced}`,
  )
}

/**
 * Writes to the env file what was announced and accepted, or is under the verified name. What was not goes to an env file
 * of its own beside it. What no such file can hold, or has another value, goes to a file for each. On disk when it
 * resolves; rejects when a file cannot be written, and may then be repeated.
 */
export async function storeValues(storing: Storing): Promise<Stored[]> {
  const { place, announced, accepted, prefix, values } = storing
  const fateOf = (name: string) => {
    if (!announced.has(name)) return 'unannounced'
    const isLet =
      accepted.has(name) || isUnderPrefix(name, prefix) || name === agentTokenVariable(storing.serviceId)
    return isLet ? 'accepted' : 'not_accepted'
  }
  const fates = Map.groupBy(values, ([name]) => fateOf(name))
  const beside: Stored[] = []
  const { kept } = await changeText(place, (text) =>
    additionWith(text, { storing, values: new Map(fates.get('accepted')), beside }),
  )
  const apart = new Map([...(fates.get('not_accepted') ?? []), ...(fates.get('unannounced') ?? [])])
  const stored = [...(kept.length > 0 ? [{ file: place.file, names: kept }] : []), ...beside]
  return [...stored, ...(await storeApart(apart, { storing, fateOf }))]
}

const endingOf = ({ serviceId }: Owner) => `.from-${serviceId}`

interface Adding {
  storing: Storing
  values: Values
  /** Gets the files that were written for values that do not go into this one. */
  beside: Stored[]
}

// Writes what the file cannot have to files of their own, which the lines name.
async function additionWith(text: string, { storing, values, beside }: Adding): Promise<Addition> {
  const { gateSessionId, overwrite, ...owner } = storing
  const options = {
    comment: `Signed up for ${owner.serviceId} (${gateSessionId})`,
    overwrites: (name: string) => overwrite && isOwn(name, owner),
  }
  const first = additionTo(text, values, options)
  beside.push(...(await writeEach(first.conflicts, { storing, values, reason: 'conflict' })))
  const unquotable = await writeEach(first.unquotable, { storing, values, reason: 'unquotable' })
  beside.push(...unquotable)
  const notes = unquotable.map(({ file, names }) => `${names.join()} is in ${path.basename(file)}`)
  return additionTo(text, values, { ...options, notes })
}

interface Writing {
  storing: Storing
  values: Values
  reason: NonNullable<Stored['reason']>
}

async function writeEach(names: readonly string[], { storing, values, reason }: Writing): Promise<Stored[]> {
  const stored: Stored[] = []
  for (const name of names) {
    const ending = `${endingOf(storing)}.${name}`
    const file = await writeBeside(storing.place, { ending, text: values.get(name) ?? '' })
    stored.push({ file, names: [name], reason })
  }
  return stored
}

interface Apart {
  storing: Storing
  fateOf: (name: string) => 'accepted' | 'not_accepted' | 'unannounced'
}

// No program reads a file of this name by itself, as some do with .env.local.
async function storeApart(values: Values, { storing, fateOf }: Apart): Promise<Stored[]> {
  if (values.size === 0) return []
  const beside: Stored[] = []
  const { lines, kept } = await additionWith('', { storing, values, beside })
  if (kept.length === 0) return beside
  const file = await writeBeside(storing.place, { ending: endingOf(storing), text: lines })
  const groups = Map.groupBy(kept, (name) => fateOf(name))
  const stored = (['not_accepted', 'unannounced'] as const).flatMap((reason) => {
    const names = groups.get(reason)
    return names ? [{ file, names, reason }] : []
  })
  return [...stored, ...beside]
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

export interface Delivered extends Owner {
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
export function acceptedOutputs({ integrator, gate, ...owner }: Delivered): Outputs {
  const { serviceId } = owner
  const delivered = agentTokenEnvName(serviceId)
  const written = agentTokenVariable(serviceId)
  const judged = [
    ...judge(integrator, (name) => integratorProblem(name, owner)),
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

function integratorProblem(name: string, owner: Owner): string | undefined {
  if (!isEnvName(name) || name === '__proto__') return 'not_a_variable_name'
  return envNameProblem(name, owner)
}

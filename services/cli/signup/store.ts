import path from 'node:path'
import type { DeliveryPayload } from '../../../infra/wire/delivery-envelope.ts'
import {
  agentTokenEnvName,
  envNameProblem,
  envPrefixOf,
  isEnvName,
  isUnderPrefix,
} from '../../../infra/wire/gate.ts'
import { errorMessage } from '../thrown.ts'
import {
  additionTo,
  changeText,
  type EnvPlace,
  quoted,
  readText,
  takesMore,
  type Values,
  valuesIn,
  writablePlace,
  writeExtraFile,
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

/** The service whose variables are stored, and how their names begin. */
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

function isOwn(name: string, { serviceId, prefix }: Owner): boolean {
  return isUnderPrefix(name, prefix) || isUnderPrefix(name, envPrefixOf(serviceId))
}

/** Before anything is created: rejects when the file cannot be written, or has a value for one of the names. */
export async function requireRoom(
  { names, ...owner }: Owner & { names: ReadonlySet<string> },
  { file, overwrite }: EnvFile,
): Promise<EnvPlace> {
  const place = await writablePlace(file).catch((cause: unknown) => {
    throw new Error(`${file} cannot be written: ${errorMessage(cause)}`, { cause })
  })
  const text = await readText(place.target)
  const existing = valuesIn(text)
  if (!takesMore(text))
    throw new Error(
      `${file} has a quote that is not closed, so that nothing can be added to it. Nothing was created. ` +
        'Close it, or name another file with --env-file.',
    )
  // A variable without a value may be filled.
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
 * Writes to the env file what was announced and accepted, or is under the verified name. The rest, and what has another
 * value there, goes to an env file of its own. What no env file can hold goes to a file for each. On disk when it
 * resolves; rejects when a file cannot be written, and may then be repeated.
 */
export async function storeValues(storing: Storing): Promise<Stored[]> {
  const { place, serviceId, gateSessionId, overwrite } = storing
  const comment = `Signed up for ${serviceId} (${gateSessionId})`
  const { unquotable = [], plain = [] } = Object.groupBy(storing.values, ([, value]) =>
    quoted(value) === undefined ? 'unquotable' : 'plain',
  )
  const ownFiles: Stored[] = []
  for (const [name, text] of unquotable) {
    const file = await writeExtraFile(place, { ending: `${endingOf(storing)}.${name}`, text })
    ownFiles.push({ file, names: [name], reason: 'unquotable' })
  }
  const notes = ownFiles.flatMap(({ file, names: [name = ''] }) =>
    reasonOf(name, storing) ? [] : [`${name} is in ${path.basename(file)}`],
  )
  const { present, others } = await changeText(place, async (text) => {
    const accepted = new Map(plain.filter(([name]) => !reasonOf(name, storing)))
    const overwrites = (name: string) => overwrite && isOwn(name, storing)
    const addition = additionTo(text, accepted, { comments: [comment, ...notes], overwrites })
    const left = new Map(plain.filter(([name]) => !addition.present.includes(name)))
    return { ...addition, others: await storeOthers(left, storing, comment) }
  })
  return [...(present.length > 0 ? [{ file: place.file, names: present }] : []), ...others, ...ownFiles]
}

/** Why a variable does not go into the env file; undefined where it does. */
function reasonOf(name: string, { announced, accepted, prefix, serviceId }: Storing): Stored['reason'] {
  if (!announced.has(name)) return 'unannounced'
  const isLet = accepted.has(name) || isUnderPrefix(name, prefix) || name === agentTokenVariable(serviceId)
  return isLet ? undefined : 'not_accepted'
}

// No program reads files of such names by itself, as some do with .env.local.
const endingOf = ({ serviceId }: Owner) => `.from-${serviceId}`

async function storeOthers(values: Values, storing: Storing, comment: string): Promise<Stored[]> {
  if (values.size === 0) return []
  const { lines: text } = additionTo('', values, { comments: [comment], overwrites: () => true })
  const file = await writeExtraFile(storing.place, { ending: endingOf(storing), text })
  const groups = Map.groupBy(values.keys(), (name) => reasonOf(name, storing) ?? 'conflict')
  return Array.from(groups, ([reason, names]) => ({ file, names, reason }))
}

export interface Outputs {
  values: Values
  skipped: { name: string; reason: string }[]
}

/**
 * The variable that this command writes the agent token to: the name that it is delivered under, after an underscore
 * where that begins with a digit. No shell takes such a name, and it would print the line with the token.
 */
export const agentTokenVariable = (serviceId: string): string =>
  agentTokenEnvName(serviceId).replace(/^(?=\d)/, '_')

/** The part of a delivery that may become environment variables: nothing that could hand the machine or Gate's token over. */
export function acceptedOutputs({
  integrator,
  gate,
  ...owner
}: Owner & Record<'integrator' | 'gate', DeliveryPayload>): Outputs {
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

import path from 'node:path'
import type { DeliveryPayload } from '../../../infra/wire/delivery-envelope.ts'
import {
  agentTokenEnvName,
  envNameProblem,
  isEnvName,
  isUnderPrefix,
} from '../../../infra/wire/gate.ts'
import { envText, quoted, type Values, writeNewFile } from './env-file.ts'

type Reason = 'not_accepted' | 'unannounced' | 'unquotable'

export interface Stored {
  file: string
  names: string[]
  /** Why they are not in the env file. */
  reason?: Reason
}

/** The service whose variables are stored, and how their names begin. */
export interface Owner {
  serviceId: string
  /** What they begin with, where that is verified. */
  prefix: string | undefined
}

/** Variables and keys that a service returned. */
export interface Delivery extends Owner {
  gateSessionId: string
  values: Values
  announced: ReadonlySet<string>
  /** What the person who approved lets into the env file. */
  accepted: ReadonlySet<string>
}

/**
 * Writes a new env file with what was announced and accepted, or is under the verified name. The rest goes to an env file
 * next to it, and what no env file can hold to a file for each. On disk when it resolves; rejects when a file cannot be
 * written.
 */
export async function storeValues(envFile: string, delivery: Delivery): Promise<Stored[]> {
  const { letIn, others, raw } = sorted(delivery)
  const comments = [commentOf(delivery)]
  const ownFiles: Stored[] = []
  for (const [name, text] of raw) {
    const file = await writeNewFile(`${envFile}.others.${name}`, text)
    ownFiles.push({ file, names: [name], reason: 'unquotable' })
  }
  const notes = ownFiles.flatMap(({ file, names: [name = ''] }) =>
    reasonOf(name, delivery) ? [] : [`${name} is in ${path.basename(file)}`],
  )
  const otherFiles: Stored[] = []
  if (others.size > 0) {
    const file = await writeNewFile(`${envFile}.others`, envText(others, comments))
    const groups = Map.groupBy(others.keys(), (name) => reasonOf(name, delivery))
    for (const [reason, names] of groups)
      otherFiles.push({ file, names, ...(reason && { reason }) })
  }
  const file = await writeNewFile(envFile, envText(letIn, [...comments, ...notes]))
  return [{ file, names: [...letIn.keys()] }, ...otherFiles, ...ownFiles]
}

/** Returns the text of an env file, in which what does not belong there is a comment, as JSON. */
export function printedText(delivery: Delivery): string {
  const { letIn, others, raw } = sorted(delivery)
  const notes = [...others, ...raw].map(
    ([name, value]) =>
      `${reasonOf(name, delivery) ?? 'unquotable'}: ${name}=${JSON.stringify(value)}`,
  )
  return envText(letIn, [commentOf(delivery), ...notes])
}

const commentOf = ({ serviceId, gateSessionId }: Delivery) =>
  `Signed up for ${serviceId} (${gateSessionId})`

function sorted(delivery: Delivery): Record<'letIn' | 'others' | 'raw', Values> {
  const all = [...delivery.values]
  const plain = all.filter(([, value]) => quoted(value) !== undefined)
  return {
    letIn: new Map(plain.filter(([name]) => !reasonOf(name, delivery))),
    others: new Map(plain.filter(([name]) => reasonOf(name, delivery))),
    raw: new Map(all.filter(([, value]) => quoted(value) === undefined)),
  }
}

/** Why a variable does not go into the env file; undefined where it does. */
function reasonOf(
  name: string,
  { announced, accepted, prefix, serviceId }: Delivery,
): Reason | undefined {
  if (!announced.has(name)) return 'unannounced'
  const isLet =
    accepted.has(name) || isUnderPrefix(name, prefix) || name === agentTokenVariable(serviceId)
  return isLet ? undefined : 'not_accepted'
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

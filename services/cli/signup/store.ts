import path from 'node:path'
import type { DeliveryPayload } from '../../../infra/wire/delivery-envelope.ts'
import {
  agentTokenEnvName,
  envNameProblem,
  isEnvName,
  isUnderPrefix,
} from '../../../infra/wire/gate.ts'
import { type EnvValues, envText, quoteEnvValue, writeNewFile } from './env-file.ts'

type SeparateFileReason = 'not_accepted' | 'unannounced' | 'unquotable'

export interface StoredFile {
  file: string
  names: string[]
  /** Set if the variables could not go into the env file. */
  reason?: SeparateFileReason
}

/** Service whose variables are stored. */
export interface DeliveringService {
  serviceId: string
  /** Prefix of variable names that the service is verified to own. */
  prefix: string | undefined
}

/** Variables that a service delivered, and which of them may go into the env file. */
export interface Delivery extends DeliveringService {
  gateSessionId: string
  values: EnvValues
  announced: ReadonlySet<string>
  /** Names that the approving person accepts in the env file. */
  accepted: ReadonlySet<string>
}

/**
 * Writes a new env file with the announced variables that were accepted or have the verified prefix. Other variables go
 * to a second env file next to it, and each value that cannot be quoted gets its own file. The files are synced to disk.
 * Throws if one cannot be written.
 */
export async function storeValues(envFile: string, delivery: Delivery): Promise<StoredFile[]> {
  const { accepted, others, unquotable } = groupValues(delivery)
  const comments = [commentOf(delivery)]
  const valueFiles: StoredFile[] = []
  for (const [name, text] of unquotable) {
    const file = await writeNewFile(`${envFile}.others.${name}`, text)
    valueFiles.push({ file, names: [name], reason: 'unquotable' })
  }
  const notes = valueFiles.flatMap(({ file, names: [name = ''] }) =>
    reasonOf(name, delivery) ? [] : [`${name} is in ${path.basename(file)}`],
  )
  const otherFiles: StoredFile[] = []
  if (others.size > 0) {
    const file = await writeNewFile(`${envFile}.others`, envText(others, comments))
    const groups = Map.groupBy(others.keys(), (name) => reasonOf(name, delivery))
    for (const [reason, names] of groups)
      otherFiles.push({ file, names, ...(reason && { reason }) })
  }
  const file = await writeNewFile(envFile, envText(accepted, [...comments, ...notes]))
  return [{ file, names: [...accepted.keys()] }, ...otherFiles, ...valueFiles]
}

/** Returns the text of the env file, with all other variables as comments in JSON. */
export function stdoutText(delivery: Delivery): string {
  const { accepted, others, unquotable } = groupValues(delivery)
  const notes = [...others, ...unquotable].map(
    ([name, value]) =>
      `${reasonOf(name, delivery) ?? 'unquotable'}: ${name}=${JSON.stringify(value)}`,
  )
  return envText(accepted, [commentOf(delivery), ...notes])
}

const commentOf = ({ serviceId, gateSessionId }: Delivery) =>
  `Signed up for ${serviceId} (${gateSessionId})`

function groupValues(delivery: Delivery): Record<'accepted' | 'others' | 'unquotable', EnvValues> {
  const entries = [...delivery.values]
  const quotable = entries.filter(([, value]) => quoteEnvValue(value) !== undefined)
  return {
    accepted: new Map(quotable.filter(([name]) => !reasonOf(name, delivery))),
    others: new Map(quotable.filter(([name]) => reasonOf(name, delivery))),
    unquotable: new Map(entries.filter(([, value]) => quoteEnvValue(value) === undefined)),
  }
}

/** Returns the reason why a variable does not belong in the env file; undefined if it does. */
function reasonOf(
  name: string,
  { announced, accepted, prefix, serviceId }: Delivery,
): SeparateFileReason | undefined {
  if (!announced.has(name)) return 'unannounced'
  const isAccepted =
    accepted.has(name) || isUnderPrefix(name, prefix) || name === agentTokenVariable(serviceId)
  return isAccepted ? undefined : 'not_accepted'
}

export interface Outputs {
  values: EnvValues
  skipped: { name: string; reason: string }[]
}

/**
 * Returns the variable name for the agent token, with a leading underscore if it would start with a digit: a shell would
 * reject such a line and print it, with the token.
 */
export const agentTokenVariable = (serviceId: string): string =>
  agentTokenEnvName(serviceId).replace(/^(?=\d)/, '_')

/**
 * Returns the variables that are safe to store. Skips names that can change how programs run, and names that are reserved
 * for Gate.
 */
export function storableOutputs({
  integrator,
  gate,
  ...service
}: DeliveringService & Record<'integrator' | 'gate', DeliveryPayload>): Outputs {
  const { serviceId } = service
  const deliveredName = agentTokenEnvName(serviceId)
  const storedName = agentTokenVariable(serviceId)
  const variables = [
    ...checkOutputs(integrator, (name) => integratorProblem(name, service)),
    ...checkOutputs(gate, (name) => (name === deliveredName ? undefined : 'not_of_gate')),
  ]
  const accepted = variables.flatMap(({ name, value, reason }): [string, string][] =>
    reason ? [] : [[name === deliveredName ? storedName : name, value]],
  )
  return {
    values: new Map(accepted),
    skipped: variables.flatMap(({ name, reason }) => (reason ? [{ name, reason }] : [])),
  }
}

function checkOutputs({ outputs }: DeliveryPayload, check: (name: string) => string | undefined) {
  return Object.entries(outputs).map(([name, value]) => ({ name, value, reason: check(name) }))
}

function integratorProblem(name: string, service: DeliveringService): string | undefined {
  if (!isEnvName(name) || name === '__proto__') return 'not_a_variable_name'
  return envNameProblem(name, service)
}

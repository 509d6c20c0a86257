import { checkEach, checkGiven } from '../../../infra/errors/check-all.ts'
import { isCriticalEnvName, isGateManagedEnvName, isOperatorEnvName } from '../../../infra/wire/gate.ts'
import type { GateEnvVar, GateServiceDefinition } from '../../../schemas/events.ts'
import { type FieldRules, refusedMember } from './fields.ts'
import { imitatesMark, isOfOneWriting } from './names.ts'

interface Claims {
  name?: string | undefined
  env_vars?: readonly GateEnvVar[] | undefined
}

interface Known extends Pick<FieldRules, 'parameterSet'> {
  // What the service has already, which stays.
  registered?: GateServiceDefinition
}

/** ApiError 422 naming the members that are new to the service and that no service may have. */
export function refuseForbidden({ name, env_vars = [] }: Claims, known: Known): void {
  const keys = new Set(known.registered?.env_vars.map(({ key }) => key))
  checkGiven<Record<'name' | 'keys', unknown>>({
    name: name !== undefined && name !== known.registered?.name && (() => refuseMisleading(name, known)),
    keys: () => checkEach(env_vars, ({ key }, i) => !keys.has(key) && refuseForbiddenKey(key, i, known)),
  })
}

function refuseForbiddenKey(key: string, index: number, { parameterSet }: Known): void {
  const expected = allowedInstead(key)
  if (expected === undefined) return
  throw refusedMember({ field: `env_vars.${index}.key`, parameterSet }, { issue: 'not_allowed', expected })
}

function refuseMisleading(name: string, { parameterSet }: Known): void {
  const member = { field: 'name', parameterSet }
  if (!isOfOneWriting(name)) {
    const expected = 'letters of one script, or of scripts that are written together'
    throw refusedMember(member, { issue: 'invalid', expected })
  }
  if (!imitatesMark(name)) return
  throw refusedMember(member, { issue: 'not_allowed', expected: 'no check mark, and not Tidegate' })
}

function allowedInstead(key: string): string | undefined {
  if (isCriticalEnvName(key)) return 'a variable that changes nothing of what a process runs'
  if (isOperatorEnvName(key)) return 'a variable that does not begin with TIDEGATE_'
  return isGateManagedEnvName(key) ? 'a variable that Gate does not set itself' : undefined
}

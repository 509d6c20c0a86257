import { checkEach, checkPresent } from '../../../infra/errors/check-all.ts'
import { envNameProblem } from '../../../infra/wire/gate.ts'
import type { GateServiceDefinition } from '../../../schemas/events.ts'
import { type FieldRules, refusedMember } from './fields.ts'
import { looksLike, readsAnywhere } from './look-alikes.ts'
import { claimsVerification, hasMark, hasUnseen, isOfOneWriting, pilesMarks } from './names.ts'
import type { ServiceFields } from './schemas.ts'
import { wellKnownLike } from './well-known.ts'

interface Known extends Pick<FieldRules, 'parameterSet'> {
  /** What the service has already, which stays. */
  registered?: GateServiceDefinition
  /** What variables begin with that are the service's own, where that is verified. */
  prefix?: string | null
  verifiedDomain?: string | null
  /** Names of services of others that the operator has verified. */
  verifiedNames?: readonly string[]
}

/** ApiError 422 naming the members that are new to the service and that no service may have. */
export function refuseForbidden(
  { name, description, env_vars, branding }: ServiceFields | Partial<GateServiceDefinition>,
  known: Known,
): void {
  const before = known.registered
  const keys = new Set(before?.env_vars.map(({ key }) => key))
  const labels = new Set(before?.env_vars.map(({ name: label }) => label))
  const drawing = branding?.ascii_art ?? undefined
  checkPresent<Record<'name' | 'description' | 'keys' | 'labels' | 'drawing', unknown>>({
    name: name !== undefined && name !== before?.name && (() => refuseMisleading(name, known)),
    description:
      description !== undefined &&
      description !== before?.description &&
      (() => refuse(description, 'description', known, odd)),
    keys:
      env_vars &&
      (() => checkEach(env_vars, ({ key }, i) => !keys.has(key) && refuseKey(key, i, known))),
    labels:
      env_vars &&
      (() =>
        checkEach(
          env_vars,
          ({ name: label }, i) =>
            !labels.has(label) &&
            refuse(label, `env_vars.${i}.name`, known, [...odd, verification]),
        )),
    drawing:
      drawing !== undefined &&
      drawing !== before?.branding.ascii_art &&
      (() => refuse(drawing, 'branding.ascii_art', known, [marks])),
  })
}

function refuseKey(key: string, index: number, { parameterSet, prefix }: Known): void {
  const problem = envNameProblem(key, { prefix })
  if (problem === undefined) return
  const expected = allowedInstead[problem]
  throw refusedMember(
    { field: `env_vars.${index}.key`, parameterSet },
    { issue: 'not_allowed', expected },
  )
}

const allowedInstead = {
  process_critical: 'a variable that changes nothing of what a process runs',
  steers_programs:
    'a variable that does not steer programs or agents, or one under the name of a verified domain of the service',
  of_the_operator: 'a variable that does not begin with TIDEGATE_',
  gate_managed: 'a variable that Gate does not set itself',
} as const

/** What is wrong with a text where `isBroken`, and what is allowed instead. */
interface TextRule {
  isBroken: (text: string) => boolean
  issue: 'invalid' | 'not_allowed'
  expected: string
}

const marks: TextRule = {
  isBroken: hasMark,
  issue: 'not_allowed',
  expected: 'no check mark and no shield',
}
const odd: TextRule[] = [
  marks,
  { isBroken: hasUnseen, issue: 'invalid', expected: 'no invisible characters' },
  { isBroken: pilesMarks, issue: 'invalid', expected: 'at most two combining marks in a row' },
]
const scripts: TextRule = {
  isBroken: (text) => !isOfOneWriting(text),
  issue: 'invalid',
  expected: 'letters of one script, or of scripts that are written together',
}
const verification: TextRule = {
  isBroken: claimsVerification,
  issue: 'not_allowed',
  expected:
    'neither "verified" nor "official", in whatever letters: the page says what is verified',
}

/** Refuses the text by the first rule that it breaks. */
function refuse(text: string, field: string, { parameterSet }: Known, rules: TextRule[]): void {
  const broken = rules.find(({ isBroken }) => isBroken(text))
  if (!broken) return
  throw refusedMember({ field, parameterSet }, { issue: broken.issue, expected: broken.expected })
}

function refuseMisleading(name: string, known: Known): void {
  refuse(name, 'name', known, [...odd, scripts, verification])
  const expected = takenFor(name, known)
  if (expected === undefined) return
  throw refusedMember(
    { field: 'name', parameterSet: known.parameterSet },
    { issue: 'not_allowed', expected },
  )
}

function takenFor(
  name: string,
  { verifiedDomain = null, verifiedNames = [] }: Known,
): string | undefined {
  if (readsAnywhere(name, 'Tidegate')) return 'a name that is not Tidegate'
  if (verifiedNames.some((other) => looksLike(name, other)))
    return 'a name that does not look like that of a verified service'
  const known = wellKnownLike(name, verifiedDomain)
  return (
    known &&
    `a name that is not taken for ${known}, unless a domain of theirs is verified for this service`
  )
}

import { checkEach, checkPresent } from '../../../infra/errors/check-all.ts'
import { envNameProblem } from '../../../infra/wire/gate.ts'
import type { GateServiceDefinition } from '../../../schemas/events.ts'
import { type FieldRules, fieldError } from './fields.ts'
import { containsLookAlike, looksLike } from './look-alikes.ts'
import {
  claimsVerification,
  hasInvisibleCharacters,
  hasStackedMarks,
  hasVerificationMark,
  isSingleScript,
} from './names.ts'
import type { ServiceFields } from './schemas.ts'
import { findImpersonatedName } from './well-known.ts'

interface Context extends Pick<FieldRules, 'parameterSet'> {
  /** Current definition, whose values stay allowed. */
  registered?: GateServiceDefinition
  /** Verified prefix of the service's variables. */
  prefix?: string | null
  verifiedDomain?: string | null
  /** Names of other organizations' services that the operator verified. */
  verifiedNames?: readonly string[]
}

/** Throws 422 naming new values that no service may have: misleading names, critical variables, invisible characters. */
export function refuseForbiddenValues(
  { name, description, env_vars, branding }: ServiceFields | Partial<GateServiceDefinition>,
  context: Context,
): void {
  const { registered } = context
  const keys = new Set(registered?.env_vars.map(({ key }) => key))
  const labels = new Set(registered?.env_vars.map(({ name: label }) => label))
  const asciiArt = branding?.ascii_art ?? undefined
  checkPresent<Record<'name' | 'description' | 'keys' | 'labels' | 'asciiArt', unknown>>({
    name:
      name !== undefined && name !== registered?.name && (() => refuseMisleading(name, context)),
    description:
      description !== undefined &&
      description !== registered?.description &&
      (() => refuse(description, 'description', context, textRules)),
    keys:
      env_vars &&
      (() => checkEach(env_vars, ({ key }, i) => !keys.has(key) && refuseKey(key, i, context))),
    labels:
      env_vars &&
      (() =>
        checkEach(
          env_vars,
          ({ name: label }, i) =>
            !labels.has(label) &&
            refuse(label, `env_vars.${i}.name`, context, [...textRules, verificationWords]),
        )),
    asciiArt:
      asciiArt !== undefined &&
      asciiArt !== registered?.branding.ascii_art &&
      (() => refuse(asciiArt, 'branding.ascii_art', context, [verificationMarks])),
  })
}

function refuseKey(key: string, index: number, { parameterSet, prefix }: Context): void {
  const problem = envNameProblem(key, { prefix })
  if (problem === undefined) return
  const expected = allowedInstead[problem]
  throw fieldError(
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

interface TextRule {
  isBroken: (text: string) => boolean
  issue: 'invalid' | 'not_allowed'
  expected: string
}

const verificationMarks: TextRule = {
  isBroken: hasVerificationMark,
  issue: 'not_allowed',
  expected: 'no check mark and no shield',
}
const textRules: TextRule[] = [
  verificationMarks,
  { isBroken: hasInvisibleCharacters, issue: 'invalid', expected: 'no invisible characters' },
  { isBroken: hasStackedMarks, issue: 'invalid', expected: 'at most two combining marks in a row' },
]
const mixedScripts: TextRule = {
  isBroken: (text) => !isSingleScript(text),
  issue: 'invalid',
  expected: 'letters of one script, or of scripts that are written together',
}
const verificationWords: TextRule = {
  isBroken: claimsVerification,
  issue: 'not_allowed',
  expected:
    'neither "verified" nor "official", in whatever letters: the page says what is verified',
}

/** Throws 422 for the first rule that the text breaks. */
function refuse(text: string, field: string, { parameterSet }: Context, rules: TextRule[]): void {
  const broken = rules.find(({ isBroken }) => isBroken(text))
  if (!broken) return
  throw fieldError({ field, parameterSet }, { issue: broken.issue, expected: broken.expected })
}

function refuseMisleading(name: string, context: Context): void {
  refuse(name, 'name', context, [...textRules, mixedScripts, verificationWords])
  const expected = impersonationProblem(name, context)
  if (expected === undefined) return
  throw fieldError(
    { field: 'name', parameterSet: context.parameterSet },
    { issue: 'not_allowed', expected },
  )
}

function impersonationProblem(
  name: string,
  { verifiedDomain = null, verifiedNames = [] }: Context,
): string | undefined {
  if (containsLookAlike(name, 'Tidegate')) return 'a name that is not Tidegate'
  if (verifiedNames.some((verifiedName) => looksLike(name, verifiedName)))
    return 'a name that does not look like that of a verified service'
  const wellKnown = findImpersonatedName(name, verifiedDomain)
  return (
    wellKnown &&
    `a name that is not mistaken for ${wellKnown}, unless a domain of its owner is verified for this service`
  )
}

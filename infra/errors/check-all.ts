import {
  ApiError,
  type FieldIssue,
  invalidFields,
  isValidationCode,
  type ValidationCode,
} from './errors.ts'

/**
 * Runs every check, which gives a value or refuses members with 422, and gives all their values by name. What some
 * refuse is one refusal, so that a caller corrects everything at once.
 */
export function checkAll<Values extends object>(
  checks: {
    readonly [Name in keyof Values]: () => Values[Name]
  },
): Values
export function checkAll(checks: Readonly<Record<string, () => unknown>>): unknown {
  const names = Object.keys(checks)
  const values = runAll(Object.values(checks))
  return Object.fromEntries(names.map((name, i) => [name, values[i]]))
}

type Optional<Value> = (() => Value) | false | undefined

/** As `checkAll`, of members that may be left out. Those without a check are not in the result. */
export function checkPresent<Values extends object>(
  checks: {
    readonly [Name in keyof Values]: Optional<Values[Name]>
  },
): Partial<Values>
export function checkPresent(checks: Readonly<Record<string, Optional<unknown>>>): unknown {
  const present = Object.entries(checks).flatMap(([name, check]) =>
    check ? [[name, check] as const] : [],
  )
  return checkAll(Object.fromEntries(present))
}

/** As `checkAll`, of the members of a list. */
export function checkEach<Item, Value>(
  items: readonly Item[],
  check: (item: Item, index: number) => Value,
): Value[] {
  return runAll(items.map((item, i) => () => check(item, i)))
}

function runAll<Value>(checks: readonly (() => Value)[]): Value[] {
  const refusals: Refusal[] = []
  const values = checks.flatMap((check) => {
    try {
      return [check()]
    } catch (error) {
      const refusal = refusalOf(error)
      if (!refusal) throw error
      refusals.push(refusal)
      return []
    }
  })
  const [first] = refusals
  if (first) throw together(first, refusals)
  return values
}

interface Refusal {
  code: ValidationCode
  error: ApiError
  fields: FieldIssue[]
}

function refusalOf(error: unknown): Refusal | undefined {
  if (!(error instanceof ApiError)) return undefined
  const { code, details: { fields = [] } = {} } = error
  return isValidationCode(code) && fields.length > 0 ? { code, error, fields } : undefined
}

// A member is named once, by the first check that refuses it; so is the list of allowed values.
function together({ code, error }: Refusal, refusals: Refusal[]): ApiError {
  const fields = new Map<string, FieldIssue>()
  for (const one of refusals.flatMap((each) => each.fields))
    if (!fields.has(one.name)) fields.set(one.name, one)
  const allowed = refusals
    .map((each) => each.error.details?.allowed_values)
    .find((values) => values)
  const details = {
    ...error.details,
    fields: [...fields.values()],
    ...(allowed && { allowed_values: allowed }),
  }
  return invalidFields(details, code)
}

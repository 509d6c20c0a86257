import {
  ApiError,
  type FieldIssue,
  invalidFields,
  isValidationCode,
  type ValidationCode,
} from './errors.ts'

/**
 * Runs every check and returns their values by name. A check returns a value or throws a 422 with `fields`. Throws one
 * 422 with the fields of all checks, so that a caller can correct everything at once.
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

/** Like `checkAll`, for optional members. Members without a check are missing from the result. */
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

/** Like `checkAll`, for the items of a list. */
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
  if (first) throw mergeRefusals(first, refusals)
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

// Reports each member once, with the issue found first. The first list of allowed values wins.
function mergeRefusals({ code, error }: Refusal, refusals: Refusal[]): ApiError {
  const fields = new Map<string, FieldIssue>()
  for (const field of refusals.flatMap((refusal) => refusal.fields))
    if (!fields.has(field.name)) fields.set(field.name, field)
  const allowed = refusals
    .map((refusal) => refusal.error.details?.allowed_values)
    .find((values) => values)
  const details = {
    ...error.details,
    fields: [...fields.values()],
    ...(allowed && { allowed_values: allowed }),
  }
  return invalidFields(details, code)
}

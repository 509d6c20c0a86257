import { z } from 'zod'
import { invalidField } from '../../infra/errors/errors.ts'
import { queryTime, repeatable } from '../../infra/http/schemas.ts'
import { verdict } from '../../projections/sessions/decision-schemas.ts'
import {
  emptyFields,
  type FilterName,
  type FilterValues,
  filterFields,
  filterNames,
} from '../../projections/sessions/filter-fields.ts'
import type { SessionFilters } from '../../projections/sessions/filters.ts'

const score = z.preprocess(
  (value) => (typeof value === 'string' && /^\d{1,3}$/.test(value) ? Number(value) : value),
  z.int().min(0).max(100),
)

type FieldParameters<Suffix extends '' | '[not]'> = {
  [Name in FilterName as `${Name}${Suffix}`]: z.ZodType<FilterValues[Name]>
}

const values: FieldParameters<''> = Object.assign(
  {},
  ...filterNames.map((name) => {
    const { schema, description } = filterFields[name]
    return { [name]: description ? repeatable(schema).describe(description) : repeatable(schema) }
  }),
)

const negatedValues: FieldParameters<'[not]'> = Object.assign(
  {},
  ...filterNames.map((name) => ({
    [`${name}[not]`]: values[name].describe(
      'Values to exclude. Sessions without a value also match.',
    ),
  })),
)

/** Filter parameters of lists and counts, named as in `SessionFilters`; `x[not]` sets `not.x`. */
export const filterQuery = {
  since: repeatable(queryTime).describe('Earliest time of the newest decision, inclusive.'),
  until: repeatable(queryTime).describe('Latest time of the newest decision, exclusive.'),
  score_min: repeatable(score),
  score_max: repeatable(score),
  handed_off: repeatable(z.enum(['true', 'false']).transform((value) => value === 'true')),
  ...values,
  ...negatedValues,
  without: repeatable(z.enum(emptyFields)).describe(
    'Fields that must have no value. Combined with values of the same field, matches either one.',
  ),
  'without[not]': repeatable(z.enum(emptyFields)).describe('Fields that must have a value.'),
}

export type FilterQuery = {
  [Name in keyof typeof filterQuery]?: z.output<(typeof filterQuery)[Name]>
}

/**
 * Returns a check that throws 422 for an unknown `x[not]` and for disallowed parameters. Ignoring them would return
 * more sessions than requested. The map has the expected alternative for each disallowed parameter.
 */
export function createFilterCheck(disallowed: ReadonlyMap<string, string> = new Map()) {
  const negations = Object.keys(filterQuery).filter((name) => name.endsWith('[not]'))
  return ({ query }: { query: unknown }): void => {
    for (const name of Object.keys(Object(query))) {
      const isUnknown = name.endsWith('[not]') && !negations.includes(name)
      const expected = isUnknown ? `one of ${negations.join(', ')}` : disallowed.get(name)
      if (expected !== undefined) throw invalidField({ name, issue: 'not_allowed', expected })
    }
  }
}

/**
 * Returns the filters. Repeated times or scores give the widest range, since values are ORed. Throws 422 if `since` is
 * after `until`, or `score_min` above `score_max`.
 */
export function filtersOf(parameters: FilterQuery): SessionFilters {
  const { since, until, score_min, score_max, handed_off, without } = parameters
  const { verdict: verdicts, ...included } = valuesIn(parameters, '')
  const { verdict: excludedVerdicts, ...excluded } = valuesIn(parameters, '[not]')
  const ranges = {
    since: since && Math.min(...since),
    until: until && Math.max(...until),
    score_min: score_min && Math.min(...score_min),
    score_max: score_max && Math.max(...score_max),
  }
  requireOrder(ranges, 'since', 'until')
  requireOrder(ranges, 'score_min', 'score_max')
  return {
    ...included,
    ...ranges,
    handed_off,
    without,
    // Replaced by the remaining verdicts, which indexes and roll-ups can find.
    verdict: excludedVerdicts
      ? (verdicts ?? verdict.options).filter((value) => !excludedVerdicts.includes(value))
      : verdicts,
    not: { ...excluded, without: parameters['without[not]'] },
  }
}

function requireOrder<Name extends string>(
  limits: Record<Name, number | undefined>,
  first: NoInfer<Name>,
  last: NoInfer<Name>,
): void {
  if ((limits[first] ?? Number.NEGATIVE_INFINITY) <= (limits[last] ?? Number.POSITIVE_INFINITY))
    return
  throw invalidField({ name: first, issue: 'invalid', expected: `not beyond ${last}` })
}

const valuesIn = (parameters: FilterQuery, suffix: '' | '[not]'): FilterValues =>
  Object.fromEntries(filterNames.map((name) => [name, parameters[`${name}${suffix}`]]))

/** Response header that names the applied filters, so that callers notice misspelled parameters. */
export const filtersHeader = 'x-filters-applied'

export function appliedFilters(parameters: Record<string, unknown>): string {
  return Object.keys(parameters)
    .filter((name) => parameters[name] !== undefined && parameters[name] !== '')
    .sort()
    .join(', ')
}

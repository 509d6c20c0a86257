import { z } from 'zod'
import { invalidField } from '../../infra/errors/errors.ts'
import { verdict } from '../../projections/sessions/decision-schemas.ts'
import {
  emptyFields,
  type FilterName,
  type FilterValues,
  filterFields,
  filterNames,
} from '../../projections/sessions/filter-fields.ts'
import type { SessionFilters } from '../../projections/sessions/filters.ts'

const maxValues = 50

/** A parameter that may come several times, to mean either of its values. */
const either = <T extends z.ZodType>(one: T) =>
  z.preprocess(
    (sent) => (sent === undefined ? undefined : [sent].flat()),
    z.array(one).min(1).max(maxValues).optional(),
  )

const time = z.iso
  .datetime({ offset: true, error: 'ISO 8601 with a zone, as 2026-11-26T08:00:00Z' })
  .transform((value) => Date.parse(value))

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
    return { [name]: description ? either(schema).describe(description) : either(schema) }
  }),
)

const negatedValues: FieldParameters<'[not]'> = Object.assign(
  {},
  ...filterNames.map((name) => ({
    [`${name}[not]`]: values[name].describe(
      'None of these values. Sessions without a value are among those that meet it.',
    ),
  })),
)

/** Parameters of lists and counts. Names and forms are those of `SessionFilters`, and `x[not]` is its `not.x`. */
export const filterQuery = {
  since: either(time).describe('Sessions whose newest decision was then or later.'),
  until: either(time).describe('Sessions whose newest decision was earlier.'),
  score_min: either(score),
  score_max: either(score),
  handed_off: either(z.enum(['true', 'false']).transform((value) => value === 'true')),
  ...values,
  ...negatedValues,
  without: either(z.enum(emptyFields)).describe(
    'Fields of which sessions have no value. With values of the same field, either of these or none.',
  ),
  'without[not]': either(z.enum(emptyFields)).describe('Fields of which sessions have a value.'),
}

export type FilterQuery = {
  [Name in keyof typeof filterQuery]?: z.output<(typeof filterQuery)[Name]>
}

/**
 * Makes a check that refuses each `x[not]` that is no filter, and the `others`: ignoring them would answer more sessions
 * than were asked for.
 */
export function refusingFilters(others: ReadonlyMap<string, string> = new Map()) {
  const negations = Object.keys(filterQuery).filter((name) => name.endsWith('[not]'))
  return ({ query }: { query: unknown }): void => {
    for (const name of Object.keys(Object(query))) {
      const isUnknown = name.endsWith('[not]') && !negations.includes(name)
      const expected = isUnknown ? `one of ${negations.join(', ')}` : others.get(name)
      if (expected !== undefined) throw invalidField({ name, issue: 'not_allowed', expected })
    }
  }
}

/**
 * Reads the filters. Several times or scores mean the widest range, since either of them is enough. 422 where `since` is
 * beyond `until`, or `score_min` beyond `score_max`.
 */
export function filtersOf(sent: FilterQuery): SessionFilters {
  const { since, until, score_min, score_max, handed_off, without } = sent
  const { verdict: verdicts, ...some } = valuesIn(sent, '')
  const { verdict: verdictNot, ...not } = valuesIn(sent, '[not]')
  const widest = {
    since: since && Math.min(...since),
    until: until && Math.max(...until),
    score_min: score_min && Math.min(...score_min),
    score_max: score_max && Math.max(...score_max),
  }
  requireOrder(widest, 'since', 'until')
  requireOrder(widest, 'score_min', 'score_max')
  return {
    ...some,
    ...widest,
    handed_off,
    without,
    // The other verdicts are what indexes and roll-ups know, and every session has one.
    verdict: verdictNot
      ? (verdicts ?? verdict.options).filter((one) => !verdictNot.includes(one))
      : verdicts,
    not: { ...not, without: sent['without[not]'] },
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

const valuesIn = (sent: FilterQuery, suffix: '' | '[not]'): FilterValues =>
  Object.fromEntries(filterNames.map((name) => [name, sent[`${name}${suffix}`]]))

/** The header that names the parameters that narrowed the answer down: those of a later version, or misspelt, are missing. */
export const filtersHeader = 'x-filters-applied'

export function appliedFilters(sent: Record<string, unknown>): string {
  return Object.keys(sent)
    .filter((name) => sent[name] !== undefined && sent[name] !== '')
    .sort()
    .join(', ')
}

import { expect, test } from 'vitest'
import { groupFields } from '../../../projections/sessions/count-groups.ts'
import { emptyFields } from '../../../projections/sessions/filter-fields.ts'
import {
  canBeEmpty,
  canNegate,
  fieldNames,
  filterChanges,
  filterParameters,
  isGrouped,
  parseFilters,
  type UrlFilter,
  withFilter,
  withNegation,
  withOnlyFilter,
  withoutFilter,
} from '../../../services/console/pages/sessions/fields.ts'
import { filterQuery } from '../../../services/readback/session-filters.ts'

const query = new URLSearchParams(
  'last=7d&country=DE&country%5Bnot%5D=FR&without=asn&without%5Bnot%5D=browser&score_min=3&group=os&search=x',
)
const filters: UrlFilter[] = [
  { field: 'country', value: 'DE', isNot: false },
  { field: 'country', value: 'FR', isNot: true },
  { field: 'score_min', value: '3', isNot: false },
  { field: 'asn', value: null, isNot: false },
  { field: 'browser', value: null, isNot: true },
]

test('fields support "none", "is not" and grouping exactly if the API does', () => {
  expect(fieldNames.filter(canBeEmpty).toSorted()).toEqual(emptyFields.toSorted())
  expect(fieldNames.filter(isGrouped).toSorted()).toEqual(groupFields.toSorted())
  expect(fieldNames.filter(canNegate)).toEqual(
    fieldNames.filter((field) => `${field}[not]` in filterQuery),
  )
})

test('all filters of a URL are parsed, and sent to the API unchanged', () => {
  expect(parseFilters(query)).toEqual(filters)
  expect(filterParameters(query).toString()).toBe(
    'country=DE&country%5Bnot%5D=FR&score_min=3&without=asn&without%5Bnot%5D=browser&search=x',
  )
  expect(Object.keys(filterChanges([])).filter((name) => query.has(name))).toHaveLength(5)
  expect(filterChanges(filters)).toMatchObject({
    'country[not]': ['FR'],
    without: ['asn'],
    verdict: null,
  })
})

test('a new filter replaces those that it contradicts', () => {
  const [germany, france, , noAsn] = filters
  if (!germany || !france || !noAsn) throw new Error('a filter is missing')
  const notGermany = { ...germany, isNot: true }
  expect(withFilter([germany, france], notGermany)).toEqual([france, notGermany])
  expect(withNegation([germany, noAsn], noAsn)).toEqual([germany, { ...noAsn, isNot: true }])
  expect(withoutFilter([germany, noAsn], noAsn)).toEqual([germany])
  expect(withOnlyFilter([germany, noAsn, france], { ...france, isNot: false })).toEqual([
    noAsn,
    { ...france, isNot: false },
  ])
})

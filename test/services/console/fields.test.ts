import { expect, test } from 'vitest'
import { groupFields } from '../../../projections/sessions/count-groups.ts'
import { emptyFields } from '../../../projections/sessions/filter-fields.ts'
import {
  type ChosenFilter,
  canBeEmpty,
  canNegate,
  fieldNames,
  filterChanges,
  filterParameters,
  isGrouped,
  parseFilters,
  withFilter,
  withNegation,
  withOnlyFilter,
  withoutFilter,
} from '../../../services/console/pages/sessions/fields.ts'
import { filterQuery } from '../../../services/readback/session-filters.ts'

const query = new URLSearchParams(
  'last=7d&country=DE&country%5Bnot%5D=FR&without=asn&without%5Bnot%5D=browser&score_min=3&group=os&search=x',
)
const chosen: ChosenFilter[] = [
  { field: 'country', value: 'DE', isNot: false },
  { field: 'country', value: 'FR', isNot: true },
  { field: 'score_min', value: '3', isNot: false },
  { field: 'asn', value: null, isNot: false },
  { field: 'browser', value: null, isNot: true },
]

test('fields have "none", "is not" and groups where the API has them', () => {
  expect(fieldNames.filter(canBeEmpty).toSorted()).toEqual(emptyFields.toSorted())
  expect(fieldNames.filter(isGrouped).toSorted()).toEqual(groupFields.toSorted())
  expect(fieldNames.filter(canNegate)).toEqual(
    fieldNames.filter((field) => `${field}[not]` in filterQuery),
  )
})

test('all filters of an address are known, and go to the API as they are', () => {
  expect(parseFilters(query)).toEqual(chosen)
  expect(filterParameters(query).toString()).toBe(
    'country=DE&country%5Bnot%5D=FR&score_min=3&without=asn&without%5Bnot%5D=browser&search=x',
  )
  expect(Object.keys(filterChanges([])).filter((name) => query.has(name))).toHaveLength(5)
  expect(filterChanges(chosen)).toMatchObject({
    'country[not]': ['FR'],
    without: ['asn'],
    verdict: null,
  })
})

test('what is chosen next takes the place of what it contradicts', () => {
  const [germany, france, , noAsn] = chosen
  if (!germany || !france || !noAsn) throw new Error('not chosen')
  const notGermany = { ...germany, isNot: true }
  expect(withFilter([germany, france], notGermany)).toEqual([france, notGermany])
  expect(withNegation([germany, noAsn], noAsn)).toEqual([germany, { ...noAsn, isNot: true }])
  expect(withoutFilter([germany, noAsn], noAsn)).toEqual([germany])
  expect(withOnlyFilter([germany, noAsn, france], { ...france, isNot: false })).toEqual([
    noAsn,
    { ...france, isNot: false },
  ])
})

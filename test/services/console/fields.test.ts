import { expect, test } from 'vitest'
import { groupFields } from '../../../projections/sessions/count-groups.ts'
import { emptyFields } from '../../../projections/sessions/filter-fields.ts'
import {
  added,
  type ChosenFilter,
  canBeNot,
  changesTo,
  chosenIn,
  fieldNames,
  filtersIn,
  isGrouped,
  mayBeEmpty,
  only,
  removed,
  turned,
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
  expect(fieldNames.filter(mayBeEmpty).toSorted()).toEqual(emptyFields.toSorted())
  expect(fieldNames.filter(isGrouped).toSorted()).toEqual(groupFields.toSorted())
  expect(fieldNames.filter(canBeNot)).toEqual(
    fieldNames.filter((field) => `${field}[not]` in filterQuery),
  )
})

test('all filters of an address are known, and go to the API as they are', () => {
  expect(chosenIn(query)).toEqual(chosen)
  expect(filtersIn(query).toString()).toBe(
    'country=DE&country%5Bnot%5D=FR&score_min=3&without=asn&without%5Bnot%5D=browser&search=x',
  )
  expect(Object.keys(changesTo([])).filter((name) => query.has(name))).toHaveLength(5)
  expect(changesTo(chosen)).toMatchObject({
    'country[not]': ['FR'],
    without: ['asn'],
    verdict: null,
  })
})

test('what is chosen next takes the place of what it contradicts', () => {
  const [germany, france, , noAsn] = chosen
  if (!germany || !france || !noAsn) throw new Error('not chosen')
  const notGermany = { ...germany, isNot: true }
  expect(added([germany, france], notGermany)).toEqual([france, notGermany])
  expect(turned([germany, noAsn], noAsn)).toEqual([germany, { ...noAsn, isNot: true }])
  expect(removed([germany, noAsn], noAsn)).toEqual([germany])
  expect(only([germany, noAsn, france], { ...france, isNot: false })).toEqual([
    noAsn,
    { ...france, isNot: false },
  ])
})

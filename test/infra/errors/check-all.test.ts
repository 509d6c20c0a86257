import { expect, test } from 'vitest'
import { checkAll, checkEach, checkPresent } from '../../../infra/errors/check-all.ts'
import { ApiError, invalidField } from '../../../infra/errors/errors.ts'
import { refusal } from '../../services/organizations/fixtures.ts'

const reject =
  (name: string, more: object = {}) =>
  () => {
    throw invalidField({ name, issue: 'invalid' }, { parameter_set: 'thing_create', ...more })
  }

test('returns values by name, without those that have no check', () => {
  expect(checkAll({ a: () => 1, b: () => 'x' })).toEqual({ a: 1, b: 'x' })
  expect(checkPresent<{ a: number; b: string }>({ a: () => 1, b: undefined })).toEqual({ a: 1 })
  expect(checkEach(['a', 'b'], (text, i) => `${text}${i}`)).toEqual(['a0', 'b1'])
})

test('lists each invalid field once, with the first allowed values', () => {
  const error = refusal(() =>
    checkAll({
      a: reject('a'),
      fine: () => 1,
      list: () =>
        checkEach([0, 1, 2], (i) => i > 0 && reject(`list.${i}`, { allowed_values: [`${i}`] })()),
      again: reject('a'),
    }),
  )
  expect([error.code, error.message]).toEqual([
    'request.validation_failed',
    'a is invalid (and 2 more)',
  ])
  expect(error.details).toEqual({
    fields: ['a', 'list.1', 'list.2'].map((name) => ({ name, issue: 'invalid' })),
    parameter_set: 'thing_create',
    allowed_values: ['1'],
  })
})

test('throws any other error at once', () => {
  const fails = () => {
    throw new ApiError('request.not_found')
  }
  expect(refusal(() => checkAll({ a: reject('a'), fails })).code).toBe('request.not_found')
})

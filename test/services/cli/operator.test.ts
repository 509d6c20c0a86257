import { Command, InvalidArgumentError } from 'commander'
import { expect, test } from 'vitest'
import { ApiError, invalidField, unavailable } from '../../../infra/errors/errors.ts'
import { LogUnavailable } from '../../../infra/log/port.ts'
import type { OrganizationRow } from '../../../projections/organizations/tables.ts'
import { choice, commaList, limit, since } from '../../../services/cli/arguments.ts'
import { errorJson, errorText } from '../../../services/cli/failure.ts'
import { organizationTable } from '../../../services/cli/tables.ts'

const organization: OrganizationRow = {
  id: 'org_1',
  name: 'Acme',
  slug: 'acme',
  status: 'active',
  secret_limit: 5,
  publishable_limit: null,
  max_key_days: null,
  capabilities: ['ip_rotation'],
  created_at: 0,
  updated_at: 0,
}

test('a table has no colors or terminal escapes', () => {
  const shown = organizationTable([{ ...organization, name: 'A\u001b[2Jc\u0007m\u202ee' }], {
    secret: 600,
    publishable: 3000,
  })
  expect(shown).not.toMatch(/[^\P{Cc}\n]|\p{Cf}/u)
  expect(shown).toContain('A\uFFFD[2Jc\uFFFDm\uFFFDe')
  expect(shown).toMatch(
    /│ 5 in 60 s +│ default \(3000\) +│ unlimited +│ ip_rotation +│ 1970-01-01T00:00:00Z │/,
  )
})

test('arguments are parsed', () => {
  expect(commaList(' a, b,,c ')).toEqual(['a', 'b', 'c'])
  expect(() => commaList('')).toThrow('at least one value')
  expect(limit('600')).toBe(600)
  expect(limit('default')).toBe('default')
  for (const bad of ['', '-1', '1.5', '1e3', 'none', '9'.repeat(16)]) {
    expect(() => limit(bad)).toThrow(InvalidArgumentError)
  }
  expect(since('2026-11-23T12:00:00Z')).toBe(Date.UTC(2026, 10, 23, 12))
  expect(since('36h') - since('2d')).toBeCloseTo(12 * 3_600_000, -4)
  expect(() => since('7w')).toThrow(InvalidArgumentError)
  expect(choice('live', 'test')('test')).toBe('test')
  expect(() => choice('live', 'test')('prod')).toThrow('live, test')
})

test('an error names the fields, the expectation and the possible values', () => {
  const error = invalidField(
    { name: 'scopes.1', issue: 'invalid_value', expected: 'a scope' },
    { allowed_values: ['a', 'b'] },
  )
  const command = new Command().option('--scopes <list>', '')
  const text = ' must be a scope\npossible values: a, b'
  expect([errorText(error), errorText(error, command)]).toEqual([
    `scopes.1${text}`,
    `--scopes${text}`,
  ])
  expect(errorJson(error)).toMatchObject({
    code: 'request.validation_failed',
    status: 422,
    retryable: false,
  })
})

test('an error outside of API requests has its own code and keeps its message', () => {
  const error = new Error('DATABASE_URL is not set')
  expect(errorText(error)).toBe('DATABASE_URL is not set')
  expect(errorJson(error)).toEqual({
    code: 'command.failed',
    message: 'DATABASE_URL is not set',
    retryable: false,
  })
})

test('a read model that is behind is not reported as an unreachable database', () => {
  const late = unavailable(new Error('organizations has not applied it in time'))
  expect(errorText(late)).toMatch(
    /role `projections`.*\(organizations has not applied it in time\)$/,
  )
  const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
  for (const unreachable of [refused, new LogUnavailable('no broker'), unavailable(refused)]) {
    expect(errorText(unreachable)).toMatch(/^Cannot reach the database or the log/)
  }
  expect(errorText(new ApiError('auth.organization_inactive'))).not.toContain('projections')
})

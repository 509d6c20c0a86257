import { expect, test } from 'vitest'
import { type Shard, summary } from './run-summary.ts'

const closing = ' Test Files  2 passed (2)\n      Tests  9 passed (9)\n   Duration  3.20s (tests 90%)\n'
const good: Shard = {
  name: 'shard 1 of 2',
  code: 0,
  output: ` ✓ test/a.test.ts (4 tests) 12ms\n\n${closing}\nJSON report written to /tmp/1.json\n`,
  report: { numPassedTests: 9, numFailedTests: 0, testResults: [] },
}

test('ends with the totals alone on a line, after the closing lines of each shard', () => {
  const { lines, isGood } = summary([good, { ...good, name: 'shard 2 of 2' }])
  expect(isGood).toBe(true)
  expect(lines.slice(0, 5)).toEqual(['shard 1 of 2', ...closing.trimEnd().split('\n'), ''])
  expect(lines.at(-1)).toBe('18 passed, 0 failed')
})

test('failed tests, and files that failed without one, are counted', () => {
  const testResults = [
    {
      name: 'a',
      status: 'failed',
      assertionResults: [
        { status: 'failed', fullName: 'adds', failureMessages: ['expected 2\n    at a.test.ts:4'] },
        { status: 'passed', fullName: 'counts' },
      ],
    },
    { name: 'b', status: 'failed', assertionResults: [{ status: 'passed', fullName: 'is' }] },
    { name: 'c', status: 'failed', message: 'no such module', assertionResults: [] },
  ]
  const bad = { ...good, code: 1, report: { numPassedTests: 2, numFailedTests: 1, testResults } }
  const { lines, isGood } = summary([good, bad])
  expect(isGood).toBe(false)
  expect(lines.at(-1)).toBe('11 passed, 3 failed')
  expect(lines).toContain('FAILED a > adds')
  expect(lines).toContain('    expected 2')
  expect(lines).toContain('FAILED c')
  expect(lines).toContain('    no such module')
})

test.each<[string, Partial<Shard>, string]>([
  ['a shard that failed otherwise', { code: 1 }, 'shard 1 of 2 ended with 1'],
  ['a shard that was killed', { code: null }, 'shard 1 of 2 ended with null'],
  ['a shard without a report', { report: undefined }, 'shard 1 of 2 has no report'],
  [
    'a run without tests',
    { report: { numPassedTests: 0, numFailedTests: 0, testResults: [] } },
    'no test ran',
  ],
])('%s is no success, and said before the totals', (_, change, line) => {
  const { lines, isGood } = summary([{ ...good, ...change }])
  expect(isGood).toBe(false)
  expect(lines).toContain(line)
  expect(lines.at(-1)).toMatch(/^\d+ passed, 0 failed$/)
})

import { expect, test } from 'vitest'
import type { Missing } from './provide.ts'
import { notTestedLines } from './summary.ts'

const browser: Missing = {
  name: 'chromium',
  tests: 'pages in a browser',
  files: ['test/a.test.ts', 'test/b.test.ts', 'test/c.test.ts'],
  reason: 'only root may install packages',
  remedy: 'sudo apt-get install chromium',
  couldBe: true,
}
const { remedy: _, ...noRemedy } = browser
const history: Missing = {
  ...noRemedy,
  name: 'history',
  files: ['test/d.test.ts'],
  reason: 'shallow',
  couldBe: false,
}

test('each is named with its reason and what helps', () => {
  const { lines, isFailure } = notTestedLines([browser, history], { isCi: false })
  expect(isFailure).toBe(false)
  expect(lines).toEqual([
    'NOT TESTED: pages in a browser (chromium; test/a.test.ts and 2 more)',
    '    only root may install packages. What helps: sudo apt-get install chromium',
    'NOT TESTED: pages in a browser (history; test/d.test.ts)',
    '    shallow',
  ])
})

test('with CI set, what could have been had fails the run, and what this machine keeps away does not', () => {
  const { lines, isFailure } = notTestedLines([browser, history], { isCi: true })
  expect(isFailure).toBe(true)
  expect(lines.filter((line) => line.includes('With CI set'))).toHaveLength(1)
  expect(notTestedLines([history], { isCi: true }).isFailure).toBe(false)
  expect(notTestedLines([], { isCi: true })).toEqual({ lines: [], isFailure: false })
})

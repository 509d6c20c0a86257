import { describe, expect, test } from 'vitest'
import type { Missing } from './needs/provide.ts'
import { filesToRepeat, type Report, type Run, summary, type WholeRun } from './run-summary.ts'

const closing =
  ' Test Files  2 passed (2)\n      Tests  9 passed (9)\n   Duration  3.20s (tests 90%)\n'
const good: Run = {
  code: 0,
  output: ` ✓ test/a.test.ts (4 tests) 12ms\n\n${closing}\nJSON report written to /tmp/1.json\n`,
  report: { numPassedTests: 9, testResults: [] },
  durations: [],
}
const long = '/here/test/faults/kill.test.ts'
const isLongRun = (file: string) => file.includes('/faults/') || file.includes('.long.')

const passing = (fullName: string) => ({ status: 'passed', fullName })
const failing = (fullName: string, ...failureMessages: string[]) => ({
  status: 'failed',
  fullName,
  failureMessages,
})
const failedFile = (
  name: string,
  ...assertionResults: Report['testResults'][number]['assertionResults']
) => ({
  name,
  status: 'failed',
  assertionResults,
})

/** A run in which these failed, and `passed` tests did not. */
const failed = (passed: number, ...testResults: Report['testResults']): Run => ({
  code: 1,
  output: `stdout | test/faults/kill.test.ts > kill\nseed 17\n\nstdout | test/b.test.ts > b\nseed 18\n\n${closing}`,
  report: { numPassedTests: passed, testResults },
  durations: [],
})

const whole = (change: Partial<WholeRun>) =>
  summary({ run: good, again: new Map(), missing: [], isCi: false, ...change })

test('ends with the totals alone on a line, after the closing lines of vitest', () => {
  const { lines, isGood } = whole({})
  expect(isGood).toBe(true)
  expect(lines).toEqual([...closing.trimEnd().split('\n'), '', '9 passed, 0 failed'])
})

test('the ten slowest files are named before what failed', () => {
  const durations = Array.from({ length: 12 }, (_, n) => ({
    file: `test/${n}.test.ts`,
    seconds: n + 0.4,
    hookErrors: [],
  }))
  const { lines } = whole({ run: { ...failed(1, failedFile('a', failing('adds'))), durations } })
  const start = lines.indexOf('Slowest files:')
  expect(lines[start + 1]).toBe('    11 s  test/11.test.ts')
  expect(lines[start + 10]).toBe('     2 s  test/2.test.ts')
  expect(lines.slice(start + 11)).toEqual(['', 'FAILED a > adds', '1 passed, 1 failed'])
})

test('failed tests, and files that failed without one, are counted', () => {
  const run = failed(
    2,
    failedFile('a', failing('adds', 'expected 2\n    at a.test.ts:4'), passing('counts')),
    failedFile('b', passing('is')),
    { ...failedFile('c'), message: 'no such module' },
  )
  const { lines, isGood } = whole({ run })
  expect(isGood).toBe(false)
  expect(lines.at(-1)).toBe('2 passed, 3 failed')
  expect(lines).toEqual(
    expect.arrayContaining(['FAILED a > adds', '    expected 2', 'FAILED c', '    no such module']),
  )
})

test('what a hook threw is shown beside its file', () => {
  const file = '/here/test/a.test.ts'
  const durations = [
    { file: 'test/a.test.ts', seconds: 1, hookErrors: ['suite: Error: no broker\n    at a:1'] },
  ]
  const { lines } = whole({ run: { ...failed(1, failedFile(file)), durations } })
  expect(lines.slice(-4)).toEqual([
    `FAILED ${file}`,
    '    suite: Error: no broker',
    '        at a:1',
    '1 passed, 1 failed',
  ])
})

test.each<[string, Partial<Run>, string]>([
  ['a run that failed otherwise', { code: 1 }, 'vitest ended with 1'],
  ['a run that was killed', { code: null }, 'vitest ended with null'],
  ['a run without a report', { report: undefined }, 'vitest left no report'],
  ['a run without tests', { report: { numPassedTests: 0, testResults: [] } }, 'no test ran'],
])('%s is no success, and said before the totals', (_, change, line) => {
  const { lines, isGood } = whole({ run: { ...good, ...change } })
  expect(isGood).toBe(false)
  expect(lines).toContain(line)
  expect(lines.at(-1)).toMatch(/^\d+ passed, 0 failed$/)
})

describe('a long run that failed', () => {
  const run = failed(
    5,
    failedFile(long, passing('starts'), failing('kill', 'lost one\n    at kill.test.ts:9')),
  )
  const passesAlone: Run = { ...good, report: { numPassedTests: 2, testResults: [] } }

  test('and passes alone is flaky, with all its output, and no failure', () => {
    const { lines, isGood } = whole({ run, again: new Map([[long, passesAlone]]) })
    expect(isGood).toBe(true)
    expect(lines).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^FLAKY \/here\/test\/faults\/kill\.test\.ts: /),
        '    lost one',
        '        at kill.test.ts:9',
        '    seed 17',
      ]),
    )
    expect(lines).not.toContain('    seed 18')
    expect(lines.at(-1)).toBe('6 passed, 0 failed')
  })

  test('and fails again has failed', () => {
    const { lines, isGood } = whole({ run, again: new Map([[long, run]]) })
    expect(isGood).toBe(false)
    expect(lines).toContain(`FAILED ${long} > kill`)
    expect(lines.at(-1)).toBe('5 passed, 1 failed')
  })

  test('and of which nothing runs alone has failed', () => {
    const nothing: Run = { ...good, report: { numPassedTests: 0, testResults: [] } }
    expect(whole({ run, again: new Map([[long, nothing]]) }).isGood).toBe(false)
  })

  test('does not excuse an error beside tests', () => {
    const output = closing.replace('   Duration', '     Errors  1 error\n   Duration')
    const { lines, isGood } = whole({
      run: { ...run, output },
      again: new Map([[long, passesAlone]]),
    })
    expect(isGood).toBe(false)
    expect(lines).toContain('beside tests:     Errors  1 error')
  })

  test('does not excuse vitest when it was killed', () => {
    expect(
      whole({ run: { ...run, code: null }, again: new Map([[long, passesAlone]]) }).isGood,
    ).toBe(false)
  })
})

describe('what is run once more', () => {
  const longOnes = (count: number) =>
    Array.from({ length: count }, (_, n) => failedFile(`/t/${n}.long.test.ts`))
  test.each([
    ['nothing, where nothing failed', good, []],
    ['a long run', failed(1, failedFile(long)), [long]],
    ['no other file', failed(1, failedFile('/t/a.test.ts')), []],
    [
      'no long run either, where another file failed',
      failed(1, failedFile(long), failedFile('/t/a.test.ts')),
      [],
    ],
    ['nothing, where so many failed that it is no chance', failed(1, ...longOnes(5)), []],
    ['nothing, where there is no report', { ...good, report: undefined }, []],
  ])('%s', (_, run, files) => {
    expect(filesToRepeat(run, isLongRun)).toEqual(files)
  })
})

test('what was not tested stands right before the totals, and fails where CI could have had it', () => {
  const chart: Missing = {
    name: 'helm',
    tests: 'the chart',
    files: ['test/chart.test.ts'],
    reason: 'Go does not run',
    remedy: 'sudo apt-get install golang-go',
    couldBe: true,
  }
  const { lines, isGood } = whole({ missing: [chart] })
  expect(isGood).toBe(true)
  expect(lines.slice(-3)).toEqual([
    'NOT TESTED: the chart (helm; test/chart.test.ts)',
    '    Go does not run. What helps: sudo apt-get install golang-go',
    '9 passed, 0 failed',
  ])
  expect(whole({ missing: [chart], isCi: true }).isGood).toBe(false)
  expect(whole({ missing: [{ ...chart, couldBe: false }], isCi: true }).isGood).toBe(true)
})

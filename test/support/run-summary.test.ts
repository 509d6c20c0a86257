import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, test } from 'vitest'
import type { FileReport, RunReport } from './run-report.ts'
import { filesToRepeat, type Run, summary, type WholeRun } from './run-summary.ts'
import { root } from './test-projects.ts'

const long = 'test/faults/kill.test.ts'
const file = (some: Partial<FileReport>): FileReport => ({
  file: 'test/a.test.ts',
  seconds: 1,
  passed: 0,
  failures: [],
  output: '',
  ...some,
})
const failed = (name: string, passed = 0): FileReport =>
  file({ file: name, passed, failures: [{ name: 'kill', message: 'lost one\nat 9' }] })
const runOf = (code: number | null, ...files: FileReport[]): Run => ({
  code,
  report: { files, unhandled: [] },
})
const good = runOf(0, file({ passed: 9 }))
const whole = (some: Partial<WholeRun>) =>
  summary({ run: good, again: new Map(), missing: [], isCi: false, ...some })

test('the ten slowest files and what failed stand before the totals', () => {
  const files = Array.from({ length: 12 }, (_, n) =>
    file({ file: `test/${n}.test.ts`, seconds: n + 0.4, passed: 1 }),
  )
  const { lines, isGood } = whole({ run: runOf(1, ...files, failed('test/b.test.ts', 2)) })
  expect(isGood).toBe(false)
  expect(lines.slice(0, 2)).toEqual(['Slowest files:', '    11 s  test/11.test.ts'])
  expect(lines.slice(10)).toEqual([
    '     2 s  test/2.test.ts',
    '',
    'FAILED test/b.test.ts > kill',
    '    lost one',
    '    at 9',
    '14 passed, 1 failed',
  ])
})

test.each<[string, Run, string]>([
  ['a run that failed otherwise', { ...good, code: 1 }, 'vitest ended with 1'],
  ['a run that was killed', { ...good, code: null }, 'vitest ended with null'],
  ['a run without a report', { code: 0, report: undefined }, 'vitest left no report'],
  ['a run without tests', runOf(0), 'no test ran'],
  [
    'an error beside tests',
    { code: 1, report: { files: [failed(long)], unhandled: ['a bug'] } },
    '    a bug',
  ],
])('%s is no success', (_, run, line) => {
  const { lines, isGood } = whole({ run, again: new Map([[long, good]]) })
  expect([isGood, lines.includes(line)]).toEqual([false, true])
  expect(lines.at(-1)).toMatch(/^\d+ passed, 0 failed$/)
})

test('a long file that passes alone is flaky, with all its output; one that does not has failed', () => {
  const run = runOf(1, { ...failed(long, 1), output: 'seed 17' }, file({ passed: 4 }))
  const flaky = whole({ run, again: new Map([[long, runOf(0, file({ passed: 2 }))]]) })
  expect(flaky.isGood).toBe(true)
  expect(flaky.lines.slice(-6)).toEqual([
    expect.stringMatching(/^FLAKY test\/faults\/kill\.test\.ts: /),
    '    kill',
    '    lost one',
    '    at 9',
    '    seed 17',
    '6 passed, 0 failed',
  ])
  for (const again of [run, runOf(0)])
    expect(whole({ run, again: new Map([[long, again]]) }).isGood).toBe(false)
})

test.each<[string, Run, string[]]>([
  ['nothing, where nothing failed', good, []],
  ['a long file', runOf(1, failed(long)), [long]],
  ['nothing, where another file failed', runOf(1, failed(long), failed('test/a.test.ts')), []],
  [
    'nothing, where so many failed that it is no chance',
    runOf(1, ...[1, 2, 3, 4, 5].map((n) => failed(`test/${n}.long.test.ts`))),
    [],
  ],
  ['nothing, where there is no report', { code: 1, report: undefined }, []],
])('what is run once more: %s', (_, run, files) => {
  expect(filesToRepeat(run)).toEqual(files)
})

test('what was not tested stands before the totals, and fails where CI could have had it', () => {
  const missing = {
    name: 'helm',
    tests: 'the chart',
    files: ['test/chart.test.ts'],
    reason: 'Go does not run',
    remedy: 'sudo apt-get install golang-go',
    couldBe: true,
  }
  const { lines, isGood } = whole({ missing: [missing] })
  expect([isGood, lines.at(-3)]).toEqual([true, 'NOT TESTED: the chart (helm; test/chart.test.ts)'])
  expect(whole({ missing: [missing], isCi: true }).isGood).toBe(false)
  expect(whole({ missing: [{ ...missing, couldBe: false }], isCi: true }).isGood).toBe(true)
})

const failing = `import { beforeAll, describe, it } from 'vitest'
describe('a server', () => {
  beforeAll(() => { throw new Error('the broker did not start') })
  it('answers', () => {})
})
it('prints a seed', () => { console.log('seed 17') })
it('fails', () => { throw new Error('lost one') })`

test('the reporter has what tests and hooks threw, and what was printed', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'tidegate-report-'))
  await writeFile(path.join(folder, 'one.test.ts'), failing)
  const report = path.join(folder, 'report.json')
  const reporter = `--reporter=${path.join(root, 'test/support/run-report.ts')}`
  const vitest = path.join(root, 'node_modules/vitest/vitest.mjs')
  const options = { cwd: folder, env: { ...process.env, TEST_REPORT: report } }
  const args = [vitest, 'run', '--root', folder, reporter]
  const code = await new Promise((resolve) =>
    execFile(process.execPath, args, options, (error) => resolve(error?.code)),
  )
  expect(code).toBe(1)
  const { files }: RunReport = JSON.parse(await readFile(report, 'utf8'))
  expect(files).toMatchObject([
    {
      passed: 1,
      failures: [
        { name: 'a server', message: expect.stringContaining('the broker did not start') },
        { name: 'fails', message: expect.stringContaining('lost one') },
      ],
      output: 'seed 17\n',
    },
  ])
  await rm(folder, { recursive: true })
}, 60_000)

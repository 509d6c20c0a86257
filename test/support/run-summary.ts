import { stripVTControlCharacters } from 'node:util'
import type { FileDuration } from './file-durations.ts'
import type { Missing } from './needs/provide.ts'
import { notTestedLines } from './needs/summary.ts'

/** The part of vitest's JSON report that is read here. */
export interface Report {
  numPassedTests: number
  testResults: FileResult[]
}

interface FileResult {
  /** Its path. */
  name: string
  status: string
  message?: string
  assertionResults: TestResult[]
}

interface TestResult {
  status: string
  fullName: string
  failureMessages?: string[]
}

export interface Run {
  /** The exit code of vitest. */
  code: number | null
  /** What it printed, without colours. */
  output: string
  /** undefined where vitest ended without one. */
  report: Report | undefined
  durations: FileDuration[]
}

export interface WholeRun {
  run: Run
  /** Long runs that failed in it, and were run once more alone; by path. */
  again: Map<string, Run>
  missing: Missing[]
  isCi: boolean
}

/** So many long runs that fail are no chance. */
const mostRepeated = 4

const slowestShown = 10

/** The failed files that are run once more, alone: long runs, unless something else is wrong as well. */
export function filesToRepeat({ report }: Run, isLongRun: (file: string) => boolean): string[] {
  const failed = failedFiles(report).map(({ name }) => name)
  return failed.length <= mostRepeated && failed.every(isLongRun) ? failed : []
}

/**
 * vitest's closing lines, the slowest files, what failed, what is flaky, what was not tested, and last the totals alone
 * on a line. Flaky is what failed once and passed alone: its tests count as the second run has them.
 */
export function summary({ run, again, missing, isCi }: WholeRun): {
  lines: string[]
  isGood: boolean
} {
  const flaky = flakyFiles({ run, again })
  const failed = failedFiles(run.report).filter((file) => !flaky.includes(file))
  const notTested = notTestedLines(missing, { isCi })
  const wrong = [
    ...wrongOf(run, failed.length + flaky.length),
    ...failed.flatMap((file) => failureLines(file, run.durations)),
  ]
  const lost = failed.reduce((sum, file) => sum + Math.max(failedTests(file).length, 1), 0)
  const passed = passedTests(run, flaky, again)
  if (passed + lost === 0) wrong.push('no test ran')
  return {
    lines: [
      ...closingLines(run.output),
      '',
      ...slowestLines(run.durations),
      ...wrong,
      ...flaky.flatMap((file) => flakyLines(file, run)),
      ...notTested.lines,
      `${passed} passed, ${lost} failed`,
    ],
    isGood: wrong.length === 0 && !notTested.isFailure,
  }
}

/** All that is known of a file's failure: what its tests threw, and what it printed, seeds among it. */
export function flakyLines(file: FileResult, { output, durations }: Run): string[] {
  return [
    `FLAKY ${file.name}: it failed, and passed when it ran once more alone. The cause is still to be found.`,
    ...failedTests(file).flatMap(({ fullName, failureMessages = [] }) => [
      `    ${fullName}`,
      ...indented(failureMessages.join('\n')),
    ]),
    ...indented(file.message),
    ...hookErrorsOf(file, durations),
    ...indented(printedBy(file.name, output)),
  ]
}

/** The failed files of a run that passed when they ran alone. */
export const flakyFiles = ({ run, again }: Pick<WholeRun, 'run' | 'again'>): FileResult[] =>
  failedFiles(run.report).filter(({ name }) => hasPassed(again.get(name)))

function slowestLines(durations: FileDuration[]): string[] {
  const slowest = durations.toSorted((a, b) => b.seconds - a.seconds).slice(0, slowestShown)
  const lines = slowest.map(({ file, seconds }) => `${seconds.toFixed(0).padStart(6)} s  ${file}`)
  return lines.length > 0 ? ['Slowest files:', ...lines, ''] : []
}

const failedFiles = (report: Report | undefined): FileResult[] =>
  (report?.testResults ?? []).filter(({ status }) => status === 'failed')

const failedTests = ({ assertionResults }: FileResult): TestResult[] =>
  assertionResults.filter(({ status }) => status === 'failed')

const hasPassed = (run: Run | undefined): boolean =>
  run?.code === 0 && (run.report?.numPassedTests ?? 0) > 0

function passedTests({ report }: Run, flaky: FileResult[], again: Map<string, Run>): number {
  const before = flaky.flatMap(({ assertionResults }) =>
    assertionResults.filter(({ status }) => status === 'passed'),
  )
  const after = flaky.map(({ name }) => again.get(name)?.report?.numPassedTests ?? 0)
  return (
    (report?.numPassedTests ?? 0) - before.length + after.reduce((sum, passed) => sum + passed, 0)
  )
}

/** What is wrong beside failed files; these explain an exit code of 1. */
function wrongOf({ code, output, report }: Run, failed: number): string[] {
  const unhandled = closingLines(output).find((line) => /^\s*Errors /.test(line))
  return [
    ...(report ? [] : ['vitest left no report']),
    ...(unhandled ? [`beside tests:${unhandled}`] : []),
    ...(code === 0 || (code === 1 && failed > 0) ? [] : [`vitest ended with ${code}`]),
  ]
}

/** Each failure with its file and the first lines of its message: whoever sees the end of a log sees them. */
function failureLines(file: FileResult, durations: FileDuration[]): string[] {
  const tests = failedTests(file)
  if (tests.length === 0)
    return [
      `FAILED ${file.name}`,
      ...indented(file.message).slice(0, 8),
      ...hookErrorsOf(file, durations),
    ]
  return tests.flatMap(({ fullName, failureMessages }) => [
    `FAILED ${file.name} > ${fullName}`,
    ...indented(failureMessages?.[0]).slice(0, 8),
  ])
}

function hookErrorsOf(file: FileResult, durations: FileDuration[]): string[] {
  const { hookErrors = [] } =
    durations.find((duration) => file.name.endsWith(`/${duration.file}`)) ?? {}
  return hookErrors.flatMap((error) => indented(error).slice(0, 8))
}

const indented = (text = ''): string[] =>
  text === ''
    ? []
    : stripVTControlCharacters(text)
        .split('\n')
        .map((line) => `    ${line}`)

/** vitest prints `stdout | file > test`, then lines until an empty one. */
function printedBy(name: string, output: string): string {
  const blocks = output.matchAll(/^(?:stdout|stderr) \| ([^\n >]+)[^\n]*\n(?:[^\n]+\n)*/gm)
  return [...blocks].flatMap(([block, file = '']) => (name.endsWith(file) ? block : [])).join('')
}

function closingLines(output: string): string[] {
  const lines = output.split('\n')
  const start = lines.findLastIndex((line) => /^\s*Test Files /.test(line))
  return start < 0
    ? []
    : lines
        .slice(start)
        .filter((line) => /^\s*(Test Files|Tests|Errors|Start at|Duration) /.test(line))
}

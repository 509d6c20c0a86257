import type { Missing } from './needs/provide.ts'
import { notTestedLines } from './needs/summary.ts'
import type { FileReport, RunReport } from './run-report.ts'
import { isLongFile } from './test-projects.ts'

export interface Run {
  /** Exit code of vitest. */
  code: number | null
  /** undefined if vitest exited without a report. */
  report: RunReport | undefined
}

export interface WholeRun {
  run: Run
  /** Reruns of failed long files, each alone. */
  again: Map<string, Run>
  missing: Missing[]
  isCi: boolean
}

/** If more long files fail, they are not rerun, because that is not flakiness. */
const maxRepeated = 4

const slowestShown = 10

/** Returns the failed long files to rerun alone; none if there are other problems. */
export function filesToRepeat({ report }: Run): string[] {
  const failed = failedFiles(report).map(({ file }) => file)
  return failed.length <= maxRepeated && failed.every(isLongFile) ? failed : []
}

/**
 * The slowest files, what failed, what is flaky, what was not tested, and last the totals alone on a line. Flaky is
 * what failed once and passed alone: its tests count as the second run has them.
 */
export function summary({ run, again, missing, isCi }: WholeRun): {
  lines: string[]
  isGood: boolean
} {
  const flaky = flakyFiles({ run, again })
  const failed = failedFiles(run.report).filter((file) => !flaky.includes(file))
  const good = (run.report?.files ?? []).filter((file) => !flaky.includes(file))
  const repeated = flaky.flatMap(({ file }) => again.get(file)?.report?.files ?? [])
  const passed = [...good, ...repeated].reduce((sum, file) => sum + file.passed, 0)
  const lost = failed.reduce((sum, { failures }) => sum + failures.length, 0)
  const wrong = [
    ...wrongOf(run, failed.length + flaky.length),
    ...failed.flatMap(failureLines),
    ...(passed + lost === 0 ? ['no test ran'] : []),
  ]
  const notTested = notTestedLines(missing, { isCi })
  const lines = [
    ...slowestLines(run.report?.files ?? []),
    ...wrong,
    ...flaky.flatMap(flakyLines),
    ...notTested.lines,
    `${passed} passed, ${lost} failed`,
  ]
  return { lines, isGood: wrong.length === 0 && !notTested.isFailure }
}

/** Returns the failed files that passed when rerun alone. */
export const flakyFiles = ({ run, again }: Pick<WholeRun, 'run' | 'again'>): FileReport[] =>
  failedFiles(run.report).filter(({ file }) => hasPassed(again.get(file)))

/** Returns the errors of a failed file's tests, and its output, including seeds. */
export const flakyLines = ({ file, failures, output }: FileReport): string[] => [
  `FLAKY ${file}: it failed, and passed when it ran once more alone. The cause is still to be found.`,
  ...failures.flatMap(({ name, message }) => [`    ${name}`, ...indented(message)]),
  ...indented(output),
]

const failedFiles = (report: RunReport | undefined): FileReport[] =>
  (report?.files ?? []).filter(({ failures }) => failures.length > 0)

const hasPassed = (run: Run | undefined): boolean =>
  run?.code === 0 && (run.report?.files ?? []).some(({ passed }) => passed > 0)

function slowestLines(files: FileReport[]): string[] {
  const slowest = files.toSorted((a, b) => b.seconds - a.seconds).slice(0, slowestShown)
  const lines = slowest.map(({ file, seconds }) => `${seconds.toFixed(0).padStart(6)} s  ${file}`)
  return lines.length > 0 ? ['Slowest files:', ...lines, ''] : []
}

/** Returns problems other than failed files, which explain an exit code of 1. */
function wrongOf({ code, report }: Run, failed: number): string[] {
  const unhandled = report?.unhandled ?? []
  return [
    ...(report ? [] : ['vitest left no report']),
    ...unhandled.flatMap((error) => ['beside tests:', ...indented(error)]),
    ...(code === 0 || (code === 1 && failed > 0) ? [] : [`vitest ended with ${code}`]),
  ]
}

/** Returns each failure with the first lines of its message, for the end of the log. */
const failureLines = ({ file, failures }: FileReport): string[] =>
  failures.flatMap(({ name, message }) => [
    `FAILED ${file} > ${name}`,
    ...indented(message).slice(0, 8),
  ])

const indented = (text: string): string[] =>
  text === '' ? [] : text.split('\n').map((line) => `    ${line}`)

import { stripVTControlCharacters } from 'node:util'

/** The part of vitest's JSON report that is read here. */
export interface Report {
  numPassedTests: number
  numFailedTests: number
  testResults: { name: string; status: string; message?: string; assertionResults: TestResult[] }[]
}

interface TestResult {
  status: string
  fullName: string
  failureMessages?: string[]
}

export interface Shard {
  name: string
  /** The exit code of vitest. */
  code: number | null
  /** What it printed, without colours. */
  output: string
  /** undefined where vitest ended without one. */
  report: Report | undefined
}

/** vitest's closing lines for each shard, what is wrong beside failed tests, and last the totals alone on a line. */
export function summary(shards: Shard[]): { lines: string[]; isGood: boolean } {
  const passed = total(shards, ({ numPassedTests }) => numPassedTests)
  const failed = total(shards, (report) => report.numFailedTests + brokenFiles(report))
  const wrong = shards.flatMap(({ name, code, report }) => [
    ...(report ? [] : [`${name} has no report`]),
    ...(code === 0 ? [] : [`${name} ended with ${code}`]),
    ...(report ? failures(report) : []),
  ])
  if (passed + failed === 0) wrong.push('no test ran')
  const closing = shards.flatMap(({ name, output }) => [name, ...closingLines(output), ''])
  return {
    lines: [...closing, ...wrong, `${passed} passed, ${failed} failed`],
    isGood: wrong.length === 0 && failed === 0,
  }
}

function total(shards: Shard[], count: (report: Report) => number): number {
  return shards.reduce((sum, { report }) => sum + (report ? count(report) : 0), 0)
}

/** Files that failed without a failed test: they could not be loaded, or a hook of theirs failed. */
function brokenFiles({ testResults }: Report): number {
  return testResults.filter(
    ({ status, assertionResults }) =>
      status === 'failed' && !assertionResults.some((test) => test.status === 'failed'),
  ).length
}

/** Each failure with its file and the first lines of its message: whoever sees the end of a log sees them. */
function failures({ testResults }: Report): string[] {
  return testResults
    .filter(({ status }) => status === 'failed')
    .flatMap(({ name, message, assertionResults }) => {
      const tests = assertionResults.filter((test) => test.status === 'failed')
      if (tests.length === 0) return [`FAILED ${name}`, ...beginning(message)]
      return tests.flatMap(({ fullName, failureMessages }) => [
        `FAILED ${name} > ${fullName}`,
        ...beginning(failureMessages?.[0]),
      ])
    })
}

const beginning = (message = '') =>
  stripVTControlCharacters(message)
    .split('\n')
    .slice(0, 8)
    .map((line) => `    ${line}`)

function closingLines(output: string): string[] {
  const lines = output.split('\n')
  const start = lines.findLastIndex((line) => /^\s*Test Files /.test(line))
  return start < 0
    ? []
    : lines.slice(start).filter((line) => /^\s*(Test Files|Tests|Errors|Start at|Duration) /.test(line))
}

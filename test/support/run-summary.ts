/** The part of vitest's JSON report that is read here. */
export interface Report {
  numPassedTests: number
  numFailedTests: number
  testResults: { name: string; status: string; assertionResults: { status: string }[] }[]
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

function closingLines(output: string): string[] {
  const lines = output.split('\n')
  const start = lines.findLastIndex((line) => /^\s*Test Files /.test(line))
  return start < 0
    ? []
    : lines.slice(start).filter((line) => /^\s*(Test Files|Tests|Errors|Start at|Duration) /.test(line))
}

import { isLongFile } from './test-projects.ts'

/** Long test files that every CI run includes, by the promise that they check. */
export const promises = {
  'every answer is the recorded one': 'test/recorded/recorded.long.test.ts',
  'what the last release left starts and reads the same': 'test/e2e/release.long.test.ts',
  'an update keeps its data': 'test/e2e/update.long.test.ts',
  'an erased person is gone': 'test/e2e/erasure.long.test.ts',
  'what has ended is deleted': 'test/e2e/retention.long.test.ts',
  'a kill of collect and scoring loses no acknowledged batch': 'test/faults/kill.test.ts',
  'a kill of a dispatcher loses and repeats no webhook':
    'test/services/webhooks/dispatch/survival.long.test.ts',
  'a kill of Gate loses no approval': 'test/faults/gate.test.ts',
  'a stop answers what was sent': 'test/faults/stop.test.ts',
  'appends survive an outage of Kafka': 'test/infra/log/outage.long.test.ts',
  'two servers are one installation': 'test/e2e/cluster.long.test.ts',
  'races for one signup have one winner': 'test/e2e/gate-races.long.test.ts',
  'a lost database is restored from the log': 'test/e2e/restore.long.test.ts',
  'a rebuild under traffic is equal': 'test/projections/rebuild-traffic.long.test.ts',
  'master keys are rotated by the documented steps': 'test/e2e/master-keys.long.test.ts',
  'no secret is stored or printed': 'test/e2e/secrets.long.test.ts',
  'the operator commands': 'test/e2e/cli.long.test.ts',
  'the npm package runs in an empty folder': 'test/e2e/package.long.test.ts',
  'every package supports the pinned Node': 'test/structure/install.long.test.ts',
  'make run': 'test/e2e/make-run.long.test.ts',
  'the README works as written': 'test/e2e/readme.long.test.ts',
  'the SDK in a browser': 'test/e2e/browser.long.test.ts',
  'the consent page in a browser': 'test/e2e/gate-page.long.test.ts',
  'the console in a browser': 'test/e2e/console-walk.long.test.ts',
  'the docs in a browser': 'test/e2e/api-page.long.test.ts',
  'the server SDKs': 'test/e2e/server-sdk.long.test.ts',
  'an agent signs up': 'test/services/cli/signup/command.long.test.ts',
  'an agent is verified by its signature': 'test/e2e/agents.long.test.ts',
  'a visitor is explained': 'test/e2e/visitors.long.test.ts',
  'an export that is killed has each session once': 'test/e2e/export.long.test.ts',
} satisfies Record<string, string>

/** Other long files are split into this many parts, one per day. */
export const partCount = 7

export interface Selection {
  /** Everything to run. */
  files: string[]
  promised: string[]
  /** Index of the day's part. */
  part: number
  inPart: string[]
  /** Other long files that were changed. */
  touched: string[]
}

interface Choice {
  /** Every test file, as paths from the root. */
  files: readonly string[]
  time: Date
  /** Files changed by recent commits. */
  touched: readonly string[]
}

/**
 * Returns what CI runs: all files that are not long, the promised ones, the day's part of the others, and touched ones.
 */
export function selectFiles({ files, time, touched }: Choice): Selection {
  const sorted = [...files].sort()
  const promisedFiles: string[] = Object.values(promises)
  const promised = sorted.filter((file) => promisedFiles.includes(file))
  const rest = sorted.filter((file) => isLongFile(file) && !promisedFiles.includes(file))
  const part = Math.floor(time.getTime() / 86_400_000) % partCount
  const inPart = rest.filter((_, index) => index % partCount === part)
  const touchedRest = rest.filter((file) => touched.includes(file) && !inPart.includes(file))
  const short = sorted.filter((file) => !isLongFile(file))
  return {
    files: [...short, ...promised, ...inPart, ...touchedRest],
    promised,
    part,
    inPart,
    touched: touchedRest,
  }
}

import { isLongFile } from './test-projects.ts'

/** Long files that every run of CI has, by the promise that they check. */
export const promises = {
  'every answer is the recorded one': 'test/recorded/recorded.long.test.ts',
  'the data and log of the last release start': 'test/e2e/release.long.test.ts',
} satisfies Record<string, string>

/** The other long files are split into this many parts, of which each day has one. */
export const partCount = 7

export interface Selection {
  /** Everything to run. */
  files: string[]
  promised: string[]
  /** Index of the day's part. */
  part: number
  inPart: string[]
  /** Long files that were touched and are in neither of the others. */
  touched: string[]
}

interface Choice {
  /** Every test file, as paths from the root. */
  files: readonly string[]
  time: Date
  /** Files that recent commits touch. */
  touched: readonly string[]
}

/** Returns what CI runs: all files that are not long, the promised ones, the day's part of the others, and touched ones. */
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

import type { Missing } from './provide.ts'

/** Returns the skipped tests, with reasons and remedies. In CI, a need that could have been provided is a failure. */
export function notTestedLines(
  missing: Missing[],
  { isCi }: { isCi: boolean },
): { lines: string[]; isFailure: boolean } {
  const isFailure = isCi && missing.some(({ couldBe }) => couldBe)
  const lines = missing.flatMap(({ name, tests, files, reason, remedy, couldBe }) => [
    `NOT TESTED: ${tests} (${name}; ${listed(files)})`,
    `    ${reason}${remedy ? `. What helps: ${remedy}` : ''}${isCi && couldBe ? '. With CI set it has to be here' : ''}`,
  ])
  return { lines, isFailure }
}

function listed(files: string[]): string {
  const [first = '', ...others] = files
  return others.length === 0 ? first : `${first} and ${others.length} more`
}

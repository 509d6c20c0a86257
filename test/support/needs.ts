import { describe, inject, it } from 'vitest'
import type { NeedName } from './needs/catalogue.ts'

export interface Needing {
  /** Whether all that was named is here. */
  areMet: boolean
  /** Those of vitest; without what was named they skip, and the end of the run says so with the reason. */
  describe: ReturnType<typeof describe.skipIf>
  it: ReturnType<typeof it.skipIf>
  test: ReturnType<typeof it.skipIf>
}

/**
 * What a test uses beside packages of npm. The names stand here as literals: what the chosen files name is installed
 * before any of them runs.
 */
export function needs(...names: NeedName[]): Needing {
  const missing = inject('missing')
  const skip = names.some((name) => missing.includes(name))
  return {
    areMet: !skip,
    describe: describe.skipIf(skip),
    it: it.skipIf(skip),
    test: it.skipIf(skip),
  }
}

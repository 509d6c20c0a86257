import { describe, inject, it } from 'vitest'
import type { NeedName } from './needs/catalogue.ts'

export interface Needing {
  /** True if all needs are available. */
  areMet: boolean
  /** Vitest functions that skip if a need is missing. The end of the run reports the reason. */
  describe: ReturnType<typeof describe.skipIf>
  it: ReturnType<typeof it.skipIf>
  test: ReturnType<typeof it.skipIf>
}

/**
 * Declares a test's needs other than npm packages. Pass literals, because needs are found in the source of the chosen
 * test files and installed before they run.
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

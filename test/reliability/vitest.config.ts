import path from 'node:path'
import { defineConfig } from 'vitest/config'

/** What `make faults` runs: one file after the other, as each breaks machines of its own. */
export default defineConfig({
  test: {
    root: path.resolve(import.meta.dirname, '../..'),
    globalSetup: ['test/support/needs/setup.ts'],
    include: ['test/reliability/*.faults.ts'],
    pool: 'threads',
    fileParallelism: false,
    testTimeout: 900_000,
    hookTimeout: 300_000,
  },
})

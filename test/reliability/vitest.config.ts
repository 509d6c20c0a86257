import path from 'node:path'
import { defineConfig } from 'vitest/config'

/** Config of `make faults`: files run one after another, because each breaks its own machines. */
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

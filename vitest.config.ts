import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/services.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    pool: 'forks',
    // Tests wait more than they compute, so a third of them fits on two cores.
    maxWorkers: 3,
    reporters: process.env.CI ? ['default'] : ['default'],
  },
})

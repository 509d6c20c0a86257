import { defineConfig } from 'vitest/config'
import {
  type ProjectName,
  projectNames,
  projectOf,
  testFiles,
} from './test/support/test-projects.ts'

const files = Map.groupBy(testFiles(), (file) => projectOf(file))
const except = (name: ProjectName) => projectNames.filter((other) => other !== name)
const allBut = (name: ProjectName) => except(name).flatMap((other) => files.get(other) ?? [])

const needs = 'test/support/needs/setup.ts'
/** What needs a server shares one Postgres and one Kafka with the other projects of the run. */
const withServers = { globalSetup: [needs, 'test/support/services.ts'] }

const long = { ...withServers, env: { TEST_ALL: '1' } }

const options = {
  unit: { globalSetup: [needs] },
  database: withServers,
  process: withServers,
  browser: withServers,
  long,
  // One at a time, after the others.
  faults: { ...long, maxWorkers: 1, sequence: { groupOrder: 1 } },
} satisfies Record<ProjectName, object>

export default defineConfig({
  test: {
    pool: 'threads',
    isolate: false,
    // Most of them wait for servers.
    maxWorkers: 3,
    // Long, because a slow machine is no failure: only what is broken waits for them.
    testTimeout: 90_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000 } },
    // The summary at the end has only the first line of an error: it says what was there instead.
    chaiConfig: { truncateThreshold: 400 },
    projects: projectNames.map((name) => ({
      extends: true,
      // A file that is added while vitest watches is in `unit` until it starts anew.
      test: {
        name,
        include: name === 'unit' ? ['test/**/*.test.ts'] : (files.get(name) ?? []),
        exclude: allBut(name),
        ...options[name],
      },
    })),
  },
})

import path from 'node:path'
import { describe, expect, test } from 'vitest'
import config from '../../vitest.config.ts'
import { projectOf, testFiles } from '../support/test-projects.ts'

interface Project {
  test: { name: string; include: string[]; exclude: string[] }
}

const isProject = (project: unknown): project is Project =>
  typeof project === 'object' && project !== null && 'test' in project

const projects = (config.test?.projects ?? []).filter(isProject).map((project) => project.test)

test('every test file is in exactly one project', () => {
  const homes = (file: string) =>
    projects.filter(({ include, exclude }) => {
      const isMeant = include.some((pattern) => path.matchesGlob(file, pattern))
      return isMeant && !exclude.includes(file)
    })
  const wrong = testFiles().filter((file) => homes(file).length !== 1)
  expect(wrong).toEqual([])
  expect(testFiles().length).toBeGreaterThan(200)
})

describe('the project of a file follows from what it imports', () => {
  const project = (text: string, file = 'test/a.test.ts') =>
    projectOf(file, (read) =>
      read === file ? text : (helpers[read] ?? expect.fail(`${read} was not to be read`)),
    )
  const helpers: Record<string, string> = {
    'test/support/world.ts': "import { createTestDatabase } from './postgres.ts'",
    'test/support/run.ts': "export { spawn } from 'node:child_process'",
    'test/support/postgres.ts': '',
    'test/support/chromium.ts': "import { execFile } from 'node:child_process'",
    'test/support/circle.ts': "import './circle.ts'",
  }

  test.each([
    ['unit', "import { x } from '../infra/ids.ts'\nimport './support/circle.ts'"],
    ['unit', "import type { World } from './support/world.ts'"],
    ['database', "import {\n  a,\n  type World,\n} from './support/world.ts'"],
    ['process', "import { world } from './support/world.ts'\nimport './support/run.ts'"],
    ['process', "const { spawn } = await import('node:child_process')"],
    ['process', "import { startEmbeddedPostgres } from '../infra/local/embedded-postgres.ts'"],
    ['browser', "import { openHeadless } from './support/chromium.ts'"],
  ])('%s: %s', (name, text) => {
    expect(project(text)).toBe(name)
  })

  test('faults/ is one project, and what calls itself long another', () => {
    expect(project("import './x'", 'test/faults/kill.test.ts')).toBe('faults')
    expect(project("import './x'", 'test/e2e/kill.long.test.ts')).toBe('long')
  })
})

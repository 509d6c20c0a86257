import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'

export const root = path.resolve(import.meta.dirname, '../..')

/**
 * Vitest projects. `make test` runs all except `long`, the files named so, and `faults`, which kill servers at random
 * or compare times and therefore run alone.
 */
export const projectNames = ['unit', 'database', 'process', 'browser', 'long', 'faults'] as const
export type ProjectName = (typeof projectNames)[number]

interface TestFile {
  /** Path from the project's root. */
  file: string
  /** Returns true if the file imports the module, directly or through other modules of test/. Ignores type imports. */
  uses(module: string): boolean
}

/** The first matching rule determines the project of a file. */
const rules: [ProjectName, (test: TestFile) => boolean][] = [
  ['faults', ({ file }) => isFaultFile(file)],
  ['long', ({ file }) => isLongFile(file)],
  ['browser', ({ uses }) => uses('test/support/chromium.ts')],
  ['process', ({ uses }) => uses('node:child_process') || uses('infra/local/embedded-postgres.ts')],
  ['database', ({ uses }) => uses('test/support/postgres.ts')],
  ['unit', () => true],
]

const isFaultFile = (file: string): boolean => file.startsWith('test/faults/')

/** Returns true if `make test` excludes the file, a path from the root. */
export const isLongFile = (file: string): boolean =>
  isFaultFile(file) || file.endsWith('.long.test.ts')

export type Read = (file: string) => string

/** Returns the project of a test file, derived from its imports. */
export function projectOf(file: string, read: Read = readFile): ProjectName {
  const modules = reach(file, read)
  const [name] =
    rules.find(([, meets]) => meets({ file, uses: (module) => modules.has(module) })) ?? []
  if (!name) throw new Error(`${file} belongs to no vitest project`)
  return name
}

/** Returns all test files, as paths from the root. */
export function testFiles(): string[] {
  return globSync('test/**/*.test.ts', { cwd: root }).sort()
}

export const readFile: Read = (file) => readFileSync(path.join(root, file), 'utf8')

/** Returns the imports of a file, including those of imported modules of test/. */
export function reach(file: string, read: Read, found = new Set<string>()): Set<string> {
  for (const module of imports(file, read(file))) {
    if (found.has(module)) continue
    found.add(module)
    if (/^test\/.*\.ts$/.test(module)) reach(module, read, found)
  }
  return found
}

function imports(file: string, text: string): string[] {
  const statements = text.matchAll(
    /^(?:import|export)\s+(?!type\b)(?:[^'";]*?\sfrom\s+)?'([^']+)'|\bimport\('([^']+)'\)/gm,
  )
  return [...statements].map(([, fixed, dynamic]) => {
    const module = fixed ?? dynamic ?? ''
    return module.startsWith('.') ? path.posix.join(path.posix.dirname(file), module) : module
  })
}

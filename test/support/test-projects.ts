import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'

export const root = path.resolve(import.meta.dirname, '../..')

/**
 * The vitest projects. `make test` runs all but two: `long` are the files that call themselves so, and `faults` kill
 * servers at random or compare times, so that they have the machine to themselves.
 */
export const projectNames = ['unit', 'database', 'process', 'browser', 'long', 'faults'] as const
export type ProjectName = (typeof projectNames)[number]

interface TestFile {
  /** From the project's root. */
  file: string
  /** Whether it imports the module, itself or through other modules of test/. Types do not count. */
  uses(module: string): boolean
}

/** The first rule that a file meets is its project: each file has exactly one. */
const rules: [ProjectName, (test: TestFile) => boolean][] = [
  ['faults', ({ file }) => isFaultFile(file)],
  ['long', ({ file }) => isLongFile(file)],
  ['browser', ({ uses }) => uses('test/support/chromium.ts')],
  ['process', ({ uses }) => uses('node:child_process') || uses('infra/local/embedded-postgres.ts')],
  ['database', ({ uses }) => uses('test/support/postgres.ts')],
  ['unit', () => true],
]

const isFaultFile = (file: string): boolean => file.startsWith('test/faults/')

/** Returns whether `make test` leaves the file out; a path from the root. */
export const isLongFile = (file: string): boolean =>
  isFaultFile(file) || file.endsWith('.long.test.ts')

export type Read = (file: string) => string

/** The project of a test file, which follows from what it imports. */
export function projectOf(file: string, read: Read = readFile): ProjectName {
  const modules = reach(file, read)
  const [name] =
    rules.find(([, meets]) => meets({ file, uses: (module) => modules.has(module) })) ?? []
  if (!name) throw new Error(`${file} belongs to no vitest project`)
  return name
}

/** Every test file, as paths from the root. */
export function testFiles(): string[] {
  return globSync('test/**/*.test.ts', { cwd: root }).sort()
}

export const readFile: Read = (file) => readFileSync(path.join(root, file), 'utf8')

/** What a file imports, and what the modules of test/ among it import. */
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

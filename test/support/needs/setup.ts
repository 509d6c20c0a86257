import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { TestProject } from 'vitest/node'
import { root } from '../test-projects.ts'
import { catalogue, type NeedName } from './catalogue.ts'
import { filesByNeed } from './chosen.ts'
import { type DebianMachine, debianPackages } from './packages.ts'
import { hasProgram, runCommand } from './programs.ts'
import { type Provided, provideAll } from './provide.ts'
import { notTestedLines } from './summary.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Needs of the chosen tests that are missing; see `needs`. */
    missing: string[]
  }
}

interface Shared {
  provided: Promise<Provided>
  users: number
}

declare global {
  // Global, because each project loads this file again.
  var tidegateTestNeeds: Shared | undefined
}

/** Provides the needs of the chosen tests, once for all projects. The teardown reports missing ones. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  globalThis.tidegateTestNeeds ??= { provided: provide(project.vitest.state.getPaths()), users: 0 }
  const run = globalThis.tidegateTestNeeds
  run.users++
  const { missing, stop } = await run.provided
  project.provide(
    'missing',
    missing.map(({ name }) => name),
  )
  return async () => {
    if (--run.users > 0) return
    await stop()
    await report(await run.provided)
  }
}

/** Returns true if a chosen test needs it and it is available. */
export async function isProvided(name: NeedName): Promise<boolean> {
  const provided = await globalThis.tidegateTestNeeds?.provided
  return provided?.met.includes(name) ?? false
}

function provide(paths: string[]): Promise<Provided> {
  const files = filesByNeed(paths.map((file) => path.relative(root, file)))
  const isFresh = process.env.FRESH === '1'
  return provideAll({ catalogue, files, packages: debianPackages(thisMachine), isFresh })
}

const thisMachine: DebianMachine = {
  folder: '/var/lib/tidegate-tests',
  hasAptGet: hasProgram('apt-get'),
  uid: process.getuid?.(),
  policy: '/usr/sbin/policy-rc.d',
  run: runCommand,
  say: console.log,
}

/** Prints the skipped tests at the end. In CI, fails the run if a need could have been provided. */
async function report({ missing }: Provided): Promise<void> {
  const isCi = Boolean(process.env.CI)
  const { lines, isFailure } = notTestedLines(missing, { isCi })
  if (isFailure) process.exitCode = 1
  const file = process.env.TEST_NOT_TESTED
  if (file) await writeFile(file, JSON.stringify(missing))
  else if (lines.length > 0) console.log(`\n${lines.join('\n')}`)
}

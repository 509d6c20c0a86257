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
    /** What the chosen tests need and this run does not have: see needs(). */
    missing: string[]
  }
}

interface Shared {
  provided: Promise<Provided>
  users: number
}

declare global {
  // Each project loads this file anew: what they share is kept outside of it.
  var tidegateTestNeeds: Shared | undefined
}

/** Brings what the chosen tests need, once for all projects and before any worker; the end says what there was not. */
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

/** Whether a chosen test needs it, and it is here; for what is started after this. */
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

/** As the last that is seen; with CI set, what could have been there fails the run. */
async function report({ missing }: Provided): Promise<void> {
  const isCi = Boolean(process.env.CI)
  const { lines, isFailure } = notTestedLines(missing, { isCi })
  if (isFailure) process.exitCode = 1
  const file = process.env.TEST_NOT_TESTED
  if (file) await writeFile(file, JSON.stringify(missing))
  else if (lines.length > 0) console.log(`\n${lines.join('\n')}`)
}

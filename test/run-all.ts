import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import type { Missing } from './support/needs/provide.ts'
import {
  filesToRepeat,
  flakyFiles,
  flakyLines,
  type Report,
  type Run,
  summary,
  type WholeRun,
} from './support/run-summary.ts'
import { projectOf, root } from './support/test-projects.ts'

// Runs every test, the long runs too, and ends with what a reader has to know. A long run that failed is run once more
// alone: that it passes then does not lose a landing, and it is not forgotten either.

const flakyFolder = path.join(root, '.cache/flaky')

async function runTests(folder: string, files: string[], env: Record<string, string> = {}): Promise<Run> {
  const file = path.join(folder, 'report.json')
  await rm(file, { force: true })
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`]
  const { code, output } = await vitest([...files, ...reporters], env)
  return { code, output, report: await readJson<Report>(file) }
}

/** Runs vitest, shows what it prints, and keeps it. */
async function vitest(args: string[], env: Record<string, string>): Promise<Omit<Run, 'report'>> {
  const child = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...args], {
    cwd: root,
    env: { ...process.env, TEST_ALL: '1', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const { promise: ended, resolve } = Promise.withResolvers<number | null>()
  child.once('close', resolve)
  let output = ''
  for await (const part of child.stdout.setEncoding('utf8')) {
    process.stdout.write(part)
    output += stripVTControlCharacters(part)
  }
  return { code: await ended, output }
}

const readJson = <T>(file: string): Promise<T | undefined> =>
  readFile(file, 'utf8').then(
    (text): T => JSON.parse(text),
    () => undefined,
  )

const isLongRun = (file: string): boolean => ['long', 'faults'].includes(projectOf(path.relative(root, file)))

/** What is flaky stays in a file of its own for each time; says of all that are there. */
async function keepFlaky(whole: WholeRun): Promise<string[]> {
  await mkdir(flakyFolder, { recursive: true })
  const time = new Date().toISOString().replaceAll(':', '-')
  for (const file of flakyFiles(whole)) {
    const name = `${path.basename(file.name, '.ts')} ${time}.log`
    await writeFile(path.join(flakyFolder, name), `${flakyLines(file, whole.run).join('\n')}\n`)
    // An annotation of GitHub's.
    if (process.env.GITHUB_ACTIONS) console.log(`::warning file=${path.relative(root, file.name)}::flaky`)
  }
  const kept = (await readdir(flakyFolder)).sort()
  return kept.length > 0
    ? [`Flaky in this clone so far, until each cause is found (.cache/flaky):`, ...kept]
    : []
}

const folder = await mkdtemp(path.join(tmpdir(), 'tidegate-reports-'))
try {
  const notTested = path.join(folder, 'not-tested.json')
  const run = await runTests(folder, [], { TEST_NOT_TESTED: notTested })
  const missing = (await readJson<Missing[]>(notTested)) ?? []
  const again = new Map<string, Run>()
  for (const file of filesToRepeat(run, isLongRun)) {
    console.log(`\nOnce more, alone: ${file}`)
    again.set(file, await runTests(folder, [file], { FRESH: '' }))
  }
  const whole = { run, again, missing, isCi: Boolean(process.env.CI) }
  const kept = await keepFlaky(whole)
  const { lines, isGood } = summary(whole)
  console.log(`\n${[...kept, ...lines].join('\n')}`)
  process.exitCode = isGood ? 0 : 1
} finally {
  await rm(folder, { recursive: true, force: true })
}

import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { partCount, selectFiles } from './support/ci-files.ts'
import type { Missing } from './support/needs/provide.ts'
import type { RunReport } from './support/run-report.ts'
import {
  filesToRepeat,
  flakyFiles,
  flakyLines,
  type Run,
  summary,
  type WholeRun,
} from './support/run-summary.ts'
import { root, testFiles } from './support/test-projects.ts'

// Runs every test, or CI's selection with --ci, and ends with what a reader has to know. A long file that failed is
// repeated alone: if it passes then, it doesn't lose a landing, and it is reported as flaky.

const flakyFolder = path.join(root, '.cache/flaky')

async function runTests(
  folder: string,
  files: string[],
  env: Record<string, string> = {},
): Promise<Run> {
  const report = path.join(folder, 'report.json')
  await rm(report, { force: true })
  const reporters = ['--reporter=default', '--reporter=./test/support/run-report.ts']
  const args = ['node_modules/vitest/vitest.mjs', 'run', ...files, ...reporters]
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: { ...process.env, ...env, TEST_REPORT: report },
    stdio: 'inherit',
  })
  const [code] = await once(child, 'exit')
  return { code, report: await readJson<RunReport>(report) }
}

const readJson = <T>(file: string): Promise<T | undefined> =>
  readFile(file, 'utf8').then(
    (text): T => JSON.parse(text),
    () => undefined,
  )

/** Returns CI's files, and a line that names what was chosen. */
function chooseForCi(): { files: string[]; chosen: string } {
  const touched = touchedToday()
  const selection = selectFiles({ files: testFiles(), time: new Date(), touched: touched ?? [] })
  const { files, promised, part, inPart } = selection
  const chosen = [
    `Of the long files: ${promised.length} for promises`,
    `part ${part + 1} of ${partCount} of the others (${inPart.length})`,
    touched
      ? `${selection.touched.length} more that commits of the last day touch`
      : 'none by commits of the last day, because this clone has no history (git fetch --unshallow)',
  ]
  return { files, chosen: chosen.join(', ') }
}

/** Returns the paths that commits of the last day touch; undefined without a full history. */
function touchedToday(): string[] | undefined {
  const git = (...args: string[]) => spawnSync('git', args, { cwd: root, encoding: 'utf8' })
  if (git('rev-parse', '--is-shallow-repository').stdout?.trim() !== 'false') return undefined
  const { stdout } = git(
    'log',
    '--since=1.day',
    '--diff-merges=first-parent',
    '--name-only',
    '--format=',
  )
  return stdout.split('\n').filter(Boolean)
}

/** Stores the output of each flaky file with the time, and returns a line for every stored file. */
async function keepFlaky(whole: WholeRun): Promise<string[]> {
  await mkdir(flakyFolder, { recursive: true })
  const time = new Date().toISOString().replaceAll(':', '-')
  for (const file of flakyFiles(whole)) {
    const name = `${path.basename(file.file, '.ts')} ${time}.log`
    await writeFile(path.join(flakyFolder, name), `${flakyLines(file).join('\n')}\n`)
    // An annotation of GitHub's.
    if (process.env.GITHUB_ACTIONS) console.log(`::warning file=${file.file}::flaky`)
  }
  const kept = (await readdir(flakyFolder)).sort()
  return kept.length > 0
    ? [`Flaky in this clone so far, until each cause is found (.cache/flaky):`, ...kept]
    : []
}

const folder = await mkdtemp(path.join(tmpdir(), 'tidegate-reports-'))
try {
  const { files, chosen } = process.argv.includes('--ci')
    ? chooseForCi()
    : { files: [], chosen: undefined }
  if (chosen) console.log(chosen)
  const all = chosen ? {} : { TEST_ALL: '1' }
  const notTested = path.join(folder, 'not-tested.json')
  const run = await runTests(folder, files, { ...all, TEST_NOT_TESTED: notTested })
  const missing = (await readJson<Missing[]>(notTested)) ?? []
  const again = new Map<string, Run>()
  for (const file of filesToRepeat(run)) {
    console.log(`\nOnce more, alone: ${file}`)
    again.set(file, await runTests(folder, [file], { ...all, FRESH: '' }))
  }
  const whole = { run, again, missing, isCi: Boolean(process.env.CI) }
  const kept = await keepFlaky(whole)
  const { lines, isGood } = summary(whole)
  console.log(`\n${[...kept, ...(chosen ? [chosen] : []), ...lines].join('\n')}`)
  process.exitCode = isGood ? 0 : 1
} finally {
  await rm(folder, { recursive: true, force: true })
}

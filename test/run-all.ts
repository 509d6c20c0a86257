import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { type Report, type Shard, summary } from './support/run-summary.ts'

/** Runs every test, the long runs too, in shards one after the other, and ends with what a reader has to know. */
const shards = Number(process.env.TEST_SHARDS ?? 4)
const root = path.resolve(import.meta.dirname, '..')

async function runShard(folder: string, index: number): Promise<Shard> {
  const name = `shard ${index} of ${shards}`
  const file = path.join(folder, `${index}.json`)
  console.log(`\n${name}`)
  // One file at a time: what races, or has a time limit, has the machine to itself.
  const options = [`--shard=${index}/${shards}`, '--maxWorkers=1', '--reporter=default', '--reporter=json']
  const { code, output } = await vitest([...options, `--outputFile.json=${file}`])
  const report = await readFile(file, 'utf8').then(
    (text): Report => JSON.parse(text),
    () => undefined,
  )
  return { name, code, output, report }
}

/** Runs vitest, shows what it prints, and keeps it. */
async function vitest(args: string[]): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...args], {
    cwd: root,
    env: { ...process.env, TEST_ALL: '1' },
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

const folder = await mkdtemp(path.join(tmpdir(), 'tidegate-reports-'))
try {
  const ran: Shard[] = []
  for (let index = 1; index <= shards; index++) ran.push(await runShard(folder, index))
  const { lines, isGood } = summary(ran)
  console.log(`\n${lines.join('\n')}`)
  process.exitCode = isGood ? 0 : 1
} finally {
  await rm(folder, { recursive: true, force: true })
}

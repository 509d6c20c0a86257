import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect } from 'vitest'
import { buildNetwork, type Docker, provideBases, requireDocker } from '../support/docker.ts'
import { eventually } from '../support/eventually.ts'
import { needs } from '../support/needs.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { root } from '../support/test-projects.ts'

const { describe, it } = needs('docker')

const dockerfile = path.join(root, 'infra/deploy/image/Dockerfile')
const unique = randomBytes(6).toString('hex')
const image = `tidegate:test-${unique}`
const [container, volume] = [`tidegate-${unique}`, `tidegate-${unique}`]
const slow = { timeoutMs: 60_000, intervalMs: 200 }

/** Returns build secrets with which npm reaches the registry on this machine. */
async function npmSecrets(folder: string): Promise<string[]> {
  const config = async (name: string) =>
    (await promisify(execFile)('npm', ['config', 'get', name], { cwd: folder })).stdout.trim()
  const [registry, authority] = [await config('registry'), await config('cafile')]
  const hasAuthority = authority !== '' && authority !== 'null'
  const npmrc = [`registry=${registry}`, ...(hasAuthority ? ['cafile=/run/secrets/ca.pem'] : [])]
  const file = path.join(folder, 'npmrc')
  await writeFile(file, `${npmrc.join('\n')}\n`)
  const secrets = [`id=npmrc,src=${file}`, ...(hasAuthority ? [`id=ca.pem,src=${authority}`] : [])]
  return secrets.flatMap((secret) => ['--secret', secret])
}

describe('the image', () => {
  let docker: Docker
  const inContainer = (...args: string[]) => docker('exec', container, 'tidegate', ...args)
  let made: string[] = []
  const folder = temporaryFolder('image')

  beforeAll(async () => {
    docker = await requireDocker()
    const bases = (await readFile(dockerfile, 'utf8')).matchAll(/^FROM (\S+)/gm)
    const names = [...bases].map(([, name]) => String(name))
    made = await provideBases(docker, names)
    const options = [...buildNetwork(), ...(await npmSecrets(folder))]
    await docker('build', '--file', dockerfile, '--tag', image, ...options, root)
  }, 600_000)

  afterAll(async () => {
    await docker('rm', '--force', '--volumes', container).catch(() => '')
    await docker('volume', 'rm', volume).catch(() => '')
    await docker('image', 'rm', '--force', image, ...made).catch(() => '')
  }, 60_000)

  it('has what a server needs and no more', async () => {
    const shell = (script: string) =>
      docker('run', '--rm', '--entrypoint', 'sh', image, '-c', script)
    expect(await shell('id -u; id -g; pwd')).toBe('10001\n10001\n/app')
    expect(await docker('image', 'inspect', '--format', '{{.Config.User}}', image)).toBe(
      '10001:10001',
    )
    expect(await shell('node --version')).toBe(process.version)
    const absent = 'test .git .env* node_modules/vitest'
    expect(await shell(`command -v npm yarn; ls -d ${absent} 2>/dev/null; true`)).toBe('')
    const find = (...where: string[]) =>
      docker('run', '--rm', '--user', '0', '--entrypoint', '/usr/bin/env', image, 'find', ...where)
    expect(await find('/', '-xdev', '-user', '10001')).toBe('/data')
    expect(await find('/app', '!', '-perm', '-004')).toBe('')
    const layers = await docker('history', '--no-trunc', '--format', '{{.CreatedBy}}', image)
    expect(layers).not.toContain('registry')
  })

  it('says in one line why it does not start without settings', async () => {
    const failure = await docker('run', '--rm', '--read-only', image).catch((error: Error) => error)
    const { code, stdout }: { code?: unknown; stdout?: unknown } = Object(failure)
    expect(code).toBe(1)
    expect(JSON.parse(String(stdout))).toMatchObject({
      level: 'fatal',
      msg: expect.stringContaining('DATABASE_URL'),
    })
  })

  it('scores a session on a volume, and has it after it was killed', async () => {
    const locked = ['--read-only', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges']
    const store = ['--volume', `${volume}:/data`]
    await docker('run', '--detach', '--name', container, ...locked, ...store, image, 'dev')
    await becomesHealthy()
    await inContainer('org', 'create', '--name', 'Acme', '--slug', 'acme')
    const key = async (...options: string[]) => {
      const named = ['acme', '--name', 'Test', '--json']
      const printed = await inContainer('keys', 'create', ...named, ...options)
      const { data }: { data: { revealed_key: string } } = JSON.parse(printed)
      return data.revealed_key
    }
    const [secretKey, publishableKey] = [
      await key('--type', 'secret', '--scopes', '*'),
      await key('--type', 'publishable'),
    ]
    const server = ['--base-url', 'http://127.0.0.1:8787']
    const keys = ['--publishable-key', publishableKey, '--secret-key', secretKey]
    const load = ['--sessions', '2', '--clients', 'web=1', '--verify', '--json']
    const report = await inContainer('simulate', ...server, ...keys, ...load)
    expect(JSON.parse(report)).toMatchObject({ completed: 2, failed: 0 })
    const before = await readSessions(secretKey)
    expect(before).toHaveLength(2)

    await docker('kill', container)
    await docker('start', container)
    await becomesHealthy()
    expect(await readSessions(secretKey)).toEqual(before)
  }, 180_000)

  it('ends with 0 within the time that compose.yaml gives it', async () => {
    await docker('stop', '--time', '30', container)
    expect(await stateOf('{{.State.Status}} {{.State.ExitCode}}')).toBe('exited 0')
  }, 60_000)

  const stateOf = (format: string) => docker('inspect', '--format', format, container)
  const becomesHealthy = () =>
    eventually(async () => {
      const state = await stateOf('{{.State.Status}} {{.State.Health.Status}}')
      expect(state, await docker('logs', '--tail', '5', container)).toBe('running healthy')
    }, slow)

  async function readSessions(secretKey: string): Promise<string[]> {
    const script = `const answer = await fetch('http://127.0.0.1:8787/v1/sessions', { headers: { authorization: 'Bearer ${secretKey}' } })
      console.log(await answer.text())`
    const printed = await docker('exec', container, 'node', '--input-type=module', '--eval', script)
    const { data }: { data: { id: string }[] } = JSON.parse(printed)
    return data.map(({ id }) => id)
  }
})

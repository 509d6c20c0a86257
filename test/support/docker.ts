import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { aptInstall } from './packages.ts'
import { root } from './test-projects.ts'

const run = promisify(execFile)
const maxBuffer = 64 * 1024 * 1024

/** Runs docker; resolves with its standard output, trimmed. */
export type Docker = (...args: string[]) => Promise<string>

/**
 * The first docker of PATH that has a daemon and can build with BuildKit: those from 23 on need the plugin buildx.
 * undefined where there is none.
 */
export async function findDocker(): Promise<Docker | undefined> {
  for (const folder of (process.env.PATH ?? '').split(':')) {
    const file = path.join(folder, 'docker')
    if (existsSync(file) && (await canBuild(file))) return dockerAt(file)
  }
  return undefined
}

function dockerAt(file: string): Docker {
  const env = { ...process.env, DOCKER_BUILDKIT: '1' }
  return async (...args) => (await run(file, args, { env, maxBuffer })).stdout.trim()
}

async function canBuild(file: string): Promise<boolean> {
  const asked = run(file, ['version', '--format', '{{.Client.Version}}'], { timeout: 5000 })
  const version = await asked.then(
    ({ stdout }) => Number.parseInt(stdout, 10),
    () => undefined,
  )
  if (version === undefined) return false
  return version < 23 || succeeds(file, ['buildx', 'version'])
}

const succeeds = (file: string, args: string[]): Promise<boolean> =>
  run(file, args).then(
    () => true,
    () => false,
  )

/**
 * Sees to the images that a Dockerfile starts from. What is not here and cannot be pulled is made of Debian's packages,
 * and of the Node and npm of this machine. Returns what was made, which the caller removes.
 */
export async function provideBases(docker: Docker, names: string[]): Promise<string[]> {
  const made: string[] = []
  for (const name of names) {
    const isThere = await docker('image', 'inspect', name)
      .catch(() => docker('pull', '--quiet', name))
      .catch(() => '')
    if (isThere !== '') continue
    await makeBase(docker, name)
    made.push(name)
  }
  return made
}

async function makeBase(docker: Docker, name: string): Promise<void> {
  const suite = /\b(bookworm|trixie)\b/.exec(name)?.[0]
  if (!suite) throw new Error(`${name} cannot be pulled, and its Debian is not known`)
  const folder = await mkdtemp(path.join(tmpdir(), 'tidegate-base-'))
  try {
    if (!(await succeeds('debootstrap', ['--version']))) await aptInstall('debootstrap')
    await run('debootstrap', ['--variant=minbase', suite, folder], { maxBuffer })
    if (name.startsWith('node:')) await addNode(folder)
    const archive = `${folder}.tar`
    await run('tar', ['-C', folder, '-cf', archive, '.'])
    await docker('import', '--change', 'ENV PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', archive, name)
    await rm(archive)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function addNode(folder: string): Promise<void> {
  const local = path.join(folder, 'usr/local')
  const { stdout } = await run('npm', ['root', '--global'])
  await cp(path.join(root, 'node_modules/node/bin/node'), path.join(local, 'bin/node'))
  await cp(path.join(stdout.trim(), 'npm'), path.join(local, 'lib/node_modules/npm'), { recursive: true })
  await symlink('../lib/node_modules/npm/bin/npm-cli.js', path.join(local, 'bin/npm'))
}

import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const maxBuffer = 64 * 1024 * 1024

/** Runs docker. Resolves with its trimmed standard output. */
export type Docker = (...args: string[]) => Promise<string>

/**
 * Finds the first docker in PATH with a daemon and BuildKit, which needs the plugin buildx since version 23. The daemon
 * is the machine's, or one started by this test run.
 */
export async function findDocker(): Promise<Docker | undefined> {
  for (const folder of (process.env.PATH ?? '').split(':')) {
    const file = path.join(folder, 'docker')
    if (existsSync(file) && (await canBuild(file))) return dockerAt(file)
  }
  return undefined
}

/** Returns the same, for a test that declared the need. */
export async function requireDocker(): Promise<Docker> {
  const docker = await findDocker()
  if (!docker) throw new Error('This needs a docker that has a daemon and builds with BuildKit')
  return docker
}

const environment = (): NodeJS.ProcessEnv => {
  const host = process.env.TEST_DOCKER_HOST
  return { ...process.env, DOCKER_BUILDKIT: '1', ...(host && { DOCKER_HOST: host }) }
}

/** Options with which a build can reach registries. Containers of the test run's daemon have no other network. */
export const buildNetwork = (): string[] =>
  process.env.TEST_DOCKER_HOST ? ['--network', 'host'] : []

function dockerAt(file: string): Docker {
  return async (...args) => (await run(file, args, { env: environment(), maxBuffer })).stdout.trim()
}

async function canBuild(file: string): Promise<boolean> {
  const env = environment()
  // Asks for the server's version, too, so that the command fails without a server.
  const asked = run(file, ['version', '--format', '{{.Client.Version}} {{.Server.Version}}'], {
    env,
    timeout: 5000,
  })
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
 * Provides the base images of a Dockerfile. Images that cannot be pulled are built from Debian packages, the Node that
 * runs this, and this machine's npm. Returns the built images, which the caller removes.
 */
export async function provideBases(docker: Docker, names: string[]): Promise<string[]> {
  const made: string[] = []
  const systems = new Map<string, string>()
  const folder = await mkdtemp(path.join(tmpdir(), 'tidegate-base-'))
  try {
    // Images without Node come first, because Node is added to them.
    for (const name of names.toSorted(
      (one, other) => Number(hasNode(one)) - Number(hasNode(other)),
    )) {
      const isThere = await docker('image', 'inspect', name)
        .catch(() => docker('pull', '--quiet', name))
        .catch(() => '')
      if (isThere !== '') continue
      const suite = suiteOf(name)
      const system = systems.get(suite) ?? (await debootstrapped(suite, folder))
      systems.set(suite, system)
      await importBase(docker, { name, system })
      made.push(name)
    }
    return made
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const hasNode = (name: string): boolean => name.startsWith('node:')

function suiteOf(name: string): string {
  const [suite] = /\b(bookworm|trixie)\b/.exec(name) ?? []
  if (!suite) throw new Error(`${name} cannot be pulled, and its Debian is not known`)
  return suite
}

async function debootstrapped(suite: string, within: string): Promise<string> {
  const folder = path.join(within, suite)
  await run('debootstrap', ['--variant=minbase', suite, folder], { maxBuffer })
  return folder
}

async function importBase(
  docker: Docker,
  { name, system }: { name: string; system: string },
): Promise<void> {
  if (hasNode(name)) await addNode(system)
  const archive = `${system}.tar`
  await run('tar', ['-C', system, '-cf', archive, '.'])
  await docker(
    'import',
    '--change',
    'ENV PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    archive,
    name,
  )
  await rm(archive)
}

async function addNode(folder: string): Promise<void> {
  const local = path.join(folder, 'usr/local')
  const { stdout } = await run('npm', ['root', '--global'])
  await cp(process.execPath, path.join(local, 'bin/node'))
  await cp(path.join(stdout.trim(), 'npm'), path.join(local, 'lib/node_modules/npm'), {
    recursive: true,
  })
  await symlink('../lib/node_modules/npm/bin/npm-cli.js', path.join(local, 'bin/npm'))
  // Unlike Node's images, Debian's lack the library.
  const { stdout: libraries } = await run('ldd', [process.execPath])
  const [, atomic] = /libatomic\.so\.1 => \/(?:usr\/)?(\S+)/.exec(libraries) ?? []
  if (atomic)
    await cp(path.join('/', atomic), path.join(folder, 'usr', atomic), { dereference: true })
}

import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'

export interface Packages {
  /** Returns the reason why nothing can be installed; undefined if it can. */
  refusal(): string | undefined
  /** Installs missing packages. Rejects with the output of apt-get. */
  install(names: string[], why: string): Promise<void>
  /** Purges packages that `install` added. */
  purge(): Promise<void>
}

export interface DebianMachine {
  /** Folder that records the packages installed by tests of any clone. */
  folder: string
  hasAptGet: boolean
  uid: number | undefined
  /** Path of Debian's `policy-rc.d`, which decides whether an installed server is started. */
  policy: string
  run(command: string, args: string[]): Promise<string>
  say(line: string): void
}

/** Installs Debian packages. Ignores names that this release lacks. */
export function debianPackages(machine: DebianMachine): Packages {
  const { folder, hasAptGet, uid, policy, run, say } = machine
  const marker = path.join(folder, 'installed')
  // Waits for other test runs and other uses of apt-get.
  const apt = (...args: string[]) =>
    run('flock', [path.join(folder, 'lock'), 'apt-get', '-q', ...aptOptions, ...args])

  async function installed(): Promise<string[]> {
    const format = `\${binary:Package} \${db:Status-Status}\n`
    const lines = (await run('dpkg-query', ['-W', '-f', format])).split('\n')
    return lines.flatMap((line) => (line.endsWith(' installed') ? (line.split(' ')[0] ?? '') : []))
  }

  async function known(names: string[]): Promise<string[]> {
    const shown = await run('apt-cache', ['--no-all-versions', 'show', ...names]).catch(
      (error: { stdout?: string }) => error.stdout ?? '',
    )
    const found = new Set([...shown.matchAll(/^Package: (\S+)$/gm)].map(([, name]) => name))
    return names.filter((name) => found.has(name))
  }

  async function mark(before: string[]): Promise<void> {
    const came = (await installed()).filter((name) => !before.includes(name))
    await writeFile(marker, [...new Set([...(await linesOf(marker)), ...came, ''])].join('\n'))
  }

  return {
    refusal() {
      if (!hasAptGet) return 'there is no apt-get'
      return uid === 0 ? undefined : 'only root may install packages'
    },
    async install(names, why) {
      const before = await installed()
      if (names.every((name) => before.includes(name))) return
      await mkdir(folder, { recursive: true })
      // Without network access, earlier package lists are used.
      const failure = await apt('update').then(() => undefined, messageOf)
      const wanted = (await known(names)).filter((name) => !before.includes(name))
      if (wanted.length === 0) throw new Error(failure ?? `apt-get knows no ${names.join(' ')}`)
      say(`Tests install Debian packages, for ${why}: apt-get install ${wanted.join(' ')}`)
      const install = () => apt('install', '-y', '--no-install-recommends', ...wanted)
      await withoutServices(policy, install).finally(() => mark(before))
    },
    async purge() {
      const came = await linesOf(marker)
      if (came.length === 0) return
      const here = await installed()
      const marked = came.filter((name) => here.includes(name))
      if (marked.length === 0) return
      say(`FRESH=1 purges what tests installed on this machine: ${marked.join(' ')}`)
      // Unlike apt-get, dpkg refuses if another package depends on one of them.
      await run('dpkg', ['--purge', ...marked]).then(
        () => rm(marker),
        (error) => say(`It stays: ${messageOf(error)}`),
      )
    },
  }
}

const aptOptions = ['-o', 'DPkg::Lock::Timeout=600']

/** Runs `work` with a `policy` that keeps Debian from starting installed servers. */
async function withoutServices<T>(policy: string, work: () => Promise<T>): Promise<T> {
  const script = `#!/bin/sh\nif kill -0 ${process.pid} 2>/dev/null; then exit 101; fi\n`
  const isOurs = await writeFile(policy, script, { flag: 'wx' }).then(
    () => true,
    () => false,
  )
  if (isOurs) await chmod(policy, 0o755)
  try {
    return await work()
  } finally {
    if (isOurs) await rm(policy)
  }
}

/** Returns the output of apt-get or Maven in a line or two, without the command. */
export function messageOf(error: unknown): string {
  const {
    stderr = '',
    stdout = '',
    message = '',
  }: Record<string, string | undefined> = Object(error)
  const said = `${stderr}\n${stdout}`.split('\n').filter((line) => /^(E: |\[ERROR\] )/.test(line))
  const lines = said.length > 0 ? said : message.split('\n')
  return lines.slice(0, 3).join(' ').trim()
}

const linesOf = async (file: string): Promise<string[]> =>
  (await readFile(file, 'utf8').catch(() => '')).split('\n').filter(Boolean)

import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'

export interface Packages {
  /** Why nothing can be installed here; undefined where it can. */
  refusal(): string | undefined
  /** Installs what is missing; rejects with what apt-get says. */
  install(names: string[], why: string): Promise<void>
  /** Purges what `install` brought, and nothing that was there before. */
  purge(): Promise<void>
}

export interface DebianMachine {
  /** Where it is kept what tests installed, whichever clone they ran in. */
  folder: string
  hasAptGet: boolean
  uid: number | undefined
  /** What Debian asks whether it may start a server that it has installed. */
  policy: string
  run(command: string, args: string[]): Promise<string>
  say(line: string): void
}

/** Debian's packages. The names are those of one release or another: what a release does not have is left out. */
export function debianPackages(machine: DebianMachine): Packages {
  const { folder, hasAptGet, uid, policy, run, say } = machine
  const marker = path.join(folder, 'installed')
  // Two runs of tests install one after the other; whoever else uses apt-get is waited for.
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
      // Lists of before serve where there is no way to newer ones.
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
      // Other than apt-get, it refuses where something that came otherwise needs one of them.
      await run('dpkg', ['--purge', ...marked]).then(
        () => rm(marker),
        (error) => say(`It stays: ${messageOf(error)}`),
      )
    },
  }
}

const aptOptions = ['-o', 'DPkg::Lock::Timeout=600']

/** Debian starts a server where it installs one, unless `policy` says no: it does while this process lives. */
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

/** In a line or two: what apt-get or Maven said, rather than the command. */
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

import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Lock, lockFile } from './lock.ts'

export interface Packages {
  /** Why nothing can be installed here; undefined where it can. */
  refusal(): string | undefined
  /** Installs what is missing, one run after the other; rejects with what apt-get says. */
  install(names: string[], why: string): Promise<void>
  /** Purges what `install` brought, and nothing that was there before. */
  purge(): Promise<void>
  /** Nothing is purged while it is held. Undefined where nothing was installed. */
  use(): Promise<Lock | undefined>
}

export interface DebianMachine {
  /** Where it is kept what tests installed, whichever clone they ran in. */
  folder: string
  hasAptGet: boolean
  uid: number | undefined
  /** What Debian asks whether it may start a server that it has installed. */
  policy: string
  run(command: string, args: string[]): Promise<string>
  lock: typeof lockFile
  say(line: string): void
}

/** For whoever else uses apt-get, as Debian's unattended upgrades do. */
const aptWaitsSeconds = 600

/** Debian's packages. The names are those of one release or another: what a release does not have is left out. */
export function debianPackages({
  folder,
  hasAptGet,
  uid,
  policy,
  run,
  lock,
  say,
}: DebianMachine): Packages {
  const marker = path.join(folder, 'installed')
  const underWay = path.join(folder, 'under-way')
  const inUse = path.join(folder, 'in-use')
  const apt = (...args: string[]) =>
    run('apt-get', ['-q', '-o', `DPkg::Lock::Timeout=${aptWaitsSeconds}`, ...args])

  async function installed(): Promise<string[]> {
    const format = `\${binary:Package} \${db:Status-Status}\n`
    const lines = (await run('dpkg-query', ['-W', '-f', format])).split('\n')
    return lines
      .filter((line) => line.endsWith(' installed'))
      .map((line) => line.split(' ')[0] ?? '')
  }

  /** Marks what has come since the last installation began, also where that was broken off. */
  async function settle(): Promise<void> {
    const before = await linesOf(underWay)
    if (before.length === 0) return
    const came = (await installed()).filter((name) => !before.includes(name))
    await writeFile(marker, [...new Set([...(await linesOf(marker)), ...came, ''])].join('\n'))
    await rm(underWay)
  }

  async function alone<T>(work: () => Promise<T>): Promise<T> {
    await mkdir(folder, { recursive: true })
    const held = await lock(path.join(folder, 'lock'))
    try {
      await settle()
      return await work()
    } finally {
      await held?.release()
    }
  }

  async function installMissing(names: string[], why: string): Promise<void> {
    const before = await installed()
    if (names.every((name) => before.includes(name))) return
    const failure = await updateLists()
    const wanted = (await known(names)).filter((name) => !before.includes(name))
    if (wanted.length === 0) throw new Error(failure ?? `apt-get knows no ${names.join(' ')}`)
    say(`Tests install Debian packages, for ${why}: apt-get install ${wanted.join(' ')}`)
    await writeFile(underWay, before.join('\n'))
    await writeFile(inUse, '', { flag: 'a' })
    const install = () => apt('install', '-y', '--no-install-recommends', ...wanted)
    await withoutServices(policy, install).finally(settle)
  }

  /** Lists of before serve where there is no way to newer ones: says why there is none. */
  async function updateLists(): Promise<string | undefined> {
    const end = performance.now() + aptWaitsSeconds * 1000
    for (;;) {
      const failure = await apt('update').then(() => undefined, messageOf)
      // Of the lists' lock, `DPkg::Lock::Timeout` does not know.
      if (!failure?.includes('Could not get lock') || performance.now() > end) return failure
      await delay(1000)
    }
  }

  async function known(names: string[]): Promise<string[]> {
    const shown = await run('apt-cache', ['--no-all-versions', 'show', ...names]).catch(
      (error: { stdout?: string }) => error.stdout ?? '',
    )
    const found = new Set([...shown.matchAll(/^Package: (\S+)$/gm)].map(([, name]) => name))
    return names.filter((name) => found.has(name))
  }

  async function purgeMarked(): Promise<void> {
    const here = await installed()
    const marked = (await linesOf(marker)).filter((name) => here.includes(name))
    if (marked.length === 0) return
    const plain = (name: string) => name.replace(/:.*/, '')
    const simulated = await run('apt-get', ['--simulate', 'purge', ...marked])
    const goes = [...simulated.matchAll(/^(?:Purg|Remv) (\S+)/gm)].map(([, name]) =>
      plain(name ?? ''),
    )
    const others = goes.filter((name) => !marked.map(plain).includes(name))
    if (others.length > 0)
      return say(`FRESH=1 purges nothing: ${others.join(' ')} came otherwise, and would go too.`)
    say(`FRESH=1 purges what tests installed on this machine: ${marked.join(' ')}`)
    await apt('purge', '-y', ...marked)
    await rm(marker)
  }

  return {
    refusal() {
      if (!hasAptGet) return 'there is no apt-get'
      return uid === 0 ? undefined : 'only root may install packages'
    },
    install: (names, why) => alone(() => installMissing(names, why)),
    async purge() {
      if ((await linesOf(marker)).length === 0 && (await linesOf(underWay)).length === 0) return
      await alone(async () => {
        const held = await lock(inUse, { wait: false })
        if (!held) return say('FRESH=1 purges nothing: another test run uses what it would purge.')
        await purgeMarked().finally(() => held.release())
      })
    },
    use: async () => ((await exists(inUse)) ? lock(inUse, { shared: true }) : undefined),
  }
}

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

const exists = (file: string): Promise<boolean> =>
  readFile(file).then(
    () => true,
    () => false,
  )

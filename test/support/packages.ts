import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Debian packages of the programs that tests start. */
const packages = {
  chromium: 'chromium',
  Xvfb: 'xvfb',
  xdotool: 'xdotool',
  qutebrowser: 'qutebrowser',
} as const

/** Where a program is; installs its Debian package when it is missing and we may. Throws what to do otherwise. */
export async function findProgram(name: keyof typeof packages): Promise<string> {
  const folders = (process.env.PATH ?? '').split(':')
  const find = () => folders.map((folder) => path.join(folder, name)).find((file) => existsSync(file))
  const found = find()
  if (found) return found
  await aptInstall(packages[name])
  const installed = find()
  if (!installed) throw new Error(`${packages[name]} was installed, but there is no ${name}`)
  return installed
}

export async function aptInstall(name: string): Promise<void> {
  const canInstall = process.getuid?.() === 0 && existsSync('/usr/bin/apt-get')
  if (!canInstall) throw new Error(`This test needs the Debian package ${name}: apt-get install ${name}`)
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  await run('apt-get', ['update', '-qq'], { env })
  await run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', name], {
    env,
    maxBuffer: 64 * 1024 * 1024,
  })
}

import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { type BrowserContext, chromium } from 'playwright-core'

const run = promisify(execFile)

const chromiumPaths = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/usr/bin/google-chrome-stable',
]

/** What keeps a test's browser alone with the test: no first-run pages, no calls home, no sandbox for root. */
export const quietFlags = [
  '--no-sandbox',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** Debian packages of the programs that tests start. */
const packages = {
  chromium: 'chromium',
  Xvfb: 'xvfb',
  xdotool: 'xdotool',
  qutebrowser: 'qutebrowser',
} as const

/** A real Chromium on this machine: CHROMIUM_PATH, an installed one, or one by apt-get. */
export async function findChromium(): Promise<string> {
  const given = process.env.CHROMIUM_PATH
  if (given) return given
  return chromiumPaths.find((file) => existsSync(file)) ?? (await findProgram('chromium'))
}

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

async function aptInstall(name: string): Promise<void> {
  const canInstall = process.getuid?.() === 0 && existsSync('/usr/bin/apt-get')
  if (!canInstall) throw new Error(`Browser tests need the Debian package ${name}: apt-get install ${name}`)
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  await run('apt-get', ['update', '-qq'], { env })
  await run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', name], {
    env,
    maxBuffer: 64 * 1024 * 1024,
  })
}

export interface Profile {
  dir: string
  remove(): Promise<void>
}

/** A fresh browser profile. */
export async function createProfile(): Promise<Profile> {
  const dir = await mkdtemp(path.join(tmpdir(), 'tidegate-profile-'))
  return { dir, remove: () => rm(dir, { recursive: true, force: true, maxRetries: 5 }) }
}

/** Headless Chromium on `profile`, driven by playwright. Close the context when done. */
export async function openHeadless(profile: Profile): Promise<BrowserContext> {
  return chromium.launchPersistentContext(profile.dir, {
    executablePath: await findChromium(),
    headless: true,
    args: [...quietFlags, '--disable-gpu'],
  })
}

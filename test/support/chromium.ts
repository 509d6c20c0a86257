import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type BrowserContext, chromium } from 'playwright-core'
import { findProgram } from './packages.ts'

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

/** A real Chromium on this machine: CHROMIUM_PATH, an installed one, or one by apt-get. */
export async function findChromium(): Promise<string> {
  const given = process.env.CHROMIUM_PATH
  if (given) return given
  return chromiumPaths.find((file) => existsSync(file)) ?? (await findProgram('chromium'))
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

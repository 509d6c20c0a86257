import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type BrowserContext, chromium } from 'playwright-core'
import { findProgram } from './needs/programs.ts'

const programs = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']

/** Flags that disable first-run pages, background requests, and the sandbox, which root cannot use. */
export const quietFlags = [
  '--no-sandbox',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** Returns the path of a real Chromium: CHROMIUM_PATH or an installed one. */
export function findChromium(): string | undefined {
  return process.env.CHROMIUM_PATH ?? programs.map(findProgram).find(Boolean)
}

/** Returns the same, for a test that declared the need. */
export function chromiumFile(): string {
  const file = findChromium()
  if (!file)
    throw new Error('This needs Chromium: apt-get install chromium, or name one in CHROMIUM_PATH')
  return file
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

/** Opens headless Chromium on `profile`, driven by Playwright. Close the context when done. */
export async function openHeadless(profile: Profile): Promise<BrowserContext> {
  return chromium.launchPersistentContext(profile.dir, {
    executablePath: chromiumFile(),
    headless: true,
    args: [...quietFlags, '--disable-gpu'],
  })
}

/** Opens a page of headless Chromium on a fresh profile. Disposing of it closes the browser. */
export async function openBrowser() {
  const profile = await createProfile()
  const context = await openHeadless(profile)
  return {
    profile,
    context,
    page: await context.newPage(),
    async [Symbol.asyncDispose]() {
      await context.close()
      await profile.remove()
    },
  }
}

export type Browser = Awaited<ReturnType<typeof openBrowser>>

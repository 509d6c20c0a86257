import { type BrowserContextOptions, chromium } from 'playwright-core'
import { afterEach, beforeEach, expect } from 'vitest'
import { chromiumFile, createProfile, type Profile, quietFlags } from '../support/chromium.ts'
import { eventually } from '../support/eventually.ts'
import { needs } from '../support/needs.ts'
import { createRest } from '../support/rest.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

const { test } = needs('chromium')

let tidegate: RunningTidegate
let rest: ReturnType<typeof createRest>
const profiles: Profile[] = []

beforeEach(async () => {
  tidegate = await startTidegate()
  rest = createRest(tidegate.baseUrl, tidegate.credentials.live.secret_key)
})
afterEach(async () => {
  await Promise.all(profiles.splice(0).map((profile) => profile.remove()))
  await tidegate?.stop()
})

interface Setting extends BrowserContextOptions {
  flags?: string[]
}

async function freshProfile(): Promise<Profile> {
  const profile = await createProfile()
  profiles.push(profile)
  return profile
}

/** The session of a visit in real Chromium. */
async function visit(profile: Profile, { flags = [], ...options }: Setting = {}): Promise<string> {
  const context = await chromium.launchPersistentContext(profile.dir, {
    executablePath: chromiumFile(),
    headless: true,
    viewport: null,
    args: [...quietFlags, ...flags],
    ...options,
  })
  try {
    const page = await context.newPage()
    await page.goto(`${tidegate.baseUrl}/demo?auto=1`)
    const result = await page.waitForSelector('#result[data-state="done"]')
    return (await result.getAttribute('data-session-id')) ?? ''
  } finally {
    await context.close()
  }
}

async function visitorOf(sessionId: string): Promise<string> {
  return await eventually(
    async () => {
      const { visitor_fingerprint: visitor } = await rest.session(sessionId)
      expect(visitor?.id).toMatch(/^vid_/)
      return visitor?.id ?? ''
    },
    { timeoutMs: 10_000 },
  )
}

const settings: [string, Setting][] = [
  ['nothing', {}],
  ['the time zone', { timezoneId: 'Asia/Tokyo' }],
  ['the scale of the display', { flags: ['--force-device-scale-factor=1.25'] }],
  ['the language', { locale: 'it-IT' }],
  ['the window', { flags: ['--window-size=900,700'] }],
]

test('a browser is known again after its storage is gone and something changed', async () => {
  const first = await visitorOf(await visit(await freshProfile()))
  for (const [what, setting] of settings) {
    const seen = await visitorOf(await visit(await freshProfile(), setting))
    expect([what, seen]).toEqual([what, first])
  }
}, 180_000)

test('a second profile of the machine that comes back is its own visitor', async () => {
  const [one, other] = [await freshProfile(), await freshProfile()]
  const first = await visitorOf(await visit(one))
  const second = await visit(other)
  const back = await visitorOf(await visit(other))
  expect(back).not.toBe(first)
  await eventually(async () => expect(await visitorOf(second)).toBe(back))
  expect(await visitorOf(await visit(one))).toBe(first)
}, 120_000)

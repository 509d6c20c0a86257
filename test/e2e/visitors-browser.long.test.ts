import { type BrowserContextOptions, chromium } from 'playwright-core'
import { afterEach, beforeEach, expect } from 'vitest'
import { chromiumFile, createProfile, type Profile, quietFlags } from '../support/chromium.ts'
import { eventually } from '../support/eventually.ts'
import { longAgo } from '../support/long-ago.ts'
import { needs } from '../support/needs.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'
import { createRest } from '../support/rest.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

const { test } = needs('chromium')

let database: TestDatabase
let tidegate: RunningTidegate
let rest: ReturnType<typeof createRest>
const profiles: Profile[] = []

beforeEach(async () => {
  database = await createTestDatabase({ empty: true })
  tidegate = await startTidegate({ env: { DATABASE_URL: database.url } })
  rest = createRest(tidegate.baseUrl, tidegate.credentials.live.secret_key)
})
afterEach(async () => {
  await Promise.all(profiles.splice(0).map((profile) => profile.remove()))
  await tidegate?.stop()
  await database?.drop()
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

test('a browser is known again days after its storage is gone and something changed', async () => {
  const visits = [await visit(await freshProfile())]
  const first = await visitorOf(String(visits[0]))
  for (const [what, setting] of settings) {
    await longAgo(database.pool, visits)
    const again = await visit(await freshProfile(), setting)
    expect([what, await visitorOf(again)]).toEqual([what, first])
    visits.push(again)
  }
}, 180_000)

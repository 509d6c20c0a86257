import { readFile } from 'node:fs/promises'
import path from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, expect } from 'vitest'
import { sendForged } from '../../bench/detection/forging.ts'
import { bankSize } from '../../infra/challenges/bank.ts'
import { planSession, webOnly } from '../../services/cli/simulate/generate/plan.ts'
import { createProfile, openHeadless, type Profile } from '../support/chromium.ts'
import { eventually } from '../support/eventually.ts'
import { needs } from '../support/needs.ts'
import { createRest } from '../support/rest.ts'
import { countsForChromium, sourcesOfDemo, teachChromium } from '../support/teach.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

const { test } = needs('chromium')

const dataDir = temporaryFolder('learn')
let profile: Profile
let tidegate: RunningTidegate | undefined

beforeAll(async () => {
  profile = await createProfile()
})
afterAll(async () => {
  await tidegate?.stop()
  await profile.remove()
})

async function inBrowser<T>(
  work: (page: Awaited<ReturnType<typeof newPage>>) => Promise<T>,
): Promise<T> {
  const context = await openHeadless(profile)
  try {
    return await work(await newPage(context))
  } finally {
    await context.close()
  }
}
const newPage = (context: Awaited<ReturnType<typeof openHeadless>>) => context.newPage()

/** In both environments. */
async function taughtRows(): Promise<number> {
  const url = (await readFile(path.join(dataDir, 'database-url'), 'utf8')).trim()
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query(
      "select count(*)::int as count from read.answers where taught <> '[]'",
    )
    return rows[0].count
  } finally {
    await client.end()
  }
}

/** Of scripts that look up in this repository what browsers answer. */
async function forgedSessions({ baseUrl, credentials }: RunningTidegate) {
  const tidegate = { url: baseUrl, keys: credentials.live }
  const rest = createRest(baseUrl, credentials.live.secret_key)
  const people = Array.from({ length: 30 }, (_, index) =>
    planSession('learn', index, { ...webOnly, bots: 0 }),
  )
  return Promise.all(
    people.map(async ({ batches, closing }) => {
      const { sessionId } = await sendForged([...batches, closing], { answers: 'known', tidegate })
      return rest.session(sessionId)
    }),
  )
}

test('what a browser of the operator answered counts for the same engine, and for a script nothing else does', async () => {
  tidegate = await startTidegate({ dataDir })
  expect(await sourcesOfDemo(tidegate)).toContain('recorded_answers')
  expect(await teachChromium(dataDir)).toMatch(/^blink: \d{4} answers count now/)
  await eventually(async () => expect(await taughtRows()).toBeGreaterThan(2 * bankSize), {
    timeoutMs: 30_000,
  })
  await countsForChromium(tidegate)

  const forged = await forgedSessions(tidegate)
  const statuses = (engine: RegExp) =>
    forged
      .filter(({ browser }) => engine.test(browser?.engine ?? ''))
      .map(({ decision }) => decision.automation_status)
  expect(statuses(/blink/i).length).toBeGreaterThanOrEqual(8)
  expect(new Set(statuses(/blink/i))).toEqual(new Set(['uncertain']))
  // Nobody taught the others, and these have input of people.
  expect(statuses(/gecko/i)).toContain('human')
}, 120_000)

test('under tidegate dev whoever opens the console link teaches the engine of their browser', async () => {
  await using undo = new AsyncDisposableStack()
  const dev = await startTidegate()
  undo.defer(async () => void (await dev.stop()))
  const link = /http\S+console#code=\S+/.exec(dev.output())?.[0] ?? ''
  const shown = await inBrowser(async (page) => {
    const taught = page.waitForResponse(
      (response) => response.url().endsWith('/engines') && response.request().method() === 'POST',
    )
    await page.goto(link)
    expect((await taught).status()).toBe(200)
    await page.goto(`${dev.baseUrl}/console/live/settings`)
    const panel = page.locator('section', { hasText: 'Browser engines' }).last()
    const slowly = { timeout: 60_000 }
    await expect.poll(() => panel.textContent(), slowly).toContain('Blink (Chrome, Edge)learned')
    expect(await panel.textContent()).toContain('WebKit (Safari)0 of 20 visitors')
    await page.getByRole('button', { name: 'Teach Blink (Chrome, Edge) with this browser' }).click()
    await expect.poll(() => panel.textContent(), slowly).toContain('New sessions are judged by it')
    return page.title()
  })
  expect(shown).toContain('Tidegate')
  await countsForChromium(dev)
}, 120_000)

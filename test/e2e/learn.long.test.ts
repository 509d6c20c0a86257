import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, expect } from 'vitest'
import { sendForged } from '../../bench/detection/forging.ts'
import { bankSize } from '../../infra/challenges/bank.ts'
import { planSession, webOnlyMix } from '../../services/cli/simulate/generate/plan.ts'
import { openBrowser } from '../support/chromium.ts'
import { eventually } from '../support/eventually.ts'
import { needs } from '../support/needs.ts'
import { createRest } from '../support/rest.ts'
import { queryAt } from '../support/server-databases.ts'
import { countsForChromium, sourcesOfDemo, teachChromium } from '../support/teach.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { loginLinkOf, type RunningTidegate, startTidegate } from '../support/tidegate.ts'

const { test } = needs('chromium')

const dataDir = temporaryFolder('learn')
let tidegate: RunningTidegate | undefined

afterAll(async () => void (await tidegate?.stop()))

/** In both environments. */
async function taughtRows(): Promise<number> {
  const url = (await readFile(path.join(dataDir, 'database-url'), 'utf8')).trim()
  const count = "select count(*)::int as count from read.answers where taught <> '[]'"
  const [row] = await queryAt<{ count: number }>(url, [count])
  return row?.count ?? 0
}

/** Opens sessions of scripts that use the answers recorded in this repository. */
async function forgedSessions({ baseUrl, credentials }: RunningTidegate) {
  const tidegate = { url: baseUrl, keys: credentials.live }
  const rest = createRest(baseUrl, credentials.live.secret_key)
  const people = Array.from({ length: 30 }, (_, index) =>
    planSession('learn', index, { ...webOnlyMix, bots: 0 }),
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
  expect(await teachChromium(dataDir)).toMatch(/^Learned \d{4} answers for blink/)
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
  await using browser = await openBrowser()
  const { page } = browser
  const taught = page.waitForResponse(
    (response) => response.url().endsWith('/engines') && response.request().method() === 'POST',
  )
  await page.goto(loginLinkOf(dev))
  expect((await taught).status()).toBe(200)
  await page.goto(`${dev.baseUrl}/console/live/settings?tab=data`)
  const panel = page.locator('section', { hasText: 'Browser engines' }).last()
  const slowly = { timeout: 60_000 }
  await expect.poll(() => panel.textContent(), slowly).toContain('Blink (Chrome, Edge)learned')
  expect(await panel.textContent()).toContain('WebKit (Safari)0 of 20 visitors')
  await page.getByRole('button', { name: 'Teach Blink (Chrome, Edge) with this browser' }).click()
  await expect
    .poll(() => panel.textContent(), slowly)
    .toContain('New sessions use it within seconds')
  await countsForChromium(dev)
}, 120_000)

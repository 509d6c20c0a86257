import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, expect } from 'vitest'
import { bankSize } from '../../infra/challenges/bank.ts'
import { createProfile, openHeadless, type Profile } from '../support/chromium.ts'
import { cli } from '../support/cli.ts'
import { followCli } from '../support/cli-lines.ts'
import { eventually } from '../support/eventually.ts'
import { needs } from '../support/needs.ts'
import { createRest } from '../support/rest.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

const { test } = needs('chromium')

let dataDir: string
let profile: Profile
let tidegate: RunningTidegate | undefined

beforeAll(async () => {
  dataDir = await mkdtemp(path.join(tmpdir(), 'tidegate-learn-'))
  profile = await createProfile()
})
afterAll(async () => {
  await tidegate?.stop()
  await profile.remove()
  await rm(dataDir, { recursive: true, force: true })
})

async function inBrowser<T>(work: (page: Awaited<ReturnType<typeof newPage>>) => Promise<T>): Promise<T> {
  const context = await openHeadless(profile)
  try {
    return await work(await newPage(context))
  } finally {
    await context.close()
  }
}
const newPage = (context: Awaited<ReturnType<typeof openHeadless>>) => context.newPage()

/** What a session of the demo page, in that browser, was compared with. */
async function sourcesOfDemo({ baseUrl, credentials }: RunningTidegate): Promise<string[]> {
  const sessionId = await inBrowser(async (page) => {
    await page.goto(`${baseUrl}/demo?auto=1`)
    const result = await page.waitForSelector('#result[data-state="done"]')
    return (await result.getAttribute('data-session-id')) ?? ''
  })
  return (await createRest(baseUrl, credentials.live.secret_key).session(sessionId)).evidence?.sources ?? []
}

/** In both environments. */
async function taughtRows(): Promise<number> {
  const url = (await readFile(path.join(dataDir, 'database-url'), 'utf8')).trim()
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query('select count(*)::int as count from read.answers where by_operator')
    return rows[0].count
  } finally {
    await client.end()
  }
}

async function teach(env: Record<string, string>): Promise<string> {
  const learning = followCli(['learn'], env)
  const url = /http:\S+/.exec(await learning.line(/^Open http/))?.[0] ?? ''
  const guessed = await fetch(new URL('/', url))
  expect(guessed.status).toBe(404)
  const shown = await inBrowser(async (page) => {
    await page.goto(url)
    await page.waitForFunction("document.getElementById('state').textContent.includes('count now')")
    return page.textContent('#state')
  })
  learning.end()
  expect((await learning.result).code).toBe(0)
  return shown ?? ''
}

test('what a browser of the operator answered counts for the same engine, and for a script nothing else does', async () => {
  tidegate = await startTidegate({ dataDir })
  expect(await sourcesOfDemo(tidegate)).toContain('recorded_answers')
  expect(await teach({ DATA_DIR: dataDir })).toMatch(/^blink \d+: \d{4} answers count now/)
  await eventually(async () => expect(await taughtRows()).toBeGreaterThan(2 * bankSize), {
    timeoutMs: 30_000,
  })
  // A server reads what was learned as it starts, and every five minutes.
  await tidegate.stop()
  const restarted = await startTidegate({ dataDir })
  tidegate = restarted
  await eventually(async () => expect(await sourcesOfDemo(restarted)).toContain('learned_answers'), {
    timeoutMs: 30_000,
  })

  const ofScript = ['simulate', '--clients', 'web=1', '--bots', '0', '--sessions', '20', '--json']
  expect((await cli(ofScript, { DATA_DIR: dataDir })).code).toBe(0)
  const rest = createRest(tidegate.baseUrl, tidegate.credentials.live.secret_key)
  const sessions = await Promise.all((await rest.sessions()).map(({ id }) => rest.session(id)))
  const blink = sessions.filter(({ browser }) => /blink/i.test(browser?.engine ?? ''))
  const statuses = blink.map(({ decision }) => decision.automation_status)
  expect(statuses.filter((status) => status === 'uncertain').length).toBeGreaterThanOrEqual(8)
  expect(statuses).not.toContain('human')
  // Nobody taught the others.
  expect(sessions.some(({ decision }) => decision.automation_status === 'human')).toBe(true)
}, 120_000)

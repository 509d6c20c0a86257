import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import axe from 'axe-core'
import type { BrowserContext, Page, Route } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { asId, type GateSessionId } from '../../infra/ids.ts'
import { createProfile, openHeadless } from './chromium.ts'
import { acme, type ConsentWorld, openConsentWorld } from './consent-world.ts'
import { eventually } from './eventually.ts'

export const unknownId = asId('gate', 'gate_00000000000000000000000001')

const signupVariables = [
  { key: 'ACME_API_KEY', name: 'API key', secret: true, group: 'other' },
  { key: 'ACME_DOMAIN', name: 'Sending domain', secret: false, group: 'other' },
  {
    key: 'ACME_MAIL_GATE_AGENT_TOKEN',
    name: 'Agent token: asks for dashboard logins. You approve each.',
    secret: true,
    group: 'verified',
  },
]

/** What the server answers about a request, with what a test changes. */
export function consent(
  changes: Record<string, unknown> = {},
  service: Record<string, unknown> = {},
) {
  return {
    object: 'gate_consent',
    gate_session_id: unknownId,
    kind: 'signup',
    status: 'pending',
    account_name: 'Harbour Notes',
    service: {
      id: 'acme-mail',
      status: 'active',
      ...acme,
      docs_url: acme.website,
      branding: { ...acme.branding, logo_url: undefined, verified: false },
      ...service,
    },
    ...(changes.kind !== 'login' && { variables: signupVariables }),
    approve_token: 'gtapr_fake',
    expires_at: new Date(Date.now() + 874_000).toISOString(),
    requested_by: {
      ip_address: '203.0.113.9',
      user_agent: 'tidegate-cli/0.1.0 linux x64',
      at: new Date().toISOString(),
      network: { same: true, country: null, operator: null },
    },
    confirmation_code: 'K7QF-M2XD',
    ...changes,
  }
}

export interface Answer {
  status: number
  /** Of the envelope when the status is an error. */
  code?: string
  details?: unknown
  data?: unknown
  retryAfter?: number
  /** No answer at all. */
  lost?: boolean
}

export const ok = (data: unknown): Answer => ({ status: 200, data })
export const refused = (status: number, code: string, retryAfter?: number): Answer =>
  retryAfter === undefined ? { status, code } : { status, code, retryAfter }
/** What the consent of a request answers that has ended so. */
export const ended = (status: string, kind = 'signup'): Answer => ({
  ...refused(409, 'gate.session_already_resolved'),
  details: {
    fields: [
      { name: 'status', issue: status },
      { name: 'kind', issue: kind },
    ],
  },
})
export const lost: Answer = { status: 0, lost: true }

interface Answers {
  /** A function is called for each request, where it may be asked more often than the test says. */
  consent?: Answer[] | (() => Answer)
  approve?: Answer[]
  cancel?: Answer[]
}

interface Opened {
  page: Page
  /** Paths of what the page posted, with its bodies. */
  posted: { path: string; body: string | null }[]
  /** Whatever the page asked anyone for. */
  requested: string[]
}

interface Opening {
  id?: GateSessionId
  init?: (page: Page) => Promise<unknown>
  /** Whether the page is observed for real. Default: only when nothing is answered for the server. */
  observed?: boolean
}

/** A server, and a browser that shows its consent page. */
interface ConsentPages {
  world: ConsentWorld
  /** Opens the page; what it asks the Gate API is answered one after the other, the last one again and again. */
  open(answers?: Answers, opening?: Opening): Promise<Opened>
  /** One that shows nothing yet. */
  newPage(): Promise<Page>
  closeAll(): Promise<void>
  stop(): Promise<void>
}

async function openConsentPages(): Promise<ConsentPages> {
  const world = await openConsentWorld()
  const profile = await createProfile()
  const context = await openHeadless(profile)
  return {
    world,
    open: (...given) => open({ world, context }, ...given),
    newPage: () => context.newPage(),
    async closeAll() {
      // The first page stays: without one the browser ends.
      for (const page of context.pages().slice(1)) await page.close()
    },
    async stop() {
      await context.close()
      await profile.remove()
      await world.stop()
    },
  }
}

/** A server and a browser for the tests of a file; each test begins without the pages of the one before. */
export function useConsentPages(): Pick<ConsentPages, 'world' | 'open' | 'newPage'> {
  let pages: ConsentPages
  beforeAll(async () => {
    pages = await openConsentPages()
  }, 120_000)
  afterEach(() => pages.closeAll())
  afterAll(() => pages?.stop())
  return {
    get world() {
      return pages.world
    },
    open: (...given) => pages.open(...given),
    newPage: () => pages.newPage(),
  }
}

/** In place of the SDK, whose work is seen by the tests that need it. */
const unobserved = `let proofs = 0
export const start = async () => ({ getSession: async () => ({ sealedToken: 'proof ' + ++proofs }) })`

/** The clock of the page for how long it is in front can be put forward: see `reviewed`. */
async function open(
  { world, context }: { world: ConsentWorld; context: BrowserContext },
  answers: Answers = {},
  { id = unknownId, init, observed = Object.keys(answers).length === 0 }: Opening = {},
): Promise<Opened> {
  const page = await context.newPage()
  const posted: Opened['posted'] = []
  const requested: string[] = []
  page.on('request', (request) => {
    requested.push(request.url())
    const { pathname, search } = new URL(request.url())
    if (request.method() === 'POST' && pathname.startsWith('/v1/gate/'))
      posted.push({ path: pathname.split('/').at(-1) + search, body: request.postData() })
  })
  for (const [name, given] of Object.entries(answers))
    await answer(page, name, typeof given === 'function' ? given : oneAfterTheOther(given))
  if (!observed) {
    await page.addInitScript(`
      const now = performance.now.bind(performance)
      let ahead = 0
      performance.now = () => now() + ahead
      window.putForward = (ms) => { ahead += ms }
    `)
    await page.route('**/t.js*', (route) =>
      route.fulfill({ contentType: 'text/javascript', body: unobserved }),
    )
  }
  await init?.(page)
  await page.goto(world.pageUrl(id))
  return { page, posted, requested }
}

function oneAfterTheOther(given: Answer[]): () => Answer | undefined {
  const list = [...given]
  return () => (list.length > 1 ? list.shift() : list[0])
}

async function answer(page: Page, name: string, answerOf: () => Answer | undefined): Promise<void> {
  await page.route(`**/v1/gate/sessions/*/${name}*`, (route) => {
    const next = answerOf()
    return next && !next.lost ? fulfil(route, next) : route.abort('connectionfailed')
  })
}

function fulfil(route: Route, { status, code, details, data, retryAfter }: Answer): Promise<void> {
  const body = code
    ? { error: { code, message: 'Refused.', status, details } }
    : { data, meta: { request_id: 'req_x' } }
  return route.fulfill({
    status,
    contentType: 'application/json',
    headers: retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) },
    body: JSON.stringify(body),
  })
}

export const heading = (page: Page, name: string | RegExp) =>
  page.getByRole('heading', { level: 1, name })
export const press = (page: Page, name: string) => page.getByRole('button', { name }).click()

/** Waits until pressing Approve counts: the page must have been in front for a moment. */
export async function reviewed(page: Page): Promise<void> {
  await heading(page, /\?$/).waitFor()
  await page.evaluate(`window.putForward
    ? putForward(750)
    : new Promise((resolve) => setTimeout(resolve, 750))`)
}

/** What axe has looked at: states differ in their words, and in colours and a button by their kind. */
const judged = new Set<unknown>()

/** Waits for the heading, and looks at what every state must have: focus on it, a title, no fault that axe finds. */
export async function shows(page: Page, name: string | RegExp): Promise<void> {
  await heading(page, name).waitFor()
  await eventually(async () => {
    expect(await page.evaluate('document.activeElement.tagName')).toBe('H1')
  })
  expect(await page.locator('h1').count()).toBe(1)
  expect(await page.title()).toMatch(/ · Tidegate$/)
  const look = await page.evaluate(
    "(document.querySelector('.seal')?.className ?? document.title) + document.querySelectorAll('button').length",
  )
  if (!judged.has(look)) await accessible(page)
  judged.add(look)
}

export async function accessible(page: Page): Promise<void> {
  // By the debugger's own way in, which the page's policy does not concern.
  await page.evaluate(axe.source)
  const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
  const run = `axe.run(document, { runOnly: ${JSON.stringify(rules)} })`
  const { violations } = await page.evaluate<axe.AxeResults>(run)
  const found = violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`,
  )
  expect(found).toEqual([])
}

const folder = process.env.GATE_SCREENSHOTS

export async function screenshot(page: Page, name: string): Promise<void> {
  if (!folder) return
  await mkdir(folder, { recursive: true })
  // The heading has the focus, and the caret of nothing blinks.
  await page.screenshot({ path: path.join(folder, `${name}.png`), fullPage: true })
}

export async function inSight(page: Page, name: string): Promise<void> {
  const box = await page.getByRole('button', { name }).boundingBox()
  const bottom = (box?.y ?? Number.POSITIVE_INFINITY) + (box?.height ?? 0)
  expect(bottom).toBeLessThanOrEqual(page.viewportSize()?.height ?? 0)
}

export async function fitsIn(page: Page, width: number): Promise<void> {
  await page.setViewportSize({ width, height: 700 })
  const wide = await page.evaluate('document.documentElement.scrollWidth')
  expect(wide).toBeLessThanOrEqual(width)
}

/** As when the window comes to the front after a while; waits until the page has asked what became of the request. */
export async function toFront(page: Page): Promise<void> {
  const asked = page.waitForResponse('**/consent')
  await page.evaluate("putForward(10_000), dispatchEvent(new Event('focus'))")
  await (await asked).finished()
}

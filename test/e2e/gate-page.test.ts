import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import axe from 'axe-core'
import type { BrowserContext, Page, Route } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { asId, type GateSessionId } from '../../infra/ids.ts'
import { createProfile, openHeadless, type Profile } from '../support/chromium.ts'
import { acme, type ConsentWorld, openConsentWorld } from '../support/consent-world.ts'
import { eventually } from '../support/eventually.ts'
import { createNumbers, movePointer, pause, pressKey } from '../support/hand.ts'
import { openDesktop } from '../support/window.ts'

let world: ConsentWorld
let profile: Profile
let context: BrowserContext

beforeAll(async () => {
  world = await openConsentWorld()
  profile = await createProfile()
  context = await openHeadless(profile)
}, 120_000)
afterAll(async () => {
  await context.close()
  await profile.remove()
  await world.stop()
})
afterEach(async () => {
  // The first page stays: without one the browser ends.
  for (const page of context.pages().slice(1)) await page.close()
})

const unknownId = asId('gate', 'gate_00000000000000000000000001')

/** What the server answers about a request, with what a test changes. */
function consent(changes: Record<string, unknown> = {}, service: Record<string, unknown> = {}) {
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
    approve_token: 'gtapr_fake',
    expires_at: new Date(Date.now() + 874_000).toISOString(),
    requested_by: {
      ip_address: '203.0.113.9',
      user_agent: 'tidegate-cli/0.1.0 linux x64',
      at: new Date().toISOString(),
    },
    confirmation_code: 'K7QF-M2XD',
    ...changes,
  }
}

interface Answer {
  status: number
  /** Of the envelope when the status is an error. */
  code?: string
  details?: unknown
  data?: unknown
  retryAfter?: number
  /** No answer at all. */
  lost?: boolean
}

const ok = (data: unknown): Answer => ({ status: 200, data })
const refused = (status: number, code: string, retryAfter?: number): Answer =>
  retryAfter === undefined ? { status, code } : { status, code, retryAfter }
/** What the consent of a request answers that has ended so. */
const ended = (status: string, kind = 'signup'): Answer => ({
  ...refused(409, 'gate.session_already_resolved'),
  details: {
    fields: [
      { name: 'status', issue: status },
      { name: 'kind', issue: kind },
    ],
  },
})
const lost: Answer = { status: 0, lost: true }

interface Answers {
  consent?: Answer[]
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

/** In place of the SDK, whose work is seen by the tests that need it. */
const unobserved = `let proofs = 0
export const start = async () => ({ getSession: async () => ({ sealedToken: 'proof ' + ++proofs }) })`

/**
 * Opens the consent page; what it asks the Gate API is answered one after the other, the last one again and again.
 * Its clock for how long it is in front can be put forward: see `reviewed`.
 */
async function open(
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
  for (const [name, list] of Object.entries(answers)) await answer(page, name, [...list])
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

async function answer(page: Page, name: string, list: Answer[]): Promise<void> {
  await page.route(`**/v1/gate/sessions/*/${name}*`, (route) => {
    const next = list.length > 1 ? list.shift() : list[0]
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

const heading = (page: Page, name: string | RegExp) => page.getByRole('heading', { level: 1, name })
const press = (page: Page, name: string) => page.getByRole('button', { name }).click()

/** Waits until pressing Approve counts: the page must have been in front for a moment. */
async function reviewed(page: Page): Promise<void> {
  await heading(page, /\?$/).waitFor()
  await page.evaluate(`window.putForward
    ? putForward(750)
    : new Promise((resolve) => setTimeout(resolve, 750))`)
}

/** What axe has looked at: states differ in their words, and in colours and a button by their kind. */
const judged = new Set<unknown>()

/** Waits for the heading, and looks at what every state must have: focus on it, a title, no fault that axe finds. */
async function shows(page: Page, name: string | RegExp): Promise<void> {
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

async function accessible(page: Page): Promise<void> {
  // By the debugger's own way in, which the page's policy does not concern.
  await page.evaluate(axe.source)
  const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
  const run = `axe.run(document, { runOnly: ${JSON.stringify(rules)} })`
  const { violations } = await page.evaluate<axe.AxeResults>(run)
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`)
  expect(found).toEqual([])
}

const folder = process.env.GATE_SCREENSHOTS

async function screenshot(page: Page, name: string): Promise<void> {
  if (!folder) return
  await mkdir(folder, { recursive: true })
  // The heading has the focus, and the caret of nothing blinks.
  await page.screenshot({ path: path.join(folder, `${name}.png`), fullPage: true })
}

async function inSight(page: Page, name: string): Promise<void> {
  const box = await page.getByRole('button', { name }).boundingBox()
  expect((box?.y ?? Number.POSITIVE_INFINITY) + (box?.height ?? 0)).toBeLessThan(900)
}

async function fitsIn(page: Page, width: number): Promise<void> {
  await page.setViewportSize({ width, height: 700 })
  const wide = await page.evaluate('document.documentElement.scrollWidth')
  expect(wide).toBeLessThanOrEqual(width)
}

describe('what is asked', () => {
  test('of a signup: by whom, for which service, what it gives to whom, and until when', async () => {
    const { page } = await open({ consent: [ok(consent())] })
    await shows(page, 'Create an account at Acme Mail?')
    const main = page.getByRole('main')
    for (const text of [
      'acme.example',
      'Not verified',
      'Transactional mail',
      'K7QF-M2XD',
      'an account called Harbour Notes',
      'ACME_API_KEY',
      'ACME_DOMAIN',
      'ACME_MAIL_GATE_AGENT_TOKEN',
      'asks for dashboard logins',
      '203.0.113.9',
      'tidegate-cli/0.1.0 linux x64',
      'Open until',
    ])
      expect(await main.textContent()).toContain(text)
    expect(await main.getByRole('listitem').filter({ hasText: 'ACME_DOMAIN' }).textContent()).toContain(
      'Not secret',
    )
    const terms = main.getByRole('link', { name: 'Terms' })
    expect(await terms.getAttribute('rel')).toBe('noopener noreferrer nofollow')
    expect(await terms.getAttribute('target')).toBe('_blank')
    expect(await page.getByRole('button').allTextContents()).toEqual(['Decline', 'Approve'])
    expect(await main.textContent()).not.toContain('Your agent tells')
    await page.setViewportSize({ width: 1100, height: 900 })
    for (const name of ['Decline', 'Approve']) await inSight(page, name)
    await screenshot(page, 'light')
    await page.emulateMedia({ colorScheme: 'dark' })
    await accessible(page)
    await screenshot(page, 'dark')
    await page.emulateMedia({ forcedColors: 'active' })
    await screenshot(page, 'forced-colors')
    await page.emulateMedia({ colorScheme: 'light', forcedColors: 'none' })
    await fitsIn(page, 320)
    await accessible(page)
    await screenshot(page, 'phone')
  })

  test('of a login: to what, as whom, and where this browser goes', async () => {
    const { page } = await open({ consent: [ok(consent({ kind: 'login' }))] })
    await shows(page, 'Log in to Acme Mail’s dashboard as Harbour Notes?')
    expect(await page.getByRole('main').textContent()).toContain(
      'This browser goes to app.acme.example, logged in as Harbour Notes.',
    )
    expect(await page.getByRole('main').textContent()).not.toContain('ACME_API_KEY')
    await screenshot(page, 'login')
    await fitsIn(page, 320)
  })

  test('what the agent tells the service is shown as text, in bounds', async () => {
    const metadata = { plan: 'free', '<b>team</b>': { size: 3 }, note: '\u202enote '.repeat(2000) }
    const { page } = await open({ consent: [ok(consent({ metadata }))] })
    await heading(page, /Create an account/).waitFor()
    const told = page.getByRole('region', { name: 'Your agent tells Acme Mail' })
    expect(await told.getByRole('term').allTextContents()).toEqual(['plan', '<b>team</b>', 'note'])
    const [plan, team, note] = await told.getByRole('definition').allTextContents()
    expect([plan, team]).toEqual(['free', '{"size":3}'])
    expect(note).toMatch(/^\ufffdnote .{0,160}…$/u)
    await screenshot(page, 'metadata')
    await fitsIn(page, 320)
  })

  test('a drawing takes the room it needs, and is a tab stop only where it scrolls', async () => {
    const drawn = (ascii_art: string) =>
      open({ consent: [ok(consent({}, { branding: { ...acme.branding, ascii_art } }))] })
    const small = (await drawn('  /\\_/\\\n ( o.o )\n  > ^ <')).page
    const box = small.getByRole('img', { name: /drawing/ })
    await box.waitFor()
    expect((await box.boundingBox())?.width).toBeLessThan(200)
    expect(await box.getAttribute('tabindex')).toBeNull()
    await screenshot(small, 'drawing')
    const large = (await drawn(`${'#'.repeat(200)}\n`.repeat(50))).page
    await large.locator('.drawing[tabindex="0"]').waitFor()
    await accessible(large)
  })

  test('a verified service says so', async () => {
    const branding = { ...acme.branding, logo_url: '/assets/mark.svg', verified: true }
    const { page } = await open({ consent: [ok(consent({}, { branding }))] })
    await heading(page, /Acme/).waitFor()
    expect(await page.getByRole('main').textContent()).toContain('Verified service')
    expect(await page.getByRole('main').textContent()).not.toContain('Not verified')
  })

  test('the real thing: the page of a session shows what the API says of it', async () => {
    const { page } = await open({}, { id: await world.signup() })
    await shows(page, 'Create an organization at Tidegate?')
    const text = await page.getByRole('main').textContent()
    for (const part of ['TIDEGATE_SECRET_KEY', 'an organization called Harbour Notes', 'may do everything'])
      expect(text).toContain(part)
    expect(await page.evaluate("document.querySelector('img.logo').naturalWidth")).toBeGreaterThan(0)
    await screenshot(page, 'built-in')
  })
})

describe('what cannot be decided', () => {
  test.each<[string, Answer, string]>([
    ['not-found', refused(404, 'gate.session_not_found'), 'There is no such request'],
    ['expired', refused(410, 'gate.session_expired'), 'This request has expired'],
    ['resolved', refused(409, 'gate.session_already_resolved'), 'This request was already answered'],
    ['server', refused(500, 'internal.error'), 'Something went wrong on our side'],
    ['offline', lost, 'No connection'],
    ['was-approved', ended('approved'), 'This sign-up was approved'],
    ['was-approved-login', ended('approved', 'login'), 'This login was approved'],
    ['was-declined', ended('declined'), 'Declined'],
    ['was-closed', ended('closed'), 'This request was closed'],
    ['was-failed', ended('integrator_failed'), 'The service could not finish'],
  ])('%s', async (name, answered, title) => {
    const { page, posted } = await open({ consent: [answered] })
    await shows(page, title)
    await screenshot(page, name)
    await page.close()
    expect(posted).toEqual([])
  })

  test('a page that could not be opened can be opened again', async () => {
    const { page } = await open({ consent: [refused(503, 'service.unavailable'), ok(consent())] })
    await shows(page, 'Something went wrong on our side')
    await press(page, 'Try again')
    await shows(page, /Create an account/)
  })

  test('too many pages: it says how long it waits, and goes on by itself', async () => {
    const { page } = await open({ consent: [refused(429, 'gate.rate_limit', 1), ok(consent())] })
    await shows(page, 'One moment, please')
    expect(await page.getByRole('main').textContent()).toContain('again in 1 second.')
    await screenshot(page, 'rate-limited-page')
    await shows(page, /Create an account/)
  })

  test('a page that the browser had kept asks anew', async () => {
    const { page } = await open({ consent: [ok(consent()), refused(409, 'gate.session_already_resolved')] })
    await heading(page, /Create an account/).waitFor()
    await page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    await shows(page, 'This request was already answered')
  })

  test('an unknown or malformed session has the same page', async () => {
    for (const id of [unknownId, 'gate_x', '%00']) {
      const page = await context.newPage()
      await page.goto(`${world.baseUrl}/gate/consent/${id}`)
      await shows(page, 'There is no such request')
      await page.close()
    }
  })

  test('the time runs out while the page is open', async () => {
    const expires_at = new Date(Date.now() + 1500).toISOString()
    const { page, posted } = await open({ consent: [ok(consent({ expires_at }))] })
    await heading(page, /Create an account/).waitFor()
    await shows(page, 'This request has expired')
    expect(posted).toEqual([])
  })
})

describe('approving', () => {
  const approved = ok({ object: 'gate_session', id: unknownId, status: 'approved' })

  test('a proof goes with the token of the page, and the page says that it is done', async () => {
    const { page, posted } = await open({ consent: [ok(consent())], approve: [approved] }, { observed: true })
    await reviewed(page)
    await press(page, 'Approve')
    await shows(page, 'Approved')
    expect(await page.getByRole('main').textContent()).toContain(
      'Acme Mail created the account Harbour Notes.',
    )
    await screenshot(page, 'approved')
    expect(posted.map(({ path: name }) => name)).toEqual(['approve'])
    const body: unknown = JSON.parse(posted[0]?.body ?? '')
    expect(body).toEqual({
      approve_token: 'gtapr_fake',
      sealed_token: expect.stringMatching(/^[\w+/=]{200,}$/),
    })
    await page.close()
    expect(posted.length).toBe(1)
  })

  test('a service that takes its time is asked again, with the same proof', async () => {
    const inProgress = refused(409, 'gate.approval_in_progress', 1)
    const { page, posted } = await open({
      consent: [ok(consent())],
      approve: [inProgress, lost, approved],
    })
    await reviewed(page)
    await press(page, 'Approve')
    await shows(page, 'Acme Mail is setting up the account')
    await screenshot(page, 'in-progress')
    await shows(page, 'Approved')
    expect(posted.length).toBe(3)
    expect(new Set(posted.map(({ body }) => body)).size).toBe(1)
  })

  test('a page that is opened while it is under way asks how it ends', async () => {
    const { page, posted } = await open({
      consent: [ok(consent({ approval: 'in_progress' }))],
      approve: [refused(409, 'gate.approval_in_progress', 1), refused(409, 'gate.session_already_resolved')],
    })
    await shows(page, 'Acme Mail is setting up the account')
    await shows(page, 'Acme Mail could not finish')
    await screenshot(page, 'failed')
    expect(posted.map(({ body }) => body)).toEqual(Array(2).fill('{"approve_token":"gtapr_fake"}'))
  })

  test.each<[string, Answer, string, number]>([
    ['flagged', refused(403, 'gate.bot_detected'), 'This looked automated', 1],
    ['proof', refused(403, 'gate.svc_proof_invalid'), 'We could not tell whether a person is here', 2],
    ['rate-limited', refused(429, 'gate.rate_limit', 40), 'Press Approve again in 40 seconds.', 1],
    ['trouble', refused(500, 'internal.error'), 'That did not go through', 1],
    ['connection-lost', lost, 'The connection was lost', 1],
  ])('%s: says so, and can be tried again', async (name, answered, notice, requests) => {
    const answers = [...Array<Answer>(requests).fill(answered), approved]
    const { page, posted } = await open({ consent: [ok(consent())], approve: answers })
    await reviewed(page)
    await press(page, 'Approve')
    await page.getByRole('alert').filter({ hasText: notice }).waitFor()
    // The notices differ in their words.
    if (name === 'flagged') await accessible(page)
    await screenshot(page, name)
    expect(new Set(posted.map(({ body }) => body)).size).toBe(requests)
    expect(await page.evaluate('document.activeElement.id')).toBe('approve')
    await press(page, 'Approve')
    await shows(page, 'Approved')
  })

  test('after the last attempt there is only Decline', async () => {
    const { page, posted } = await open({
      consent: [ok(consent())],
      approve: [refused(429, 'gate.rate_limit', 80_000), approved],
      cancel: [ok({ object: 'gate_session', id: unknownId, status: 'rejected' })],
    })
    await reviewed(page)
    await press(page, 'Approve')
    await page.getByRole('alert').filter({ hasText: 'cannot be approved from here any more' }).waitFor()
    const button = page.getByRole('button', { name: 'Approve' })
    expect(await button.isDisabled()).toBe(true)
    await accessible(page)
    await screenshot(page, 'no-more-attempts')
    await button.click({ force: true })
    await press(page, 'Decline')
    await shows(page, 'Declined')
    expect(posted.map(({ path: name }) => name)).toEqual(['approve', 'cancel'])
  })

  test('a slow service: the page says so, and until when it is asked', async () => {
    const { page } = await open(
      { consent: [ok(consent())], approve: [refused(409, 'gate.approval_in_progress', 600)] },
      { init: (opened) => opened.clock.install() },
    )
    await heading(page, /\?$/).waitFor()
    await page.clock.fastForward(1000)
    await press(page, 'Approve')
    await shows(page, 'Acme Mail is setting up the account')
    expect(await page.getByRole('main').textContent()).not.toContain('slow')
    await page.clock.fastForward(20_000)
    await page
      .getByRole('main')
      .getByText(/Acme Mail is slow to answer; .+ until \d+:\d\d/)
      .waitFor()
    expect(await page.getByRole('main').textContent()).not.toContain('a few seconds')
    await screenshot(page, 'slow')
  })

  test('a token that another page made void: the request is shown once more, and nothing is approved', async () => {
    const { page, posted } = await open({
      consent: [ok(consent()), ok(consent({ approve_token: 'gtapr_newer' }))],
      approve: [refused(403, 'gate.approve_token_invalid'), approved],
    })
    await reviewed(page)
    await press(page, 'Approve')
    await page.getByRole('alert').filter({ hasText: 'opened somewhere else' }).waitFor()
    await reviewed(page)
    await press(page, 'Approve')
    await shows(page, 'Approved')
    expect(posted.at(-1)?.body).toContain('gtapr_newer')
  })

  test('one that was answered or ran out meanwhile', async () => {
    const { page } = await open({ consent: [ok(consent())], approve: [refused(410, 'gate.session_expired')] })
    await reviewed(page)
    await press(page, 'Approve')
    await shows(page, 'This request has expired')
    const resolved = refused(409, 'gate.session_already_resolved')
    const other = await open({ consent: [ok(consent()), resolved], approve: [resolved] })
    await reviewed(other.page)
    await press(other.page, 'Approve')
    await shows(other.page, 'This request was already answered')
  })

  test('a page that has just come to the front takes no Approve', async () => {
    const { page, posted } = await open({ consent: [ok(consent())], approve: [approved] })
    await reviewed(page)
    await page.evaluate("dispatchEvent(new Event('focus'))")
    await press(page, 'Approve')
    await page.getByRole('alert').filter({ hasText: 'press once more' }).waitFor()
    expect(posted).toEqual([])
  })

  test('a request that is opened in another tab is decided there', async () => {
    const first = await open({ consent: [ok(consent())] })
    await reviewed(first.page)
    const second = await open({ consent: [ok(consent())] })
    await reviewed(second.page)
    await shows(first.page, 'Open in another tab')
    await screenshot(first.page, 'elsewhere')
    await second.page.close({ runBeforeUnload: true })
    await shows(first.page, 'Create an account at Acme Mail?')
    expect(first.posted).toEqual([])
  })

  test('a page that comes to the front learns what happened elsewhere, and is left as it was otherwise', async () => {
    const { page } = await open({
      consent: [ok(consent()), ok(consent({ approve_token: 'gtapr_newer' })), ended('declined')],
      approve: [refused(403, 'gate.bot_detected')],
    })
    await reviewed(page)
    await press(page, 'Approve')
    const notice = page.getByRole('alert').filter({ hasText: 'This looked automated' })
    await notice.waitFor()
    await toFront(page)
    expect(await notice.isVisible()).toBe(true)
    expect(await page.evaluate('document.activeElement.id')).toBe('approve')
    await toFront(page)
    await shows(page, 'Declined')
  })
})

/** As when the window comes to the front after a while; waits until the page has asked what became of the request. */
async function toFront(page: Page): Promise<void> {
  const asked = page.waitForResponse('**/consent')
  await page.evaluate("putForward(10_000), dispatchEvent(new Event('focus'))")
  await (await asked).finished()
}

describe('a login', () => {
  const login = ok(consent({ kind: 'login' }))
  const answered = (redirect_url: string) =>
    ok({ object: 'gate_login_session', id: unknownId, status: 'approved', code: 'x', redirect_url })

  test('goes on to the dashboard', async () => {
    const url = 'https://app.acme.example/auth/gate?code=x'
    const { page } = await open(
      { consent: [login], approve: [answered(url)] },
      {
        init: (opened) =>
          opened.route('https://app.acme.example/**', (route) =>
            route.fulfill({ contentType: 'text/html', body: '<!doctype html><h1>Dashboard</h1>' }),
          ),
      },
    )
    await reviewed(page)
    await press(page, 'Approve login')
    await heading(page, /^Dashboard$/).waitFor()
    expect(page.url()).toBe(url)
    expect(await page.evaluate('document.referrer')).toBe('')
  })

  test.each(['https://evil.example/?code=x', 'javascript:window.ran=1', 'http://app.acme.example/?code=x'])(
    'does not go to %s',
    async (url) => {
      const { page, requested } = await open({ consent: [login], approve: [answered(url)] })
      await reviewed(page)
      await press(page, 'Approve login')
      await shows(page, 'The login leads somewhere else')
      expect(requested.every((asked) => asked.startsWith(world.baseUrl))).toBe(true)
    },
  )
})

describe('declining', () => {
  const rejected = ok({ object: 'gate_session', id: unknownId, status: 'rejected' })

  test('ends the request', async () => {
    const { page, posted } = await open({ consent: [ok(consent())], cancel: [rejected] })
    await heading(page, /Create an account/).waitFor()
    await press(page, 'Decline')
    await shows(page, 'Declined')
    await screenshot(page, 'declined')
    expect(posted).toEqual([{ path: 'cancel', body: null }])
  })

  test('one that did not arrive can be repeated', async () => {
    const { page } = await open({ consent: [ok(consent())], cancel: [lost, rejected] })
    await heading(page, /Create an account/).waitFor()
    await press(page, 'Decline')
    await page.getByRole('alert').filter({ hasText: 'The connection was lost' }).waitFor()
    await press(page, 'Decline')
    await shows(page, 'Declined')
  })
})

describe('by keyboard alone', () => {
  const answers = {
    consent: [ok(consent())],
    approve: [ok({ object: 'gate_session', id: unknownId, status: 'approved' })],
    cancel: [ok({ object: 'gate_session', id: unknownId, status: 'rejected' })],
  }

  test('a stray Enter or Space decides nothing', async () => {
    const { page, posted } = await open(answers)
    await reviewed(page)
    for (const key of ['Enter', 'Space', 'Enter']) await page.keyboard.press(key)
    expect(await heading(page, /Create an account/).isVisible()).toBe(true)
    expect(posted).toEqual([])
  })

  test.each([
    ['approve', 'Enter', 'Approved'],
    ['approve', 'Space', 'Approved'],
    ['decline', 'Enter', 'Declined'],
    ['decline', 'Space', 'Declined'],
  ])('%s with %s', async (id, key, title) => {
    const { page } = await open(answers)
    await reviewed(page)
    await tabTo(page, id)
    expect(await page.evaluate(`getComputedStyle(document.querySelector('#${id}')).outlineStyle`)).toBe(
      'solid',
    )
    await page.keyboard.press(key)
    await shows(page, title)
  })

  async function tabTo(page: Page, id: string): Promise<void> {
    for (let i = 0; i < 20; i++) {
      await page.keyboard.press('Tab')
      if ((await page.evaluate('document.activeElement.id')) === id) return
    }
    throw new Error(`no Tab leads to ${id}`)
  }
})

describe('a service that means harm', () => {
  const script = '<img src=x onerror="window.ran=1"><script>window.ran=1</script>'
  const hidden = '\u202egnp.exe\u202c\u0000\u001b[31m\u200b\u2066'
  const text = `${script}${hidden}`
  const address = 'javascript:window.ran=1'
  const hostile = {
    name: text,
    description: `${text}\n${'Z̀́̂̃̄̅'.repeat(50)}\n${'word'.repeat(500)}`,
    website: address,
    docs_url: address,
    env_vars: [
      { name: text, key: text, secret: true },
      { name: 'x'.repeat(5000), key: 'Y'.repeat(5000), secret: false },
    ],
    sdks: [{ label: text, install: text, url: address }],
    branding: {
      logo_url: 'https://logos.example/logo.svg',
      primary_color: '#ffffff',
      secondary_color: 'red;}body{display:none',
      ascii_art: `${script}\n${`${'#'.repeat(5000)}\n`.repeat(3000)}`,
    },
    consent: { terms_url: address, privacy_url: 'https://user@evil.example/' },
  }

  test('runs nothing, reaches nobody but its logo, hides nothing and breaks nothing', async () => {
    const serviceId = await world.service(hostile)
    const id = await world.signup(serviceId)
    const dialogs: string[] = []
    const { page, requested } = await open(
      {},
      {
        id,
        init: async (opened) => {
          opened.on('dialog', (dialog) => dialogs.push(dialog.message()))
          await opened.route('https://logos.example/**', (route) => route.abort())
        },
      },
    )
    await heading(page, /Create an account at <img src=x/).waitFor()
    expect(await page.evaluate("'ran' in window")).toBe(false)
    expect(dialogs).toEqual([])
    const hosts = new Set(
      requested.filter((url) => !url.startsWith('blob:')).map((url) => new URL(url).origin),
    )
    expect([...hosts].sort()).toEqual([world.baseUrl, 'https://logos.example'].sort())
    expect(await page.getByRole('main').textContent()).not.toMatch(/(?!\n)[\p{Cc}\p{Bidi_Control}]/u)
    const links = await page.locator('a').evaluateAll((all) => all.map((link) => link.getAttribute('href')))
    expect(links).toEqual([])
    expect(await page.locator('span.logo').textContent()).toBe('<')
    await fitsIn(page, 320)
    await fitsIn(page, 1280)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      await accessible(page)
      for (const name of ['Approve', 'Decline']) await seen(page, name)
      await screenshot(page, `hostile-${colorScheme}`)
    }
  })

  /** Nothing lies over the middle of the button. */
  async function seen(page: Page, name: string): Promise<void> {
    const button = page.getByRole('button', { name })
    await button.scrollIntoViewIfNeeded()
    const box = await button.boundingBox()
    if (!box) throw new Error(`${name} is not shown`)
    const middle = `${box.x + box.width / 2}, ${box.y + box.height / 2}`
    const isOnTop = await page.evaluate(`document.elementFromPoint(${middle})?.textContent === '${name}'`)
    expect(isOnTop).toBe(true)
  }

  test('the policy of the page names the origin of its logo, and nothing that a logo could add', async () => {
    const policyOf = async (logo_url: string) => {
      const branding = { ...acme.branding, logo_url }
      const id = await world.signup(await world.service({ branding }))
      const { headers } = await fetch(world.pageUrl(id))
      return headers.get('content-security-policy')
    }
    const plain = (await fetch(world.pageUrl(unknownId))).headers
    expect(Object.fromEntries(plain)).toMatchObject({
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; worker-src blob:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
      'x-frame-options': 'DENY',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'permissions-policy': expect.stringContaining('camera=()'),
      'cache-control': 'no-store',
    })
    expect(await policyOf('https://cdn.acme.example:8443/a/logo.png')).toContain(
      "img-src 'self' https://cdn.acme.example:8443;",
    )
    expect(await policyOf("https://*.example;script-src 'unsafe-inline'/x")).toBe(
      plain.get('content-security-policy'),
    )
    expect(await policyOf('https://*/x')).toBe(plain.get('content-security-policy'))
  })
})

describe('the page of a real request', () => {
  test('closing it rejects the request; a reload does not, nor does closing one of two tabs', async () => {
    const signups = [await world.signup(), await world.signup(), await world.signup()] as const
    const [closed, reloaded, twice] = signups
    const [first, second, older, newer] = [
      await open({}, { id: closed }),
      await open({}, { id: reloaded }),
      await open({}, { id: twice }),
      await open({}, { id: twice }),
    ]
    for (const { page } of [first, second, newer]) await heading(page, /Create an org/).waitFor()
    await shows(older.page, 'Open in another tab')
    await newer.page.close({ runBeforeUnload: true })
    await heading(older.page, /Create an org/).waitFor()
    await second.page.reload()
    await heading(second.page, /Create an org/).waitFor()
    await first.page.close({ runBeforeUnload: true })
    await eventually(
      async () =>
        expect(await world.session(closed)).toMatchObject({ status: 'rejected', rejection: 'closed' }),
      { timeoutMs: 15_000, intervalMs: 100 },
    )
    // Their pages began to close earlier.
    for (const id of [reloaded, twice]) {
      expect((await world.session(id))?.status).toBe('pending')
      expect(await world.isOpen(id)).toBe(true)
    }
    // Whoever opens it then learns that it is over.
    const again = await open({}, { id: closed })
    await shows(again.page, 'This request was closed')
  })

  test('a browser that is driven is not taken for a person, and the person may still decline', async () => {
    const id = await world.signup()
    const { page } = await open({}, { id })
    await reviewed(page)
    await press(page, 'Approve')
    await page.getByRole('alert').filter({ hasText: 'This looked automated' }).waitFor()
    expect((await world.session(id))?.status).toBe('pending')
    await press(page, 'Decline')
    await shows(page, 'Declined')
    expect(await world.session(id)).toMatchObject({ status: 'rejected', rejection: 'declined' })
  })

  test('a person at a screen approves', async () => {
    const seed = Date.now()
    console.log(`seed ${seed}`)
    const next = createNumbers(seed)
    const id = await world.signup()
    const desktop = await openDesktop()
    const person = await createProfile()
    try {
      await desktop.openWindow(world.pageUrl(id), person)
      await eventually(async () => expect(await world.isOpen(id)).toBe(true), {
        timeoutMs: 40_000,
        intervalMs: 200,
      })
      await desktop.input([
        ...pause(1500),
        ...movePointer({ x: 1100, y: 320 }, { x: 700, y: 520 }, next),
        ...Array.from({ length: 4 }, () => ['click', '5', ...pause(150 + next() * 200)]).flat(),
        ...movePointer({ x: 700, y: 520 }, { x: 560, y: 640 }, next),
        ...pause(900),
        ...movePointer({ x: 560, y: 640 }, { x: 760, y: 700 }, next),
        // From the heading over the website and Decline to Approve.
        ...[1, 2, 3].flatMap(() => pressKey('Tab', next)),
        ...pause(400),
        ...pressKey('Return', next),
      ])
      await eventually(async () => expect((await world.session(id))?.status).toBe('approved'), {
        timeoutMs: 15_000,
        intervalMs: 100,
      })
    } finally {
      await desktop.close()
      await person.remove()
    }
  }, 120_000)
})

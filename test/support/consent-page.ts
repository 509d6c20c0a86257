import { randomBytes } from 'node:crypto'
import axe from 'axe-core'
import type { BrowserContext, Page, Route } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { createCodec } from '../../infra/event-store/codec.ts'
import { asId, derivedId, type GateSessionId, randomId } from '../../infra/ids.ts'
import { systemServiceId } from '../../infra/wire/gate.ts'
import { findGateSession, findService } from '../../projections/gate/queries.ts'
import type { GateServiceDefinition } from '../../schemas/events.ts'
import { systemService } from '../../services/gate/registry/registered-services.ts'
import { createProfile, openHeadless, type Profile } from './chromium.ts'
import { startCluster } from './cluster.ts'
import { eventually } from './eventually.ts'
import { requestSignup } from './gate-approve.ts'
import { testCause } from './projections.ts'

/** Service definition with all members. */
export const acme: GateServiceDefinition = {
  ...systemService('https://acme.example').definition,
  name: 'Acme Mail',
  description: 'Transactional mail for products and their agents. Free for 3,000 messages a month.',
  website: 'https://acme.example',
  dashboard_login_url: 'https://app.acme.example/auth/gate',
  webhook_endpoint_id: derivedId('we', 'acme'),
  env_vars: [
    { name: 'API key', key: 'ACME_API_KEY', secret: true },
    { name: 'Sending domain', key: 'ACME_DOMAIN', secret: false },
  ],
  branding: {
    logo_url: null,
    primary_color: '#5b3df5',
    secondary_color: '#f53d8a',
    ascii_art: null,
  },
  consent: { terms_url: 'https://acme.example/terms', privacy_url: 'https://acme.example/privacy' },
}

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

/** Returns the server's response about a request, with a test's changes. */
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
  /** Error code, if the status is an error. */
  code?: string
  details?: unknown
  data?: unknown
  retryAfter?: number
}

export const ok = (data: unknown): Answer => ({ status: 200, data })
export const approved = (more: object = {}): Answer =>
  ok({ object: 'gate_session', id: unknownId, status: 'approved', ...more })
export const rejected = ok({ object: 'gate_session', id: unknownId, status: 'rejected' })
export const refused = (status: number, code: string, retryAfter?: number): Answer => ({
  status,
  code,
  ...(retryAfter !== undefined && { retryAfter }),
})
/** Returns the response for a request that is already resolved with this status. */
export const ended = (status: string, kind = 'signup'): Answer => ({
  ...refused(409, 'gate.session_already_resolved'),
  details: {
    fields: [
      { name: 'status', issue: status },
      { name: 'kind', issue: kind },
    ],
  },
})
/** No response. */
export const lost: Answer = { status: 0 }

/** Responses to the page's requests, in order. The last one repeats. */
interface Answers {
  consent?: Answer[]
  approve?: Answer[]
  cancel?: Answer[]
}

interface Opening {
  id?: GateSessionId
  init?: (page: Page) => Promise<unknown>
  /** True to collect real observations of the page. Default: only if no response is mocked. */
  observed?: boolean
}

/** Starts a server and a browser for a test file. Each test starts without the previous one's pages. */
export function useConsentPages() {
  let world: Awaited<ReturnType<typeof startServer>>
  let profile: Profile
  let context: BrowserContext
  beforeAll(async () => {
    world = await startServer()
    profile = await createProfile()
    context = await openHeadless(profile)
  }, 120_000)
  afterEach(async () => {
    // Keeps the first page, because the browser exits without one.
    for (const page of context.pages().slice(1)) await page.close()
  })
  afterAll(async () => {
    await context?.close()
    await profile?.remove()
    await world?.stop()
  })
  return {
    get world() {
      return world
    },
    async open(answers: Answers = {}, { id = unknownId, ...opening }: Opening = {}) {
      const page = await context.newPage()
      const seen = await prepare(page, answers, opening)
      await page.goto(world.pageUrl(id))
      return { page, ...seen }
    },
  }
}

async function startServer() {
  const cluster = await startCluster()
  const { baseUrl, pool, owner } = cluster

  return {
    baseUrl,
    pageUrl: (id: GateSessionId) => `${baseUrl}/gate/consent/${id}`,
    session: (id: GateSessionId) => findGateSession(pool, id),
    async isOpen(id: GateSessionId): Promise<boolean> {
      const page = 'from tidegate.gate_pages where gate_session_id = $1 and closed_at is null'
      return (await pool.query(`select ${page}`, [id])).rowCount === 1
    },
    /** Registers a service in the log, without the API's validation. */
    async service(definition: Partial<GateServiceDefinition> = {}): Promise<string> {
      const scope = { organizationId: owner.organizationId, environment: 'live' as const }
      const data = {
        service_id: `acme-${randomBytes(4).toString('hex')}`,
        organization_id: scope.organizationId,
        environment: scope.environment,
        definition: { ...acme, ...definition },
        registered_at: Date.now(),
      }
      const meta = { ...scope, eventId: randomId('evt', randomBytes), time: Date.now() }
      const event = { type: 'GateServiceRegistered', data } as const
      const log = await cluster.log()
      await log.append([createCodec().toRecordWithCause(event, meta, testCause)])
      await eventually(async () => expect(await findService(pool, data.service_id)).toBeDefined())
      return data.service_id
    },
    /** Opens a signup from this machine. */
    async signup(service_id: string = systemServiceId): Promise<GateSessionId> {
      // An address may open five signups per minute.
      await pool.query('truncate tidegate.gate_limits')
      const signup = { service_id, account_name: 'Harbour Notes' }
      return asId('gate', (await requestSignup(baseUrl, signup)).id)
    },
    stop: cluster.stop,
  }
}

/** Replaces the SDK in tests that do not need it. */
const unobserved = `let proofs = 0
export const start = async () => ({ getSession: async () => ({ sealedToken: 'proof ' + ++proofs }) })`

async function prepare(
  page: Page,
  answers: Answers,
  { init, observed = Object.keys(answers).length === 0 }: Opening,
) {
  /** Paths and bodies that the page posted. */
  const posted: { path: string; body: string | null }[] = []
  /** URLs that the page requested. */
  const requested: string[] = []
  page.on('request', (request) => {
    requested.push(request.url())
    const { pathname, search } = new URL(request.url())
    if (request.method() === 'POST' && pathname.startsWith('/v1/gate/'))
      posted.push({ path: pathname.split('/').at(-1) + search, body: request.postData() })
  })
  for (const [name, given] of Object.entries(answers)) {
    const list = [...given]
    const next = () => (list.length > 1 ? list.shift() : list[0]) ?? lost
    await page.route(`**/v1/gate/sessions/*/${name}*`, (route) => fulfil(route, next()))
  }
  if (!observed) {
    // `reviewed` can advance the clock of the page.
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
  return { posted, requested }
}

function fulfil(route: Route, answer: Answer): Promise<void> {
  if (answer === lost) return route.abort('connectionfailed')
  const { status, code, details, data, retryAfter } = answer
  return route.fulfill({
    status,
    headers: retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) },
    json: code
      ? { error: { code, message: 'Refused.', status, details } }
      : { data, meta: { request_id: 'req_x' } },
  })
}

export const heading = (page: Page, name: string | RegExp) =>
  page.getByRole('heading', { level: 1, name })
export const press = (page: Page, name: string) => page.getByRole('button', { name }).click()
export const textOf = (page: Page) => page.getByRole('main').textContent()
/** Waits for the notice above the buttons. */
export const notice = (page: Page, hasText: string) =>
  page.getByRole('alert').filter({ hasText }).waitFor()
export const focused = (page: Page) => page.evaluate<string>('document.activeElement.id')

/** Waits until Approve is accepted, after the page was visible for a moment. */
export async function reviewed(page: Page): Promise<void> {
  await heading(page, /\?$/).waitFor()
  await page.evaluate(`window.putForward
    ? putForward(750)
    : new Promise((resolve) => setTimeout(resolve, 750))`)
}

/** Approves on a page that was visible long enough. */
export async function approve(page: Page, name = 'Approve'): Promise<void> {
  await reviewed(page)
  await press(page, name)
}

/** States that axe has checked. */
const judged = new Set<unknown>()

/** Waits for the heading, and checks its focus, the title, and accessibility. */
export async function shows(page: Page, name: string | RegExp): Promise<void> {
  await heading(page, name).waitFor()
  await expect.poll(() => page.evaluate('document.activeElement.tagName')).toBe('H1')
  expect(await page.locator('h1').count()).toBe(1)
  expect(await page.title()).toMatch(/ · Tidegate$/)
  const look = await page.evaluate(`(document.querySelector('.seal')?.className ?? document.title)
    + document.querySelectorAll('button').length`)
  if (!judged.has(look)) await accessible(page)
  judged.add(look)
}

export async function accessible(page: Page): Promise<void> {
  // Evaluated by the debugger, which bypasses the page's CSP.
  await page.evaluate(axe.source)
  const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
  const run = `axe.run(document, { runOnly: ${JSON.stringify(rules)} })`
  const { violations } = await page.evaluate<axe.AxeResults>(run)
  expect(violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)])).toEqual([])
}

export async function fitsIn(page: Page, width: number): Promise<void> {
  await page.setViewportSize({ width, height: 700 })
  const wide = await page.evaluate('document.documentElement.scrollWidth')
  expect(wide).toBeLessThanOrEqual(width)
}

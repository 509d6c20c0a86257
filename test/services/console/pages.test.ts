import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import type { FastifyInstance } from 'fastify'
import type { BrowserContext, Page, Route } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished } from 'vitest'
import { createApp } from '../../../infra/http/app.ts'
import { pageRoutes } from '../../../services/console/page-routes.ts'
import { shortId } from '../../../services/console/pages/shared/format.ts'
import type { Engines, LoggedInPerson, OpenSession } from '../../../services/console/schemas.ts'
import type { EndpointHealthSummary } from '../../../services/webhooks/endpoints/schemas.ts'
import { createProfile, openHeadless, type Profile } from '../../support/chromium.ts'
import { needs } from '../../support/needs.ts'
import { silent } from '../../support/projections.ts'
import { root } from '../../support/test-projects.ts'

const { describe, test } = needs('chromium')

const ann: LoggedInPerson = {
  object: 'console_session',
  id: 'csn_1',
  name: 'Ann',
  role: 'admin',
  scopes: ['*'],
  organization: { id: 'org_1', name: 'Acme' },
  environments: ['live', 'test'],
  csrf_token: 'token',
  api_url: 'https://tidegate.example',
  expires_at: '2026-11-28T08:00:00.000Z',
  warnings: [],
}
const engines: Engines = {
  engines: [{ engine: 'gecko', is_learned: false, visitors: 3, visitors_needed: 50 }],
  own_engine: 'blink',
  teaches_at_login: false,
}

const idOf = (kind: string, n: number) => `${kind}_${String(n).padStart(26, '0')}`

/** Recorded API responses, with times and ids in place of placeholders. */
const recorded: { name: string; json: { data: unknown } }[] = JSON.parse(
  readFileSync(path.join(root, 'test/fixtures/recorded/answers.json'), 'utf8')
    .replace(/<time[^>]*>/g, '2026-11-27T08:00:00.000Z')
    .replace(/"<(?:count|milliseconds)>"/g, '1')
    .replace(/"<counts>"/g, 'null')
    .replace(/<(\w+) (\d+)>/g, (_, kind, n) => idOf(kind, n)),
)
const recordedAs = (name: string) =>
  recorded.find((entry) => entry.name === name)?.json ?? { data: [] }

const [sessionId, visitorId] = [idOf('sid', 10), idOf('vid', 6)]
const shownVisitor = shortId(visitorId)
const at8 = '2026-11-27T08:00:00.000Z'

/** Members of a session that are sent when asked. */
const included = {
  timeline: [
    { kind: 'opened', at: at8, event_id: null, value: null },
    { kind: 'document_opened', at: at8, event_id: null, value: 'https://shop.example/cart?a=1' },
    { kind: 'user_changed', at: '2026-11-27T08:02:00.000Z', event_id: null, value: 'ann' },
  ],
  related: [
    { field: 'visitor_id', value: visitorId, sessions: 3, since: '2026-10-28T08:00:00.000Z' },
    { field: 'attribution', value: 'tool:playwright', sessions: 1000, since: at8 },
  ],
}

const rowsOf = (name: string) => [recordedAs(name).data].flat().map(Object)

/** Names of the recorded responses, by beginning of the path. */
const names: [start: string, name: string][] = [
  ['/v1/sessions/aggregates', 'count sessions: by verdict'],
  ['/v1/sessions/', 'session: of a bot, with the steps of its score'],
  ['/v1/sessions', 'list sessions: all, with how each was tied to its visitor'],
  ['/v1/fingerprints/', 'visitor: who came back'],
  ['/v1/fingerprints', 'list visitors: all'],
  ['/v1/organizations/org_1/webhooks/endpoints', 'list endpoints'],
  ['/v1/organizations/org_1/events', 'list events: all'],
  ['/v1/organizations/org_1/api-keys', 'list keys: all'],
  ['/v1/organizations/org_1/agent-directories', 'agent directories'],
  ['/v1/organizations/org_1/audit-log', 'audit log: all'],
  ['/v1/organizations/org_1/views', 'list views'],
  ['/v1/organizations/org_1/alerts', 'list alerts'],
  ['/v1/organizations/org_1', 'own organization'],
  ['/v1/scoring/model', 'getScoringModel with a narrow key'],
]

interface StubResponse {
  status?: number
  json?: object | undefined
}
type Api = (apiPath: string, route: Route) => StubResponse | Promise<StubResponse>

/** Aggregates with one group, as the overview requests them. */
const counted = (fields: string) => ({
  ...Object(recordedAs('count sessions: by verdict').data),
  groups: [
    {
      start: null,
      kind: 'value',
      values: Object.fromEntries(
        fields.split(',').map((name) => [name, name === 'handed_off' ? 'false' : `a_${name}`]),
      ),
      sessions: 4,
    },
  ],
})

const anomalies = {
  object: 'session_anomalies',
  since: at8,
  until: at8,
  has_history: true,
  baseline_days: 1,
  is_complete: true,
  sessions: 500,
  anomalies: [
    {
      values: [
        { field: 'attribution', value: 'tool:selenium', sessions: 260 },
        { field: 'page_path', value: '/signup', sessions: 250 },
      ],
      sessions: 260,
      expected: 10,
      lift: 12.3,
      bots: 260,
      bot_lift: 20,
      started_at: at8,
      ended_at: at8,
      series: [{ start: at8, sessions: 260, expected: 10 }],
    },
  ],
}

const people: OpenSession[] = ['Ann', 'Ben'].map((name) => ({
  id: `csn_${name}`,
  name,
  role: 'analyst',
  environments: ['live'],
  created_at: at8,
  last_used_at: at8,
  is_current: name === 'Ann',
}))

const health: EndpointHealthSummary = {
  status: 'failing',
  deliveries: 4,
  succeeded: 1,
  pending: 2,
  success_rate: 0.25,
  latency_p50_ms: 120,
  latency_p95_ms: 61_000,
  last_failure: { at: at8, event_id: idOf('evt', 3), response_status: 500, error: null },
}

/** Deliveries of the recorded events, as their endpoints list them, and their attempts. */
const deliveries = rowsOf('list events: all').flatMap((event) => event.webhook_deliveries)
const attempts = [1, 2].map((attempt) => ({
  object: 'webhook_attempt',
  attempt,
  succeeded: false,
  attempted_at: at8,
  duration_ms: 1200,
  request_headers: { 'webhook-id': idOf('evt', 3) },
  response_status: 500,
  response_body: `Not today, ${attempt}.`,
  error: null,
}))

const kept_days = { session_days: 90, decision_days: 30, visitor_days: 0, webhook_days: 30 }
const rate_limits = { secret: 600, publishable: 3000, scored_requests: 12_000, console: 600 }

const full: Api = (apiPath) => {
  if (apiPath === '/engines') return { json: { data: engines } }
  if (apiPath === '/people') return { json: { data: people } }
  if (apiPath.endsWith('/events/a%2Fb')) return failed(404)
  const [eventId] = /evt_\w+$/.exec(apiPath) ?? []
  if (eventId)
    return { json: { data: rowsOf('list events: all').find(({ id }) => id === eventId) } }
  if (apiPath === '/v1/organizations/org_1') {
    const { data_policy, ...organization } = Object(recordedAs('own organization').data)
    const data = { ...organization, data_policy: { ...data_policy, kept_days }, rate_limits }
    return { json: { data } }
  }
  if (apiPath.endsWith('/attempts')) return { json: { data: attempts } }
  if (apiPath.includes('/webhooks/deliveries?')) {
    const endpoint = new URLSearchParams(apiPath.split('?')[1]).get('endpoint_id')
    const data = deliveries.filter(({ endpoint_id }) => endpoint_id === endpoint)
    return { json: { data, pagination: { limit: 50, has_more: false } } }
  }
  if (apiPath.endsWith('/webhooks/endpoints'))
    return { json: { data: rowsOf('list endpoints').map((row) => ({ ...row, health })) } }
  if (apiPath.startsWith('/v1/sessions/anomalies')) return { json: { data: anomalies } }
  const by = new URLSearchParams(apiPath.split('?')[1]).get('group_by')
  if (by && by !== 'verdict') return { json: { data: counted(by) } }
  const [, name = ''] = names.find(([start]) => apiPath.startsWith(start)) ?? []
  const json = recordedAs(name)
  const isSession = apiPath.startsWith('/v1/sessions/')
  return { json: isSession ? { data: { ...Object(json.data), ...included } } : json }
}

const empty: Api = async (apiPath, route) => {
  const { json } = await full(apiPath, route)
  const none = { data: { is_complete: true, sessions: 0, visitors: 0, groups: [] } }
  if (apiPath.includes('/aggregates')) return { json: none }
  const noHistory = { ...anomalies, has_history: false, anomalies: [] }
  if (apiPath.includes('/anomalies')) return { json: { data: noHistory } }
  const isList = json && 'data' in json && Array.isArray(json.data)
  return {
    json: isList ? { data: [], pagination: { limit: 50, has_more: false }, meta: {} } : json,
  }
}

const failed = (status: number, error: object = {}) => ({
  status,
  json: { error: { code: 'x', message: 'The server says why.', ...error } },
})

let app: FastifyInstance
let baseUrl = ''
let profile: Profile
let context: BrowserContext
let page: Page
let person: LoggedInPerson | null = ann
let api: Api = full
const uncaught: Error[] = []

beforeAll(async () => {
  app = await createApp({ logger: silent, random: randomBytes, publicUrl: 'http://localhost' })
  await pageRoutes(app, async () => '')
  baseUrl = await app.listen({ port: 0, host: '127.0.0.1' })
  profile = await createProfile()
  context = await openHeadless(profile)
  page = await context.newPage()
  // Shows every list of the overview, which loads what is on the screen.
  await page.setViewportSize({ width: 1280, height: 2000 })
  page.on('pageerror', (error) => uncaught.push(error))
  await page.route('**/console/api/**', async (route) => {
    const apiPath = route.request().url().split('/console/api')[1] ?? ''
    const session = person ? { json: { data: person } } : failed(401)
    const response = await (apiPath === '/session' ? session : api(apiPath, route))
    const headers = { 'x-request-id': 'req_7' }
    // The page may have been closed meanwhile.
    await route.fulfill({ headers, ...response }).catch(() => {})
  })
})
beforeEach(() => {
  person = ann
  api = full
})
afterEach(() => expect(uncaught.splice(0)).toEqual([]))
afterAll(async () => {
  await context.close()
  await profile.remove()
  await app.close()
})

const open = (at: string) => page.goto(`${baseUrl}/console/${at}`)
const alerts = () => page.getByRole('alert')
const waiting = () => page.locator('.waiting')

/** Waits until the page shows all texts. */
const expectTexts = async (...texts: string[]) => {
  const shown = async () => (await page.locator('body').innerText()).replace(/\s+/g, ' ')
  for (const text of texts) await expect.poll(shown, { timeout: 10_000 }).toContain(text)
}

interface PageCase {
  at: string
  /** Number of parts that wait for their own response. */
  parts: number
  /** Number of parts that show that they are loading. Default: `parts`. */
  loading?: number
  data: [string, ...string[]]
  /** Texts if the API returns no rows. */
  empty?: string[]
}

const cases: PageCase[] = [
  {
    at: 'live/overview',
    // Numbers load once there is a session, and lists once the numbers are there.
    parts: 3,
    loading: 1,
    data: [
      'Inconclusive 60 %',
      '☑ Add the snippet with your publishable key',
      '☐ Attach a user id',
      'Visitors 5',
      'As a table',
      '+250 sessions from Selenium on /signup',
      '×12 100 % bots',
      'a_country 4 80 %',
      'ASa_asn',
      'a_agent_provider',
      'a_page_host 4 100 %',
    ],
    empty: ['☐ Send a first session', 'Try it on the demo page'],
  },
  {
    at: 'live/sessions',
    parts: 2,
    data: ['5 sessions, 5 visitors', 'inconclusive', 'com.example.shop', 'DE'],
    empty: ['0 sessions', 'No sessions in this period', 'or create a session on the demo page'],
  },
  {
    at: 'live/sessions?country=FR&group=country',
    parts: 3,
    data: ['a_country', '80 %'],
    empty: ['No sessions match these filters in this period', 'Clear all filters'],
  },
  {
    at: `live/sessions/${sessionId}`,
    parts: 1,
    data: [
      'bot 100',
      'final decision',
      'new User none',
      'Reasons for bot',
      'Browser automation markers were detected.',
      'Reasons for human',
      '+0 ms Page opened: /cart',
      '+2 minutes User attached: ann',
      `Visitor ${shownVisitor} 30 days 3`,
      'Tool playwright',
      '1 000+',
      'Label as',
      'Score breakdown',
      'WebDriver detected',
      'AS64512 Example Net',
      'Agent none declared',
      'Not counted',
    ],
  },
  {
    at: 'live/visitors',
    parts: 1,
    data: [shownVisitor, 'Last seen'],
    empty: ['No visitors yet.'],
  },
  {
    at: 'live/visitors?user=ann',
    parts: 1,
    data: ['Visitors of user ann', shortId(idOf('vid', 2)), 'inconclusive', 'DE'],
    empty: ['No sessions with this user id.'],
  },
  {
    at: `live/visitors/${visitorId}`,
    parts: 1,
    data: [shownVisitor, 'Storage available', 'Sessions, newest first', 'Actions'],
    empty: ['Sessions deleted by retention'],
  },
  {
    at: 'live/webhooks',
    parts: 2,
    data: [
      'Refuses',
      'Failing',
      '25 % of 4',
      '120 ms, 1 minute',
      'Accepts',
      'failed 500',
      'succeeded 200',
    ],
    empty: ['No endpoints yet.', 'No events yet.'],
  },
  {
    at: `live/webhooks?endpoint_id=${idOf('we', 3)}`,
    parts: 2,
    data: ['Deliveries to Refuses', '25 % of 4, 3 failed', 'failed 500', 'webhook.test 2'],
    empty: ['No deliveries match these filters in this period.'],
  },
  {
    at: 'live/settings',
    parts: 1,
    data: ['Create key', 'publishable, native-android', 'Active', 'Any origin'],
    empty: ['Create key'],
  },
  {
    at: 'live/settings?tab=install',
    parts: 1,
    data: ['Send sessions', 'https://tidegate.example/t.js'],
    empty: ['pk_...'],
  },
  {
    at: 'live/settings?tab=agents',
    parts: 1,
    data: ['agent.example', 'Acme'],
    empty: ['No agent directories.'],
  },
  {
    at: 'live/settings?tab=data',
    parts: 3,
    data: [
      'Sessions 90 days',
      'Visitors forever',
      'Sessions today 5',
      'Secret keys 600 units per minute',
      'tidegate-6',
      '3 of 50 visitors',
    ],
  },
  {
    at: 'live/settings?tab=people',
    parts: 1,
    data: ['Ben', 'analyst', 'You', 'End session'],
    empty: ['Create login link'],
  },
  {
    at: 'live/settings?tab=audit',
    parts: 1,
    data: ['Organization renamed', 'API key issued', 'operator: keys create'],
    empty: ['No changes match these filters in this period.'],
  },
]

describe.each(cases)('$at', ({ at, parts, loading = parts, data, empty: nothing }) => {
  test('shows that it is loading, and then the data', async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    api = async (apiPath, route) => {
      await released
      return full(apiPath, route)
    }
    await open(at)
    await expect.poll(() => waiting().count()).toBe(loading)
    release()
    await expectTexts(...data)
    expect([await waiting().count(), await alerts().count()]).toEqual([0, 0])
  })

  test('shows a server error with the request id, and a retry succeeds', async () => {
    api = () => failed(500)
    await open(at)
    await expect.poll(() => alerts().count()).toBe(parts)
    await expectTexts('This could not be loaded.', 'The server says why.', 'Request req_7')
    api = full
    // A part may contain parts that failed too.
    const errorsAfterRetry = async () => {
      const again = page.getByRole('button', { name: 'Try again' }).first()
      if ((await again.count()) > 0) await again.click({ timeout: 1000 }).catch(() => {})
      return alerts().count()
    }
    await expect.poll(errorsAfterRetry, { timeout: 20_000 }).toBe(0)
    await expectTexts(data[0])
  })

  test('shows that permission is missing, without a retry button', async () => {
    api = () => failed(403)
    await open(at)
    await expect.poll(() => alerts().count()).toBe(parts)
    await expectTexts('You do not have permission to view this.', 'The server says why.')
    expect(await page.getByRole('button', { name: 'Try again' }).count()).toBe(0)
  })

  if (nothing)
    test('shows that there is no data', async () => {
      api = empty
      await open(at)
      await expectTexts(...nothing)
      expect(await alerts().count()).toBe(0)
    })
})

describe('the overview', () => {
  const dismiss = async () => {
    await open('live/overview')
    await page.getByRole('button', { name: 'Dismiss' }).click()
    onTestFinished(() => page.evaluate(() => localStorage.clear()))
  }
  const requests = async (at: string) => {
    const paths: string[] = []
    api = (apiPath, route) => {
      paths.push(apiPath)
      return full(apiPath, route)
    }
    await open(at)
    await expectTexts('+250 sessions from Selenium', 'a_country')
    return paths
  }

  test('without any session is the setup, and requests no counts', async () => {
    const paths: string[] = []
    api = (apiPath, route) => {
      paths.push(apiPath)
      return empty(apiPath, route)
    }
    await open('live/overview')
    await expectTexts('☐ Send a first session')
    expect(await page.locator('main').innerText()).not.toContain('Anomalies')
    expect(paths.filter((at) => /aggregates|anomalies/.test(at))).toEqual([])
  })

  test('says that only the newest sessions were counted, and links to those', async () => {
    api = async (apiPath, route) => {
      const { json } = await full(apiPath, route)
      const data = {
        ...Object(json && 'data' in json && json.data),
        is_complete: false,
        since: at8,
      }
      return { json: /aggregates|anomalies/.test(apiPath) ? { data } : json }
    }
    await open('live/overview')
    await expectTexts(
      'Inconclusive 60 % newest only',
      'Newest sessions only',
      'Newest sessions only, since',
    )
    expect(await page.getByText('in the previous period').count()).toBe(0)
    for (const name of [/^Bots/, 'a_country'])
      expect(
        await page.locator('main').getByRole('link', { name }).first().getAttribute('href'),
      ).toContain(`since=${encodeURIComponent(at8)}`)
  })

  test('counts hand-offs over all hosts, and links only numbers with a list of their sessions', async () => {
    const handOffs = (await requests('live/overview')).filter((at) =>
      at.includes('group_by=handed_off&'),
    )
    expect(handOffs).toHaveLength(2)
    expect(await page.locator('div.stat').allInnerTexts()).toEqual([
      expect.stringContaining('Visitors'),
    ])
  })

  test('remembers per environment that the setup was dismissed, and then does not request it', async () => {
    await dismiss()
    await expect.poll(() => page.getByText('Getting started').count()).toBe(0)
    expect((await requests('live/overview')).filter((at) => /keys|endpoints/.test(at))).toEqual([])
    await open('test/overview')
    await expectTexts('Getting started')
  })

  test('without data says so in each part', async () => {
    await dismiss()
    api = empty
    await open('live/overview')
    await expectTexts('Not enough history yet', 'No data in this period', 'Sessions 0')
  })

  test('splits the chart by a field that is in the URL', async () => {
    await open('live/overview')
    const legend = page.locator('.legend')
    await legend.getByText('inconclusive').waitFor()
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    api = async (apiPath, route) => {
      await released
      return full(apiPath, route)
    }
    await page.getByLabel('Sessions by').selectOption('country')
    await expect.poll(() => legend.innerText()).toBe('')
    release()
    await legend.getByText('a_country').waitFor()
    expect(page.url()).toMatch(/split=country$/)
    await page.goBack()
    await legend.getByText('inconclusive').waitFor()
  })

  test('keeps the order of values in the table of the chart, whatever their names are', async () => {
    const values = ['b', '2', 'other', '1']
    const start = new Date(Math.floor(Date.now() / 3_600_000) * 3_600_000).toISOString()
    api = async (apiPath, route) => {
      if (!apiPath.includes('interval=') || !apiPath.includes('country'))
        return full(apiPath, route)
      const groups = values.map((country, i) => ({
        start,
        kind: 'value',
        values: { country },
        sessions: 9 - i,
      }))
      const other = { start, kind: 'other', values: { country: null }, sessions: 3 }
      return { json: { data: { is_complete: true, groups: [...groups, other] } } }
    }
    await open('live/overview?split=country')
    await page.getByText('As a table').click()
    const table = page.getByRole('region', { name: 'Sessions over time' })
    const titles = await table.getByRole('columnheader').allInnerTexts()
    expect(titles).toEqual(['Start', ...values, 'other'])
    const [, ...counts] = await table.getByRole('row').last().getByRole('cell').allInnerTexts()
    expect(counts).toEqual(['9', '8', '7', '6', '3'])
  })

  test('requests only the lists on the screen', async () => {
    await page.setViewportSize({ width: 1280, height: 300 })
    onTestFinished(() => page.setViewportSize({ width: 1280, height: 2000 }))
    await open('live/overview')
    const paths: string[] = []
    page.on('request', (request) => paths.push(request.url()))
    await page.reload()
    await expectTexts('+250 sessions from Selenium')
    const ofCountries = () => paths.filter((at) => at.includes('group_by=country')).length
    expect(ofCountries()).toBe(0)
    await page.getByRole('heading', { name: 'Countries' }).scrollIntoViewIfNeeded()
    await expect.poll(ofCountries).toBe(1)
  })
})

describe('every page', () => {
  test('shows that the server does not respond', async () => {
    api = async (_, route) => {
      await route.abort()
      return {}
    }
    await open('live/visitors')
    await expectTexts('The server is not responding. Retrying')
    expect(await alerts().count()).toBe(0)
    api = full
    await expectTexts(shownVisitor)
    await expect.poll(() => page.getByText('The server is not responding').count()).toBe(0)
  })

  test('shows the login form when the session is over', async () => {
    api = () => failed(401)
    await open('live/visitors')
    await expectTexts('Tidegate console', 'Or use a secret key')
  })

  test('links somewhere else if it does not exist', async () => {
    await open('live/nothing')
    await expectTexts('Page not found', 'Go to the overview')
    person = { ...ann, environments: ['test'] }
    await open('live/sessions')
    await expectTexts('Your session has no access to the environment live', 'Go to test')
    api = () => failed(404, { details: { merged_into: 'vid_other' } })
    await open(`test/visitors/${visitorId}`)
    await expectTexts('This visitor was merged into another', 'moved to vid_other')
    const erasure = { id: 'ers_1', erased_at: '2026-11-27T08:00:00.000Z' }
    api = () => failed(404, { details: { erasure } })
    await open(`test/visitors/${visitorId}`)
    await expectTexts('This visitor was erased', 'Erased on 27 Nov 2026', '(ers_1)')
    expect(await page.getByRole('button', { name: 'Try again' }).count()).toBe(0)
  })

  test('shows warnings about settings at the top', async () => {
    person = { ...ann, warnings: ['PUBLIC_URL is not set.'] }
    await open('live/visitors')
    await expectTexts('PUBLIC_URL is not set.', shownVisitor)
  })

  test('links saved views below Sessions, and marks the current one', async () => {
    const views = [
      { id: 'view_1', name: 'Bots from FR', query: 'verdict=bot&country=FR' },
      { id: 'view_2', name: 'Sign-ups', query: 'url_path=%2Fsignup' },
    ]
    api = (apiPath, route) =>
      apiPath.endsWith('/views') ? { json: { data: views } } : full(apiPath, route)
    await open('live/overview')
    await page.getByRole('link', { name: 'Bots from FR' }).click()
    expect(new URL(page.url()).search).toBe('?verdict=bot&country=FR&view=view_1')
    const current = page.locator('nav[aria-label="Main"] [aria-current]')
    await expect.poll(() => current.allInnerTexts()).toEqual(['Bots from FR'])
  })

  test('opens and closes menus and dialogs by keyboard, and returns the focus', async () => {
    await open('live/visitors')
    const focused = () => page.evaluate('document.activeElement?.textContent')
    const account = page.getByRole('button', { name: 'Ann' })
    await account.press('Enter')
    await expect.poll(focused).toBe('Sign out')
    await page.keyboard.press('ArrowDown')
    expect(await focused()).toBe('Sign out everywhere')
    await page.keyboard.press('ArrowDown')
    expect(await focused()).toBe('Sign out')
    await page.keyboard.press('Escape')
    await expect.poll(() => account.getAttribute('aria-expanded')).toBe('false')
    expect(await focused()).toBe('Ann')
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
    await page.keyboard.press('Escape')
    await expect.poll(() => page.getByRole('dialog').count()).toBe(0)
    expect(await focused()).toBe('Ann')
    await account.click()
    await page.getByRole('heading', { level: 1 }).click()
    await expect.poll(() => page.getByRole('button', { name: 'Sign out' }).count()).toBe(0)
  })

  test('shows that signing out failed', async () => {
    await open('live/visitors')
    api = () => failed(503)
    await page.getByRole('button', { name: 'Ann' }).click()
    await page.getByRole('button', { name: 'Sign out', exact: true }).click()
    await expectTexts('You are still signed in. The server says why.')
  })

  test.each([
    [`sessions?open=${idOf('sid', 13)}`, ['Open as page', 'bot 100'], 'inconclusive 40'],
    [`webhooks?open=${idOf('evt', 3)}`, ['Payload', 'Not today, 2.'], 'failed 500'],
  ])('%s opens a row and highlights it in the list', async (at, shown, row) => {
    await open(`live/${at}`)
    await expectTexts(...shown)
    const selected = await page.locator('tr[aria-selected="true"]').allInnerTexts()
    expect(selected.map((text) => text.replace(/\s+/g, ' '))).toEqual([
      expect.stringContaining(row),
    ])
  })

  test('focuses the search with a key, and keeps the search in the URL', async () => {
    await open('live/visitors')
    await expectTexts(shownVisitor)
    await page.keyboard.press('/')
    await page.keyboard.type(' ann ')
    await page.keyboard.press('Enter')
    await expectTexts('Visitors of user ann')
    expect(page.url()).toMatch(/\/live\/visitors\?user=ann$/)
  })

  test('shows why a CSV export failed, and allows another try', async () => {
    await open('live/sessions')
    api = (apiPath, route) => (apiPath.includes('limit=200') ? failed(500) : full(apiPath, route))
    const button = page.getByRole('button', { name: 'CSV' })
    await button.click()
    await expectTexts('The server says why.')
    await expect.poll(() => button.isEnabled()).toBe(true)
  })

  test('truncates a CSV export at 10,000 rows, and says so', async () => {
    await open('live/sessions')
    api = async (apiPath, route) => {
      const { json } = await full(apiPath, route)
      if (!apiPath.includes('limit=200')) return { json }
      const rows = json && 'data' in json && Array.isArray(json.data) ? json.data : []
      const data = Array.from({ length: 200 }, (_, i) => rows[i % rows.length])
      return { json: { ...json, data, pagination: { next_cursor: 'c' } } }
    }
    const saved = page.waitForEvent('download')
    await page.getByRole('button', { name: 'CSV' }).click()
    await expectTexts('Saved only the first')
    expect((await saved).suggestedFilename()).toBe('sessions-first-10000.csv')
    const lines = readFileSync(await (await saved).path(), 'utf8')
      .trimEnd()
      .split('\r\n')
    expect(lines).toHaveLength(10_001)
  })

  test('lists no filter menu for a missing value', async () => {
    await open('live/sessions?columns=agent,user')
    await expectTexts('5 sessions', 'Agent')
    expect(await page.locator('tbody .more').count()).toBe(0)
  })

  test('keeps the loaded rows when the next page fails', async () => {
    api = async (apiPath, route) => {
      if (apiPath.includes('cursor=')) return failed(500)
      const { json } = await full(apiPath, route)
      return { json: { ...json, pagination: { next_cursor: 'c' }, meta: {} } }
    }
    for (const [at, shown] of [
      ['live/sessions', 'com.example.shop'],
      ['live/visitors', shownVisitor],
      [`live/webhooks?endpoint_id=${idOf('we', 3)}`, 'failed 500'],
    ] as const) {
      await open(at)
      await page.getByRole('button', { name: 'Load more' }).click()
      await expectTexts('The server says why.', shown)
    }
  })
})

describe('the list of sessions', () => {
  const drawer = () => page.getByRole('complementary')
  const focusedRow = () =>
    page.evaluate(
      "document.activeElement?.dataset.row ?? document.activeElement?.closest('tr')?.dataset.id",
    )

  test('shows nothing of the previous session while the next loads', async () => {
    const opened = idOf('sid', 13)
    const path = (apiPath: string) => apiPath.startsWith('/v1/sessions/sid')
    await open(`live/sessions?open=${opened}`)
    await drawer().getByText('Label as').waitFor()
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    api = async (apiPath, route) => {
      if (path(apiPath) && !apiPath.includes(opened)) await released
      return full(apiPath, route)
    }
    await page.keyboard.press('j')
    await drawer().locator('.waiting').waitFor()
    expect(await drawer().getByText('Label as').count()).toBe(0)
    release()
    await drawer().getByText('Label as').waitFor()
  })

  test.each([
    [`sessions?open=${idOf('sid', 13)}`, 'Reasons for bot', idOf('sid', 13)],
    [`webhooks?open=${idOf('evt', 3)}`, 'Payload', idOf('evt', 3)],
  ])('%s returns the focus to the row after a click into the drawer', async (at, heading, id) => {
    await open(`live/${at}`)
    await drawer().getByRole('heading', { name: heading }).click()
    await page.keyboard.press('Escape')
    await expect.poll(focusedRow).toBe(id)
  })

  test('labels a row of a further page in the drawer', async () => {
    const rows = rowsOf('list sessions: all, with how each was tied to its visitor')
    const [last] = rows
    const data = { id: 'mrk_1', label: 'fraud', reason: null, created_at: at8 }
    api = async (apiPath, route) => {
      if (apiPath === '/v1/marks') return { json: { data } }
      if (apiPath.includes('cursor=')) return { json: { data: [last], pagination: {}, meta: {} } }
      const { json } = await full(apiPath, route)
      if (apiPath.startsWith('/v1/sessions?'))
        return { json: { data: rows.slice(1), pagination: { next_cursor: 'c' }, meta: {} } }
      const isSession = apiPath.startsWith(`/v1/sessions/${last.id}`)
      return { json: isSession ? { data: { ...Object(json).data, id: last.id } } : json }
    }
    await open('live/sessions')
    await page.getByRole('button', { name: 'Load more' }).click()
    const row = page.locator(`tr[data-id="${last.id}"]`)
    await row.getByRole('link', { name: /^Session/ }).click()
    await drawer().getByRole('button', { name: 'fraud' }).click()
    await row.getByText('fraud').waitFor()
  })

  test('filters by the first offered value on Enter', async () => {
    await open('live/sessions')
    await page.getByRole('button', { name: 'Filter', exact: true }).click()
    await page.getByRole('link', { name: /^inconclusive/ }).waitFor()
    await page.getByLabel('Value').fill('INC')
    await page.keyboard.press('Enter')
    await expect.poll(() => new URL(page.url()).search).toBe('?verdict=inconclusive')
  })

  test('filters by a score only if it is one', async () => {
    await open('live/sessions')
    await page.getByRole('button', { name: 'Filter', exact: true }).click()
    await page.getByLabel('Field').selectOption('Score at least')
    const value = page.getByLabel('Value')
    await value.fill('101')
    await value.press('Enter')
    expect(await value.evaluate((input: HTMLInputElement) => input.validity.rangeOverflow)).toBe(
      true,
    )
    expect(new URL(page.url()).search).toBe('')
    await value.fill('70')
    await value.press('Enter')
    await expect.poll(() => new URL(page.url()).search).toBe('?score_min=70')
  })

  test('shows a custom range whose ends are entered in either order', async () => {
    await open('live/sessions')
    await page.getByRole('button', { name: 'Custom' }).click()
    await page.getByLabel('From').fill('2026-11-27T11:00')
    await page.getByLabel('Until').fill('2026-11-27T10:00')
    await page.getByRole('button', { name: 'Show' }).click()
    const iso = (text: string) => encodeURIComponent(new Date(text).toISOString())
    await expect
      .poll(() => new URL(page.url()).search)
      .toBe(`?since=${iso('2026-11-27T10:00')}&until=${iso('2026-11-27T11:00')}`)
  })

  const exportOf = (second: Api): Api => {
    return async (apiPath, route) => {
      if (!apiPath.includes('limit=200')) return full(apiPath, route)
      if (apiPath.includes('cursor=')) return second(apiPath, route)
      const { json } = await full(apiPath, route)
      return { json: { ...json, pagination: { next_cursor: 'c' } } }
    }
  }
  const never: Api = () => Promise.withResolvers<StubResponse>().promise
  const startExport = async () => {
    const further = page.waitForRequest(/limit=200&cursor=c/)
    await page.getByRole('button', { name: 'CSV' }).click()
    await further
  }

  test.each([
    ['failed', () => failed(429), 'The server says why.'],
    ['was canceled', never, 'Canceled'],
  ])('saves the rows of a CSV export that %s', async (_, second, message) => {
    await open('live/sessions')
    api = exportOf(second)
    await startExport()
    if (second === never) await page.getByRole('button', { name: 'Cancel' }).click()
    await expectTexts(message)
    const saved = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Save the first 5 rows' }).click()
    expect((await saved).suggestedFilename()).toBe('sessions-first-5.csv')
  })

  test('stops a CSV export when the page is left', async () => {
    await open('live/sessions')
    api = exportOf(never)
    await startExport()
    const canceled = page.waitForEvent('requestfailed', (request) =>
      request.url().includes('limit=200'),
    )
    await page.getByRole('link', { name: 'Visitors' }).click()
    expect((await canceled).failure()?.errorText).toContain('ABORTED')
  })
})

describe('a saved view', () => {
  const view = { id: 'view_1', name: 'Bots from FR', query: 'verdict=bot&country=FR' }
  const requests: string[] = []
  const withView: Api = (apiPath, route) => {
    if (!apiPath.includes('/views')) return full(apiPath, route)
    const method = route.request().method()
    if (method === 'GET') return { json: { data: [view] } }
    requests.push(`${method} ${apiPath.split('/').pop()} ${route.request().postData()}`)
    return method === 'DELETE' ? { status: 204 } : { json: { data: view } }
  }
  const act = async (action: string) => {
    await page.getByRole('button', { name: 'Edit view' }).click()
    await page.getByRole('button', { name: action, exact: true }).click()
  }
  beforeEach(async () => {
    requests.length = 0
    api = withView
    await open('live/sessions?verdict=bot&country=FR&view=view_1')
  })

  test('is deleted only after a confirmation', async () => {
    await act('Delete')
    await expectTexts('Delete Bots from FR?', 'for everyone in this environment')
    expect(requests).toEqual([])
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await expect.poll(() => requests).toEqual(['DELETE view_1 null'])
    await expect.poll(() => page.url()).not.toContain('view_1')
  })

  test('is saved as a new one under a name to enter', async () => {
    await act('Save as new')
    expect(await page.getByLabel('Name').inputValue()).toBe('')
    await page.getByLabel('Name').fill('Mine')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    const body = JSON.stringify({ name: 'Mine', query: 'country=FR&verdict=bot' })
    await expect.poll(() => requests).toEqual([`POST views ${body}`])
  })

  test('is in a menu on a phone', async () => {
    const views = page.getByRole('button', { name: 'Views', exact: true })
    await expectTexts('Bots from FR')
    expect(await views.isVisible()).toBe(false)
    await page.setViewportSize({ width: 360, height: 800 })
    onTestFinished(() => page.setViewportSize({ width: 1280, height: 2000 }))
    await open('live/sessions')
    await views.click()
    await page.getByRole('link', { name: 'Bots from FR' }).click()
    await expect.poll(() => page.url()).toContain('view=view_1')
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360)
  })
})

test('the link to the content moves the focus there', async () => {
  await open('live/visitors')
  await page.getByRole('link', { name: 'Skip to content' }).press('Enter')
  await expect.poll(() => page.evaluate('document.activeElement?.id')).toBe('main')
})

test('the id of an event in the URL is encoded in the request', async () => {
  const request = page.waitForRequest(/events.a%2Fb/)
  await open('live/webhooks?open=a%2Fb')
  expect((await request).url()).toMatch(/\/events\/a%2Fb$/)
})

test('the failures of an endpoint are filtered, and opening one requests no other period', async () => {
  await open('live/webhooks')
  await page.getByRole('link', { name: '3 failed' }).first().click()
  await expectTexts('Deliveries to Refuses')
  expect(await page.getByRole('row', { name: /Accepts/ }).count()).toBe(0)
  const status = page.getByLabel('Statuses')
  expect(await status.inputValue()).toBe('failed pending')
  expect(new URL(page.url()).searchParams.getAll('status')).toEqual(['failed', 'pending'])
  const lists: string[] = []
  page.on('request', (request) => lists.push(new URL(request.url()).search))
  await status.selectOption('failed')
  await page.getByRole('link', { name: 'webhook.test' }).click()
  const drawer = page.getByRole('complementary')
  await drawer.getByText('Not today, 2.').waitFor()
  expect(await drawer.getByText('Not today, 1.').isVisible()).toBe(false)
  await drawer.getByText('Attempt 1').press('Enter')
  await drawer.getByText('Not today, 1.').waitFor()
  const periods = lists
    .filter((search) => search.includes('status='))
    .map((search) => {
      const query = new URLSearchParams(search)
      return [query.get('since'), query.getAll('status').join()]
    })
  expect(new Set(periods.map(String)).size).toBe(1)
  await page.keyboard.press('Escape')
  await page.getByRole('link', { name: 'Show all endpoints' }).click()
  await expectTexts('Accepts')
})

describe('deliveries are sent again', () => {
  const bodies: { since: string; until: string; status: string }[] = []
  const resends = async (respond: (n: number) => Promise<StubResponse>) => {
    bodies.length = 0
    api = (apiPath, route) => {
      if (!apiPath.endsWith('/resend')) return full(apiPath, route)
      bodies.push(route.request().postDataJSON())
      return respond(bodies.length)
    }
    await open('live/webhooks')
    await page.getByRole('button', { name: 'Actions for Refuses' }).click()
    await page.getByRole('button', { name: 'Resend …' }).click()
    await page.getByLabel('Deliveries').selectOption('all')
    await page.getByLabel('From').fill('2026-11-26T08:00')
    await page.getByRole('button', { name: 'Resend', exact: true }).click()
  }
  const resent = (count: number, next_since: string | null) => ({
    json: { data: { object: 'webhook_resend', resent: count, next_since } },
  })

  test('request by request, until none is left', async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    await resends(async (n) => {
      if (n === 1) return resent(1000, at8)
      await released
      return resent(3, null)
    })
    await expectTexts('Queued 1 000 deliveries …')
    release()
    await expectTexts('Queued 1 003 deliveries.')
    expect(bodies.map(({ since, status }) => [since, status])).toEqual([
      [new Date('2026-11-26T08:00').toISOString(), 'all'],
      [at8, 'all'],
    ])
    expect(new Set(bodies.map(({ until }) => until)).size).toBe(1)
  })

  test('and a failed request shows how many were queued before', async () => {
    await resends(async (n) => (n === 1 ? resent(1000, at8) : failed(503)))
    await expectTexts('Queued 1 000 deliveries …', 'The server says why.')
  })
})

test('an edited key keeps the seconds of its expiry, and loses it if the field is emptied', async () => {
  const expires_at = '2030-01-02T03:04:05.678Z'
  const bodies: { expires_at: string | null }[] = []
  api = async (apiPath, route) => {
    const { json } = await full(apiPath, route)
    if (!apiPath.includes('/api-keys')) return { json }
    if (route.request().method() === 'PATCH') bodies.push(route.request().postDataJSON())
    return { json: { data: rowsOf('list keys: all').map((key) => ({ ...key, expires_at })) } }
  }
  const save = async (value?: string) => {
    await open('live/settings')
    await page
      .getByRole('button', { name: /^Actions/ })
      .first()
      .click()
    await page.getByRole('button', { name: 'Edit' }).click()
    if (value !== undefined) await page.getByLabel('Expires').fill(value)
    await page.getByRole('button', { name: 'Save' }).click()
    await expect.poll(() => page.getByRole('dialog').count()).toBe(0)
  }
  await save()
  await save('2031-01-01T00:00')
  await save('')
  const changed = new Date('2031-01-01T00:00').toISOString()
  expect(bodies.map((body) => body.expires_at)).toEqual([expires_at, changed, null])
})

test('a dialog stays open until its secret is shown', async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  api = async (apiPath, route) => {
    if (route.request().method() !== 'POST') return full(apiPath, route)
    await released
    return { json: { data: { signing_secret: 'whsec_1' } } }
  }
  await open('live/webhooks')
  await page.getByRole('button', { name: 'Add endpoint' }).click()
  await page.getByRole('button', { name: 'Add', exact: true }).click()
  const cancel = page.getByRole('dialog').getByRole('button', { name: 'Cancel' })
  await expect.poll(() => cancel.isDisabled()).toBe(true)
  await page.keyboard.press('Escape')
  await page.keyboard.press('Escape')
  release()
  await expectTexts('It is shown only once.', 'whsec_1')
  await page.keyboard.press('Escape')
  await expect.poll(() => page.getByRole('dialog').count()).toBe(0)
})

test('a dialog returns the focus to the menu that opened it, and closes when the page changes', async () => {
  await open('live/webhooks')
  await page.getByRole('link', { name: 'Refuses' }).click()
  const menu = page.getByRole('button', { name: 'Actions for Refuses' })
  const edit = async () => {
    await menu.click()
    await page.getByRole('button', { name: 'Edit' }).click()
    await page.getByRole('dialog').waitFor()
  }
  await edit()
  await page.keyboard.press('Escape')
  await expect.poll(() => menu.evaluate((button) => button.matches(':focus'))).toBe(true)
  await edit()
  await page.goBack()
  await expect.poll(() => page.getByRole('dialog').count()).toBe(0)
})

test('a login link is not redeemed while the session is unknown, but after a retry', async () => {
  const logins: unknown[] = []
  person = null
  api = (apiPath, route) => {
    if (apiPath !== '/login') return full(apiPath, route)
    logins.push(route.request().postDataJSON())
    person = ann
    return {}
  }
  await page.route('**/console/api/session', (route) => route.fulfill(failed(503)), { times: 1 })
  await open('live/visitors#code=conlog_1')
  await expectTexts('The console could not be loaded.', 'The server says why.')
  expect(logins).toEqual([])
  await page.getByRole('button', { name: 'Try again' }).click()
  await expectTexts(shownVisitor)
  expect(logins).toEqual([{ code: 'conlog_1' }])
})

test.each([
  [`sessions/${sessionId}`, 'final decision', ['Label as', 'Attach']],
  [`visitors/${visitorId}`, 'Storage available', ['Actions', 'Select']],
  ['webhooks', 'Refuses', ['Add endpoint', 'Actions']],
  ['settings', 'publishable', ['Create key', 'Actions', 'People']],
  ['settings?tab=agents', 'agent.example', ['Add directory', 'Remove']],
  ['settings?tab=people', 'publishable', ['Create login link']],
  ['settings?tab=data', '3 of 50 visitors', ['Teach']],
])('a viewer sees %s without the actions that need other scopes', async (at, shown, actions) => {
  person = { ...ann, role: 'viewer', scopes: ['sessions:read'] }
  await open(`live/${at}`)
  await expectTexts(shown)
  const text = await page.locator('main').innerText()
  expect(actions.filter((action) => text.includes(action))).toEqual([])
})

test.each([
  [`sessions/${sessionId}`, 'fraud'],
  [`sessions/${sessionId}`, 'Save', 'Attach'],
  [`visitors/${visitorId}`, 'Export as JSON', 'Actions'],
  ['webhooks', 'Send test event', 'Actions for Refuses'],
  ['settings?tab=data', /^Teach Blink/],
])('a failed action shows the reason, %s: %s', async (at, name, menu?: string) => {
  await open(`live/${at}`)
  if (menu) await page.getByRole('button', { name: menu }).click()
  const button = page.getByRole('button', { name }).first()
  await button.waitFor()
  api = (apiPath, route) =>
    route.request().method() === 'GET' && !/export|questions/.test(apiPath)
      ? full(apiPath, route)
      : failed(409)
  await button.click()
  await expect.poll(() => alerts().allInnerTexts()).toEqual(['The server says why.'])
})

test('the login page shows why a key failed, and accepts another', async () => {
  person = null
  api = () => failed(401)
  await open('')
  await page.getByLabel(/secret key/).fill('sk_live_wrong')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await expectTexts('The server says why.')
  expect(await page.getByLabel(/secret key/).inputValue()).toBe('')
  api = (apiPath, route) => {
    if (apiPath === '/login') person = ann
    return full(apiPath, route)
  }
  await page.getByLabel(/secret key/).fill('sk_live_right')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await expectTexts('Overview', 'Ann')
})

test('a double click on “Sign in” opens one session', async () => {
  person = null
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  let logins = 0
  api = async (apiPath, route) => {
    if (apiPath !== '/login') return full(apiPath, route)
    logins++
    await released
    person = ann
    return full(apiPath, route)
  }
  await open('')
  await page.getByLabel(/secret key/).fill('sk_live_right')
  await page.getByRole('button', { name: 'Sign in' }).dblclick()
  release()
  await expectTexts('Overview', 'Ann')
  expect(logins).toBe(1)
})

test('the login page shows why a link failed, and removes the code from the URL', async () => {
  person = null
  api = () => failed(401)
  await open('#code=conlog_used')
  await expectTexts('The server says why.', 'It works once, for five minutes.')
  expect(page.url()).not.toContain('conlog')
})

test('a session without visitor or score steps says so', async () => {
  api = async (apiPath, route) => {
    const { json } = await full(apiPath, route)
    if (!json || !('data' in json) || !apiPath.startsWith('/v1/sessions/sid')) return { json }
    const session = Object(json.data)
    const score = { ...session.score, steps: null }
    return {
      json: { data: { ...session, visitor_fingerprint: null, client_user_id: 'ann', score } },
    }
  }
  await open(`live/sessions/${sessionId}`)
  await expectTexts('Visitor none User ann', 'is not stored here')
})

test('a correction that is refused says why at its field', async () => {
  await open(`live/visitors/${visitorId}`)
  const fields = [{ name: 'visitor_id', issue: 'not_found' }]
  await page.getByRole('button', { name: 'Actions' }).click()
  await page.getByRole('button', { name: 'Merge …' }).click()
  api = () => failed(422, { details: { fields } })
  await page.getByRole('button', { name: 'Merge', exact: true }).click()
  const field = page.getByLabel('Id of the other visitor')
  await expect.poll(() => field.getAttribute('aria-invalid')).toBe('true')
  await expectTexts('Has an unknown id.')
})

test('groups are split by verdict only once all counts are of the same period', async () => {
  const cells = async () =>
    (await page.locator('main tbody tr').first().innerText()).trim().split(/\s+/)
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  await open('live/sessions?group=country')
  await expect.poll(cells).toEqual(['a_country', '4', '80', '%'])
  const sessions = (apiPath: string) => (apiPath.includes('not') ? 1 : 3)
  api = async (apiPath, route) => {
    if (apiPath.includes('not')) await released
    if (!apiPath.includes('group_by=country')) return full(apiPath, route)
    const { groups, ...data } = counted('country')
    const all = [{ ...groups[0], sessions: sessions(apiPath) }]
    return { json: { data: { ...data, groups: all } } }
  }
  await page.getByRole('link', { name: '7d' }).click()
  await expect.poll(cells).toEqual(['a_country', '3', '60', '%'])
  release()
  await expect.poll(cells).toEqual(['a_country', '3', '60', '%', '1', '1', '1'])
})

test('the number of a visitor’s sessions links to all of them', async () => {
  await open(`live/visitors/${visitorId}`)
  await expectTexts('Storage available')
  const link = page.locator('dd a[href*="visitor_id="]')
  expect(await link.getAttribute('href')).toContain(`since=${encodeURIComponent(at8)}&until=`)
})

test('Gate settings request no signup counts without a service', async () => {
  const paths: string[] = []
  api = (apiPath, route) => {
    paths.push(apiPath)
    return full(apiPath, route)
  }
  await open('live/settings?tab=gate')
  await expectTexts('No service is registered in live.')
  expect(paths.filter((at) => at.includes('signup-counts'))).toEqual([])
})

test('the button that ends a session names its person', async () => {
  await open('live/settings?tab=people')
  await page.getByRole('button', { name: 'End session of Ben' }).waitFor()
})

test('a visitor has a list of users if there are any', async () => {
  const users = 'Users'
  await open(`live/visitors/${visitorId}`)
  await expectTexts('Storage available', 'Sessions, newest first')
  expect(await page.locator('main').innerText()).not.toContain(users)
  api = async (apiPath, route) => {
    const { json } = await full(apiPath, route)
    const rows = json && 'data' in json && Array.isArray(json.data) ? json.data : []
    const data = rows.map((row) => ({ ...row, client_user_id: 'ann' }))
    return { json: apiPath.startsWith('/v1/sessions?') ? { ...json, data } : json }
  }
  await open(`live/visitors/${visitorId}`)
  await expectTexts(`${users} ann`)
})

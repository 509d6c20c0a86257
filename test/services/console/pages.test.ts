import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import type { FastifyInstance } from 'fastify'
import type { BrowserContext, Page, Route } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest'
import { createApp } from '../../../infra/http/app.ts'
import { pageRoutes } from '../../../services/console/page-routes.ts'
import type { Engines, LoggedInPerson } from '../../../services/console/schemas.ts'
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

/** Recorded answers of the API, with times and ids in place of their masks. */
const recorded: { name: string; json: { data: unknown } }[] = JSON.parse(
  readFileSync(path.join(root, 'test/fixtures/recorded/answers.json'), 'utf8')
    .replace(/<time[^>]*>/g, '2026-11-27T08:00:00.000Z')
    .replace(/"<(?:count|milliseconds)>"/g, '1')
    .replace(/"<counts>"/g, 'null')
    .replace(/<(\w+) (\d+)>/g, (_, kind, n) => idOf(kind, n)),
)
const recordedAs = (name: string) => recorded.find((one) => one.name === name)?.json ?? { data: [] }

const [sessionId, visitorId] = [idOf('sid', 10), idOf('vid', 6)]

/** The name of the recorded answer for paths that begin so. */
const names: [start: string, name: string][] = [
  ['/v1/sessions/aggregates', 'count sessions: by verdict'],
  ['/v1/sessions/', 'session: of a bot, with the steps of its score'],
  ['/v1/sessions', 'list sessions: all, with how each was tied to its visitor'],
  ['/v1/fingerprints/', 'visitor: who came back'],
  ['/v1/fingerprints', 'list visitors: all'],
  ['/v1/organizations/org_1/webhooks/endpoints', 'list endpoints'],
  ['/v1/organizations/org_1/events', 'list events: all'],
  ['/v1/organizations/org_1/api-keys', 'list keys: all'],
  ['/v1/organizations/org_1', 'own organization'],
  ['/v1/scoring/model', 'getScoringModel with a narrow key'],
]

interface Answer {
  status?: number
  json?: object | undefined
}
type Api = (asked: string, route: Route) => Answer | Promise<Answer>

/** Sessions of one value of the fields, as the overview asks for them. */
const counted = (fields: string) => ({
  ...Object(recordedAs('count sessions: by verdict').data),
  groups: [
    {
      start: null,
      kind: 'value',
      values: Object.fromEntries(
        fields.split(',').map((one) => [one, one === 'handed_off' ? 'false' : `a_${one}`]),
      ),
      sessions: 4,
    },
  ],
})

const full: Api = (asked) => {
  if (asked === '/engines') return { json: { data: engines } }
  const by = new URLSearchParams(asked.split('?')[1]).get('group_by')
  if (by && by !== 'verdict') return { json: { data: counted(by) } }
  const [, name = ''] = names.find(([start]) => asked.startsWith(start)) ?? []
  return { json: recordedAs(name) }
}

const empty: Api = async (asked, route) => {
  const { json } = await full(asked, route)
  const none = { data: { is_complete: true, sessions: 0, visitors: 0, groups: [] } }
  if (asked.includes('/aggregates')) return { json: none }
  const isList = json && 'data' in json && Array.isArray(json.data)
  return {
    json: isList ? { data: [], pagination: { limit: 50, has_more: false }, meta: {} } : json,
  }
}

const refused = (status: number, error: object = {}) => ({
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
  page.on('pageerror', (error) => uncaught.push(error))
  await page.route('**/console/api/**', async (route) => {
    const asked = route.request().url().split('/console/api')[1] ?? ''
    const session = person ? { json: { data: person } } : refused(401)
    const answer = await (asked === '/session' ? session : api(asked, route))
    const headers = { 'x-request-id': 'req_7' }
    // The page may have been left meanwhile.
    await route.fulfill({ headers, ...answer }).catch(() => {})
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

/** Waits until the page says all of it. */
const says = async (...texts: string[]) => {
  const shown = async () => (await page.locator('body').innerText()).replace(/\s+/g, ' ')
  for (const text of texts) await expect.poll(shown, { timeout: 10_000 }).toContain(text)
}

interface PageCase {
  at: string
  /** Parts that wait for an answer of their own. */
  parts: number
  data: [string, ...string[]]
  /** Shown where the API has no rows. */
  empty?: string[]
}

const cases: PageCase[] = [
  {
    at: 'live/overview',
    parts: 11,
    data: [
      'inconclusive 3 60 %',
      '☑ Add the snippet with your publishable key',
      '☐ Attach a user id',
      'was 3',
      'a country',
      'ASa_asn',
      'a agent provider · a agent status',
      '4 (100 %)',
    ],
    empty: ['☐ Send a first session', 'No data in this period', 'Nothing unusual'],
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
    data: ['a country', '80 %'],
    empty: ['No sessions match these filters in this period', 'Clear all filters'],
  },
  {
    at: `live/sessions/${sessionId}`,
    parts: 1,
    data: [
      'bot 100',
      'final decision',
      'new visitor, no user',
      'Browser automation markers were detected.',
      'Label as',
      'Score breakdown',
      'WebDriver detected',
      'AS64512 Example Net',
      'No agent declared',
      'Not counted',
    ],
  },
  {
    at: 'live/visitors',
    parts: 1,
    data: [visitorId, '8.8.8.8', 'Chrome/140.0.0.0'],
    empty: ['No visitors yet.'],
  },
  {
    at: 'live/visitors?user=ann',
    parts: 1,
    data: ['Visitors of user ann', idOf('vid', 2)],
    empty: ['No sessions with this user id.'],
  },
  {
    at: `live/visitors/${visitorId}`,
    parts: 1,
    data: ['Profile', 'Storage available', 'Sessions, newest first', 'Split off', 'Export as JSON'],
    empty: ['Sessions deleted by retention'],
  },
  {
    at: 'live/webhooks',
    parts: 2,
    data: [
      'Refuses',
      'Accepts',
      '1 of 2 deliveries succeeded at the first attempt',
      'failed after 2 attempts',
    ],
    empty: ['No endpoints yet.', 'No events yet.'],
  },
  {
    at: 'live/settings',
    parts: 4,
    data: [
      'send sessions from any origin',
      'Send sessions',
      'server default',
      'tidegate-6',
      '3 of 50 visitors',
    ],
    empty: ['Keys', 'Development'],
  },
]

describe.each(cases)('$at', ({ at, parts, data, empty: nothing }) => {
  test('loads, and then shows what there is', async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    api = async (asked, route) => {
      await released
      return full(asked, route)
    }
    await open(at)
    await expect.poll(() => waiting().count()).toBe(parts)
    release()
    await says(...data)
    expect([await waiting().count(), await alerts().count()]).toEqual([0, 0])
  })

  test('says that the server failed, with the request, and tries again', async () => {
    api = () => refused(500)
    await open(at)
    await expect.poll(() => alerts().count()).toBe(parts)
    await says('This could not be loaded.', 'The server says why.', 'Request req_7')
    api = full
    // A part may have parts of its own, which failed too.
    const leftAfterAnother = async () => {
      const again = page.getByRole('button', { name: 'Try again' }).first()
      if ((await again.count()) > 0) await again.click({ timeout: 1000 }).catch(() => {})
      return alerts().count()
    }
    await expect.poll(leftAfterAnother, { timeout: 20_000 }).toBe(0)
    await says(data[0])
  })

  test('says that the person may not see it, and offers no repetition', async () => {
    api = () => refused(403)
    await open(at)
    await expect.poll(() => alerts().count()).toBe(parts)
    await says('You do not have permission to view this.', 'The server says why.')
    expect(await page.getByRole('button', { name: 'Try again' }).count()).toBe(0)
  })

  if (nothing)
    test('says so where there is nothing', async () => {
      api = empty
      await open(at)
      await says(...nothing)
      expect(await alerts().count()).toBe(0)
    })
})

describe('whatever page it is', () => {
  test('a server that does not answer is called so', async () => {
    api = async (_, route) => {
      await route.abort()
      return {}
    }
    await open('live/visitors')
    await says('This could not be loaded.', 'The server is not responding.')
  })

  test('somebody whose session has ended has to log in', async () => {
    api = () => refused(401)
    await open('live/visitors')
    await says('Tidegate console', 'Or use a secret key')
  })

  test('what does not exist is named with a way on', async () => {
    await open('live/nothing')
    await says('Page not found', 'Go to the overview')
    person = { ...ann, environments: ['test'] }
    await open('live/sessions')
    await says('Your session has no access to the environment live', 'Go to test')
    api = () => refused(404, { details: { merged_into: 'vid_other' } })
    await open(`test/visitors/${visitorId}`)
    await says('This visitor was merged into another', 'moved to vid_other')
  })

  test('warnings about settings stand above it', async () => {
    person = { ...ann, warnings: ['PUBLIC_URL is not set.'] }
    await open('live/visitors')
    await says('PUBLIC_URL is not set.', visitorId)
  })

  test('somebody who is not signed out is told so', async () => {
    await open('live/visitors')
    api = () => refused(503)
    await page.locator('summary', { hasText: 'Ann' }).click()
    await page.getByRole('button', { name: 'Sign out', exact: true }).click()
    await says('You are still signed in. The server says why.')
  })

  test.each([
    [`sessions?open=${idOf('sid', 13)}`, ['Open as a page', 'bot 100'], 'inconclusive 40'],
    [`webhooks?open=${idOf('evt', 3)}`, ['Payload', 'Not today.'], 'failed after 2 attempts'],
  ])('%s opens one row, and marks it in the list', async (at, shown, row) => {
    await open(`live/${at}`)
    await says(...shown)
    const chosen = await page.locator('tr[aria-selected="true"]').allInnerTexts()
    expect(chosen.map((text) => text.replace(/\s+/g, ' '))).toEqual([expect.stringContaining(row)])
  })

  test('a search begins with a key, and is in the address', async () => {
    await open('live/visitors')
    await says(visitorId)
    await page.keyboard.press('/')
    await page.keyboard.type(' ann ')
    await page.keyboard.press('Enter')
    await says('Visitors of user ann')
    expect(page.url()).toMatch(/\/live\/visitors\?user=ann$/)
  })

  test('a file of rows that cannot be read says why, and can be asked for again', async () => {
    await open('live/sessions')
    api = (asked, route) => (asked.includes('limit=200') ? refused(500) : full(asked, route))
    const button = page.getByRole('button', { name: 'CSV' })
    await button.click()
    await says('The server says why.')
    await expect.poll(() => button.isEnabled()).toBe(true)
  })

  test('a file of rows ends at 10,000, and says so', async () => {
    await open('live/sessions')
    api = async (asked, route) => {
      const { json } = await full(asked, route)
      if (!asked.includes('limit=200')) return { json }
      const rows = json && 'data' in json && Array.isArray(json.data) ? json.data : []
      const data = Array.from({ length: 200 }, (_, i) => rows[i % rows.length])
      return { json: { ...json, data, pagination: { next_cursor: 'c' } } }
    }
    const saved = page.waitForEvent('download')
    await page.getByRole('button', { name: 'CSV' }).click()
    await says('Saved only the newest')
    expect((await saved).suggestedFilename()).toBe('sessions-first-10000.csv')
    const lines = readFileSync(await (await saved).path(), 'utf8')
      .trimEnd()
      .split('\r\n')
    expect(lines).toHaveLength(10_001)
  })

  test('a list shows nothing to choose in place of what a session lacks', async () => {
    await open('live/sessions?columns=agent,user')
    await says('5 sessions', 'Agent')
    expect(await page.locator('button.value').allInnerTexts()).not.toContain('')
  })

  test('further rows that do not come are told below those that are there', async () => {
    api = async (asked, route) => {
      if (asked.includes('cursor=')) return refused(500)
      const { json } = await full(asked, route)
      return { json: { ...json, pagination: { next_cursor: 'c' }, meta: {} } }
    }
    for (const [at, shown] of [
      ['live/sessions', 'com.example.shop'],
      ['live/visitors', visitorId],
    ] as const) {
      await open(at)
      await page.getByRole('button', { name: 'Load more' }).click()
      await says('The server says why.', shown)
    }
  })
})

test.each([
  [`sessions/${sessionId}`, 'final decision', ['Label as', 'Attach']],
  [`visitors/${visitorId}`, 'Profile', ['Split off', 'Merge', 'Export as JSON', 'Erase']],
  ['webhooks', 'Refuses', ['Send test event', 'Add endpoint', 'Actions']],
  ['settings', '3 of 50 visitors', ['Teach']],
])('a viewer sees %s without what it may not do', async (at, shown, actions) => {
  person = { ...ann, role: 'viewer', scopes: ['sessions:read'] }
  await open(`live/${at}`)
  await says(shown)
  const text = await page.locator('main').innerText()
  expect(actions.filter((action) => text.includes(action))).toEqual([])
})

test.each([
  [`sessions/${sessionId}`, 'fraud'],
  [`sessions/${sessionId}`, 'Attach'],
  [`visitors/${visitorId}`, 'Export as JSON'],
  ['webhooks', 'Send test event'],
  ['settings', /^Teach Blink/],
])('a refused change says why, %s: %s', async (at, name) => {
  await open(`live/${at}`)
  const button = page.getByRole('button', { name }).first()
  await button.waitFor()
  api = (asked, route) =>
    route.request().method() === 'GET' && !/export|questions/.test(asked)
      ? full(asked, route)
      : refused(409)
  await button.click()
  await expect.poll(() => alerts().allInnerTexts()).toEqual(['The server says why.'])
})

test('the login page says why a key is refused, and lets another one in', async () => {
  person = null
  api = () => refused(401)
  await open('')
  await page.getByLabel(/secret key/).fill('sk_live_wrong')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await says('The server says why.')
  expect(await page.getByLabel(/secret key/).inputValue()).toBe('')
  api = (asked, route) => {
    if (asked === '/login') person = ann
    return full(asked, route)
  }
  await page.getByLabel(/secret key/).fill('sk_live_right')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await says('Overview', 'Ann')
})

test('the login page says why a link is refused, and the code leaves the address', async () => {
  person = null
  api = () => refused(401)
  await open('#code=conlog_used')
  await says('The server says why.', 'It works once, for five minutes.')
  expect(page.url()).not.toContain('conlog')
})

test('a session without visitor, network or points says so', async () => {
  api = async (asked, route) => {
    const { json } = await full(asked, route)
    if (!json || !('data' in json) || !asked.startsWith('/v1/sessions/sid')) return { json }
    const session = Object(json.data)
    const score = { ...session.score, steps: null }
    return {
      json: { data: { ...session, visitor_fingerprint: null, client_user_id: 'ann', score } },
    }
  }
  await open(`live/sessions/${sessionId}`)
  await says('no visitor, user ann', 'No visitor', 'is not stored here')
})

test('the users of a visitor are named where there are some', async () => {
  const users = 'Users'
  await open(`live/visitors/${visitorId}`)
  await says('Profile', 'Sessions, newest first')
  expect(await page.locator('main').innerText()).not.toContain(users)
  api = async (asked, route) => {
    const { json } = await full(asked, route)
    const rows = json && 'data' in json && Array.isArray(json.data) ? json.data : []
    const data = rows.map((row) => ({ ...row, client_user_id: 'ann' }))
    return { json: asked.startsWith('/v1/sessions?') ? { ...json, data } : json }
  }
  await open(`live/visitors/${visitorId}`)
  await says(`${users} ann`)
})

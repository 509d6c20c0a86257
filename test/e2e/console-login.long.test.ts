import { request as forward } from 'node:http'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest'
import { type Browser, openBrowser } from '../support/chromium.ts'
import { cli } from '../support/cli.ts'
import { checkReach, clientOf, complaintsOf } from '../support/console-page.ts'
import { serveLocally } from '../support/local-server.ts'
import { needs } from '../support/needs.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

const { describe, test } = needs('chromium')

let tidegate: RunningTidegate
let browser: Browser
let page: Page

beforeAll(async () => {
  tidegate = await startTidegate()
}, 60_000)
beforeEach(async () => {
  browser = await openBrowser()
  page = browser.page
})
afterEach(() => browser[Symbol.asyncDispose]())
afterAll(() => tidegate?.stop())

async function newLink({
  name = 'Ann',
  role = 'admin',
  url = tidegate.baseUrl,
} = {}): Promise<string> {
  const person = ['--role', role, '--environment', 'both', '--name', name]
  const args = ['console', 'login', 'development', ...person, '--url', url]
  const { code, stdout, stderr } = await cli(args, { DATA_DIR: tidegate.dataDir })
  if (code !== 0) throw new Error(stderr)
  return stdout.trim()
}

/** Opens a link as a person does who pastes it into the address bar of this tab. */
const paste = (link: string) => page.goto(link)
const overview = () => page.getByRole('heading', { name: 'Overview' }).waitFor()

test('a tab that shows the login page is logged in by a link that is pasted into it', async () => {
  await page.goto(`${tidegate.baseUrl}/console`)
  await page.getByLabel(/secret key/).waitFor()
  await checkReach(page, 1280)
  await paste(await newLink())
  await overview()
  expect(page.url()).not.toContain('code')
})

test('a tab that is logged in asks before another link logs in, and says why it does not', async () => {
  await paste(await newLink())
  await overview()
  const dialogs: string[] = []
  page.on('dialog', (dialog) => {
    dialogs.push(dialog.message())
    void dialog.accept()
  })
  await page.goto(`${tidegate.baseUrl}/console`)
  await overview()
  const link = await newLink({ name: 'Bob' })
  await paste(link)
  await expect.poll(() => page.locator('header, nav, body').first().textContent()).toContain('Bob')
  await paste(link)
  await expect
    .poll(() => dialogs)
    .toEqual([
      expect.stringContaining('You are signed in as Ann'),
      expect.stringContaining('You are signed in as Bob'),
      expect.stringContaining('already used'),
    ])
  await overview()
})

test('admins see that TRUSTED_PROXIES lacks the proxy that clients come through', async () => {
  const banner = page.getByText(/TRUSTED_PROXIES/)
  await paste(await newLink())
  await overview()
  expect(await banner.count()).toBe(0)

  const { baseUrl } = tidegate
  for (let n = 1; n <= 30; n++) {
    const forwarded = { 'x-forwarded-for': `192.0.2.${n}` }
    await clientOf(tidegate, { headers: forwarded }).open()
  }
  const warning = 'Add 127.0.0.1 to TRUSTED_PROXIES: all clients behind it share one limit.'
  const readiness = await fetch(`${baseUrl}/readyz`)
  expect([readiness.status, await readiness.text()]).toEqual([
    200,
    expect.stringContaining(warning),
  ])

  for (const width of [1280, 360]) {
    await page.setViewportSize({ width, height: 800 })
    await page.reload()
    await overview()
    expect(await banner.allTextContents()).toEqual([warning])
    await checkReach(page, width)
  }
  await browser.context.clearCookies()
  await page.goto(`${baseUrl}/console`)
  await paste(await newLink({ role: 'viewer' }))
  await overview()
  expect(await banner.count()).toBe(0)
})

describe('a tab that is logged in', () => {
  beforeEach(async () => {
    await paste(await newLink())
    await overview()
  })

  /** A page at another port of the same host, to which browsers send the cookie, too. */
  async function openElsewhere(html: string): Promise<void> {
    const site = await serveLocally((_, response) =>
      response.setHeader('content-type', 'text/html').end(html),
    )
    await page.goto(site.url)
    site.close()
  }

  test('another site cannot frame the console', async () => {
    await openElsewhere(`<iframe src="${tidegate.baseUrl}/console"></iframe>`)
    await expect.poll(() => page.frames()[1]?.url()).toBe('chrome-error://chromewebdata/')
  })

  test('a form of another site signs nobody out', async () => {
    await openElsewhere(
      `<form method="post" action="${tidegate.baseUrl}/console/api/logout"><button>Win</button></form>`,
    )
    const answered = page.waitForResponse(/logout/)
    await page.getByRole('button').click()
    const answer = await answered
    expect((await answer.request().allHeaders()).cookie).toContain('tidegate_console=')
    expect([answer.status(), (await answer.json()).error.code]).toEqual([403, 'console.refused'])
    await page.goto(`${tidegate.baseUrl}/console`)
    await overview()
  })

  test('a script of another site reads and changes nothing', async () => {
    await openElsewhere('<p>Win</p>')
    const tried = (path: string, init: object) =>
      page.evaluate<string>(
        `fetch(${JSON.stringify(`${tidegate.baseUrl}/console/api/${path}`)}, ${JSON.stringify({ credentials: 'include', ...init })})
        .then(async (answer) => answer.type + (await answer.text()), (error) => error.name)`,
      )
    const body = JSON.stringify({ session_ids: ['sid_00000000000000000000000000'], label: 'bot' })
    const json = { 'content-type': 'application/json' }
    expect(await tried('session', {})).toBe('TypeError')
    expect(await tried('v1/marks', { method: 'POST', headers: json, body })).toBe('TypeError')
    const refused = page.waitForResponse(/marks/)
    expect(await tried('v1/marks', { method: 'POST', mode: 'no-cors', body })).toBe('opaque')
    expect((await refused).status()).toBe(403)
  })

  test('a key that is revoked ends its session, and leaves nothing on the page', async () => {
    const keys = (...args: string[]) => cli(['keys', ...args], { DATA_DIR: tidegate.dataDir })
    const secret = ['--name', 'short', '--type', 'secret', '--scopes', '*', '--json']
    const made = await keys('create', 'development', ...secret)
    const { data }: { data: { id: string; revealed_key: string } } = JSON.parse(made.stdout)
    await browser.context.clearCookies()
    await page.goto(`${tidegate.baseUrl}/console`)
    await page.getByLabel(/secret key/).fill(data.revealed_key)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await overview()
    expect(await keys('revoke', 'development', data.id)).toMatchObject({ code: 0 })
    // It may have noticed by itself.
    await page.evaluate(`document.querySelector('nav a[href$=settings]')?.click()`)
    await page.getByLabel(/secret key/).waitFor()
    expect(await page.getByRole('navigation').count()).toBe(0)
  })
})

/** A proxy that serves the server under `/tg` and nothing else. It keeps what was asked for beside that path. */
async function startPathProxy() {
  const strays: string[] = []
  const proxy = await serveLocally((incoming, outgoing) => {
    const [, rest] = /^\/tg(\/.*)$/.exec(incoming.url ?? '') ?? []
    if (rest === undefined) {
      strays.push(incoming.url ?? '')
      outgoing.writeHead(404).end()
      return
    }
    const { method, headers } = incoming
    const passed = forward(tidegate.baseUrl + rest, { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(outgoing)
    })
    incoming.pipe(passed)
  })
  return {
    url: `${proxy.url}/tg`,
    strays: () => strays.filter((url) => url !== '/favicon.ico'),
    stop: proxy.close,
  }
}

describe('behind a proxy that serves the server under a path', () => {
  test('the link opens the console, all its pages work, and nothing is asked for beside the path', async () => {
    const proxy = await startPathProxy()
    const complaints = complaintsOf(page)
    await paste(await newLink({ url: proxy.url }))
    await overview()
    await page.getByRole('link', { name: 'Sessions', exact: true }).click()
    await page.getByRole('heading', { name: 'Sessions' }).waitFor()
    expect(page.url()).toContain(`${proxy.url}/console/live/sessions`)
    await page.reload()
    await page.getByRole('heading', { name: 'Sessions' }).waitFor()
    const drawn: boolean[] = await page.evaluate(
      '[...document.images].map(({ naturalWidth }) => naturalWidth > 0)',
    )
    expect(new Set(drawn)).toEqual(new Set([true]))
    const hrefs: string[] = await page.evaluate('[...document.links].map(({ href }) => href)')
    expect(hrefs.filter((href) => !href.startsWith(`${proxy.url}/`))).toEqual([])
    expect(proxy.strays()).toEqual([])
    // Before it is logged in the page asks who it is.
    expect(complaints.filter((text) => !text.includes('401'))).toEqual([])
    proxy.stop()
  })

  test('the SDK sends to the path that its script came from', async () => {
    const proxy = await startPathProxy()
    await page.goto(`${proxy.url}/docs`)
    const key = tidegate.credentials.live.publishable_key
    const token = await page.evaluate(
      `import('${proxy.url}/t.js').then(({ start }) => start({ publishableKey: '${key}' }).getSession())`,
    )
    expect(token).toMatchObject({ sealedToken: expect.any(String) })
    expect(proxy.strays()).toEqual([])
    proxy.stop()
  })
})

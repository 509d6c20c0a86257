import { randomBytes } from 'node:crypto'
import type { Disposable, Page } from 'playwright-core'
import { observationsSchema, type Snapshot } from '../../../schemas/observations.ts'
import { webRoutes } from '../../../services/web/routes.ts'
import { createProfile, openHeadless } from '../../support/chromium.ts'
import { type CollectServer, createCollectServer } from './collect-server.ts'

const html = `<!doctype html><title>A shop</title>
<form id="form"><input id="name" name="name"><textarea id="text"></textarea><button>Send</button></form>
<p style="height: 3000px">Long</p>
<script type="module">
  import { start } from '/t.js'
  window.start = start
  window.errors = []
  window.run = (options) => {
    window.client = start(options)
    window.client.onError((error) => window.errors.push({ name: error.name, code: error.code }))
    return window.client
  }
  document.querySelector('#form').addEventListener('submit', (event) => event.preventDefault())
  document.documentElement.dataset.ready = 'yes'
</script>`

const policies = {
  '/page': '',
  '/strict': "default-src 'self'; script-src 'self' 'unsafe-inline'; worker-src 'none'",
  '/trusted': "require-trusted-types-for 'script'; trusted-types tidegate",
}

interface Opening {
  path?: keyof typeof policies
  /** Runs in every frame before any other script, until the next `open`. */
  script?: string
}

interface Opened {
  page: Page
  problems: string[]
}

export interface SdkBench {
  server: CollectServer
  /**
   * Opens a page that has loaded the SDK but not started it, in a tab without a session. Reuses the tab, because
   * opening a new one is slow. Collects the page's uncaught errors.
   */
  open(opening?: Opening): Promise<Opened>
  /** Like `open`, but in a new tab, which the caller closes. */
  openTab(): Promise<Opened>
  forgetCookies(): Promise<void>
  close(): Promise<void>
}

/** Starts a collect server with test pages, for any browser. */
export async function createPageServer(): Promise<CollectServer> {
  const server = await createCollectServer()
  await webRoutes(server.app, { random: randomBytes })
  for (const [url, policy] of Object.entries(policies))
    server.app.get(url, { schema: { hide: true } }, async (_request, reply) =>
      reply.header('content-security-policy', policy).type('text/html').send(html),
    )
  await server.listen()
  return server
}

/** Starts Chromium and a collect server with test pages. */
export async function createSdkBench(): Promise<SdkBench> {
  const server = await createPageServer()
  const profile = await createProfile()
  const context = await openHeadless(profile)
  const [tab = await context.newPage()] = context.pages()
  let scripts: Disposable[] = []

  async function load(page: Page, path: string): Promise<Opened> {
    const problems: string[] = []
    page.on('pageerror', (error) => problems.push(String(error)))
    await page.goto(server.url + path)
    await page.waitForSelector('html[data-ready]')
    await page.evaluate('sessionStorage.clear()')
    return { page, problems }
  }

  return {
    server,
    async open({ path = '/page', script } = {}) {
      tab.removeAllListeners()
      await tab.unrouteAll()
      for (const earlier of scripts) await earlier.dispose()
      scripts = script === undefined ? [] : [await tab.addInitScript(script)]
      return load(tab, path)
    },
    openTab: async () => load(await context.newPage(), '/page'),
    forgetCookies: () => context.clearCookies(),
    async close() {
      await context.close()
      await profile.remove()
      await server.close()
    },
  }
}

/** Returns the observations of all accepted bodies, as the server parses them. */
export function observationsOf(server: CollectServer) {
  return server.plaintexts().map((text) => observationsSchema.parse(JSON.parse(text)))
}

export function lastSnapshot(server: CollectServer): Snapshot {
  const snapshot = observationsOf(server).findLast((sent) => sent.snapshot)?.snapshot
  if (!snapshot) throw new Error('no snapshot has arrived')
  return snapshot
}

/** Starts the SDK in the page, and returns the result of getSession. */
export function handOver(
  { server }: SdkBench,
  page: Page,
): Promise<{ sessionId: string; sealedToken: string }> {
  return page.evaluate(`run({ publishableKey: '${server.publishableKey}' }).getSession()`)
}

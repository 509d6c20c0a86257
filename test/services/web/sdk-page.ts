import { randomBytes } from 'node:crypto'
import type { BrowserContext, Page } from 'playwright-core'
import { observationsSchema } from '../../../schemas/observations.ts'
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

export interface SdkBench {
  server: CollectServer
  context: BrowserContext
  /** A page that has loaded the SDK and not started it; problems of the page itself are collected. */
  open(path?: '/page' | '/strict'): Promise<{ page: Page; problems: string[] }>
  close(): Promise<void>
}

/** Pages of ours with the collect service behind them, for any browser. */
export async function createPageServer(): Promise<CollectServer> {
  const server = await createCollectServer()
  await webRoutes(server.app, { random: randomBytes })
  const hidden = { schema: { hide: true } }
  server.app.get('/page', hidden, async (_request, reply) => reply.type('text/html').send(html))
  server.app.get('/strict', hidden, async (_request, reply) =>
    reply
      .header(
        'content-security-policy',
        "default-src 'self'; script-src 'self' 'unsafe-inline'; worker-src 'none'",
      )
      .type('text/html')
      .send(html),
  )
  await server.listen()
  return server
}

/** Real Chromium on a page of ours, with the collect service behind it. */
export async function createSdkBench(): Promise<SdkBench> {
  const server = await createPageServer()
  const profile = await createProfile()
  const context = await openHeadless(profile)
  return {
    server,
    context,
    async open(path = '/page') {
      const page = await context.newPage()
      const problems: string[] = []
      page.on('pageerror', (error) => problems.push(String(error)))
      await page.goto(server.url + path)
      await page.waitForSelector('html[data-ready]')
      return { page, problems }
    },
    async close() {
      await context.close()
      await profile.remove()
      await server.close()
    },
  }
}

/** The observations of all accepted bodies, as the server reads them. */
export function observationsOf(server: CollectServer) {
  return server.plaintexts().map((text) => observationsSchema.parse(JSON.parse(text)))
}

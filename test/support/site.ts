import { openBrowser } from './chromium.ts'
import { serveLocally } from './local-server.ts'

interface Site {
  html: string
  /** Script served as /page.js. */
  script?: string
}

/** Opens a page of another site in Chromium. Resolves with the body that its script posts to /signup. */
export async function visitSite<T>({
  html,
  script = '',
}: Site): Promise<{ posted: T; problems: string[] }> {
  const { promise, resolve } = Promise.withResolvers<T>()
  const site = await serveLocally(async (request, response) => {
    if (request.url === '/signup')
      resolve(JSON.parse(Buffer.concat(await request.toArray()).toString()))
    if (request.url === '/page.js')
      response.setHeader('content-type', 'text/javascript').end(script)
    else response.setHeader('content-type', 'text/html').end(html)
  })
  await using browser = await openBrowser()
  const { page } = browser
  const problems: string[] = []
  page.on('pageerror', (error) => problems.push(String(error)))
  page.on('console', (message) => message.type() === 'error' && problems.push(message.text()))
  await page.goto(`${site.url}/`)
  const posted = await promise
  site.close()
  return { posted, problems }
}

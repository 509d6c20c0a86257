import { once } from 'node:events'
import { createServer } from 'node:http'
import { createProfile, openHeadless } from './chromium.ts'

interface Site {
  html: string
  /** /page.js */
  script?: string
}

/** Opens a page of another site in Chromium, and resolves with what its script posts to /signup. */
export async function visitSite<T>({
  html,
  script = '',
}: Site): Promise<{ posted: T; problems: string[] }> {
  const { promise, resolve } = Promise.withResolvers<T>()
  const site = createServer(async (request, response) => {
    if (request.url === '/signup')
      resolve(JSON.parse(Buffer.concat(await request.toArray()).toString()))
    if (request.url === '/page.js')
      response.setHeader('content-type', 'text/javascript').end(script)
    else response.setHeader('content-type', 'text/html').end(html)
  })
  site.listen(0, '127.0.0.1')
  await once(site, 'listening')
  const address = site.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const profile = await createProfile()
  const browser = await openHeadless(profile)
  const problems: string[] = []
  try {
    const page = await browser.newPage()
    page.on('pageerror', (error) => problems.push(String(error)))
    page.on('console', (message) => message.type() === 'error' && problems.push(message.text()))
    await page.goto(`http://127.0.0.1:${port}/`)
    return { posted: await promise, problems }
  } finally {
    await browser.close()
    await profile.remove()
    site.close()
  }
}

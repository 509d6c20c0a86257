import { randomBytes } from 'node:crypto'
import axe from 'axe-core'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, expect } from 'vitest'
import { createApp } from '../../infra/http/app.ts'
import { freePort } from '../../infra/local/free-port.ts'
import { openBrowser } from '../support/chromium.ts'
import { complaintsOf } from '../support/console-page.ts'
import { needs } from '../support/needs.ts'
import { silent } from '../support/projections.ts'

const { test } = needs('chromium')

let app: FastifyInstance
let url: string
beforeAll(async () => {
  const port = await freePort()
  url = `http://127.0.0.1:${port}`
  app = await createApp({ logger: silent, random: randomBytes, publicUrl: url })
  await app.listen({ port, host: '127.0.0.1' })
})
afterAll(() => app?.close())

test.each(['/docs/api', '/docs/api/'])(
  '%s shows the interface and asks it, and nothing of it is blocked',
  async (path) => {
    await using browser = await openBrowser()
    const { page } = browser
    const complaints = complaintsOf(page)
    const answer = await page.goto(url + path)
    expect(answer?.headers()['content-security-policy']).not.toContain('unsafe')
    await page.locator('#operations-Operations-getLiveness .opblock-summary-control').click()
    await page.locator('.try-out__btn').click()
    await page.locator('.execute').click()
    await page.locator('.live-responses-table .response-col_status', { hasText: '200' }).waitFor()
    await page.evaluate(axe.source)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      const { violations } = await page.evaluate<axe.AxeResults>(
        `axe.run('.opblock.is-open', { runOnly: ['color-contrast'] })`,
      )
      const found = violations.flatMap(({ nodes }) => nodes.map(({ html }) => html))
      expect([colorScheme, found]).toEqual([colorScheme, []])
    }
    expect(complaints.filter((text) => !text.includes('favicon'))).toEqual([])
  },
  60_000,
)

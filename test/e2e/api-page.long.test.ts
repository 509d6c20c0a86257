import { randomBytes } from 'node:crypto'
import axe from 'axe-core'
import type { FastifyInstance } from 'fastify'
import { pino } from 'pino'
import { afterAll, beforeAll, expect } from 'vitest'
import { createApp } from '../../infra/http/app.ts'
import { freePort } from '../../infra/local/free-port.ts'
import { createProfile, openHeadless, type Profile } from '../support/chromium.ts'
import { needs } from '../support/needs.ts'

const { test } = needs('chromium')

let app: FastifyInstance
let profile: Profile
let url: string
beforeAll(async () => {
  const port = await freePort()
  url = `http://127.0.0.1:${port}`
  app = await createApp({
    logger: pino({ level: 'silent' }),
    random: randomBytes,
    publicUrl: url,
  })
  await app.listen({ port, host: '127.0.0.1' })
  profile = await createProfile()
})
afterAll(async () => {
  await app?.close()
  await profile?.remove()
})

test.each(['/docs/api', '/docs/api/'])(
  '%s shows the interface and asks it, and nothing of it is blocked',
  async (path) => {
    const context = await openHeadless(profile)
    try {
      const page = await context.newPage()
      const complaints: string[] = []
      page.on('console', (message) => complaints.push(message.text()))
      page.on('pageerror', (error) => complaints.push(error.message))
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
        expect([
          colorScheme,
          violations.flatMap(({ nodes }) => nodes.map(({ html }) => html)),
        ]).toEqual([colorScheme, []])
      }
      expect(complaints.filter((text) => !text.includes('favicon'))).toEqual([])
    } finally {
      await context.close()
    }
  },
  60_000,
)

import { randomBytes } from 'node:crypto'
import axe from 'axe-core'
import { afterAll, expect } from 'vitest'
import { freePort } from '../../infra/local/free-port.ts'
import { webRoutes } from '../../services/web/routes.ts'
import { createCollectServer } from '../services/web/collect-server.ts'
import { openBrowser } from '../support/chromium.ts'
import { complaintsOf } from '../support/console-page.ts'
import { needs } from '../support/needs.ts'

const { test } = needs('chromium')

const { app, ...server } = await createCollectServer()
await webRoutes(app, { random: randomBytes })
const port = await freePort()
const url = `http://127.0.0.1:${port}`
await app.listen({ port, host: '127.0.0.1' })
afterAll(() => server.close())

test('the reference leads from the overview to an operation and its samples', async () => {
  await using browser = await openBrowser()
  const { page } = browser
  const complaints = complaintsOf(page)
  for (const path of ['/docs/api/', '/docs/api']) {
    const answer = await page.goto(url + path)
    expect(answer?.headers()['content-security-policy']).not.toContain('unsafe')
  }
  await page
    .getByRole('link', { name: /session/i })
    .and(page.locator('.operations a'))
    .first()
    .click()
  const operation = page.locator('.operation:has(:target)')
  await operation.waitFor()
  await operation.getByRole('tab', { name: 'Python' }).click()
  await operation.getByText('import os').waitFor()

  await page.locator('#search').fill('v2/collect')
  await page.locator('#found a').first().waitFor()

  await page.evaluate(axe.source)
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    for (const width of [1440, 360]) {
      await page.setViewportSize({ width, height: 900 })
      const overflow = await page.evaluate(
        'document.documentElement.scrollWidth - document.documentElement.clientWidth',
      )
      expect([width, overflow]).toEqual([width, 0])
    }
    const { violations } = await page.evaluate<axe.AxeResults>('axe.run()')
    expect([colorScheme, violations.map(({ id }) => id)]).toEqual([colorScheme, []])
  }
  expect(complaints.filter((text) => !text.includes('favicon'))).toEqual([])
}, 60_000)

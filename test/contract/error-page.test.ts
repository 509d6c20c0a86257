import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import pino from 'pino'
import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, expect } from 'vitest'
import { createApp } from '../../infra/http/app.ts'
import { createProfile, openHeadless, type Profile } from '../support/chromium.ts'
import { needs } from '../support/needs.ts'

const { test } = needs('chromium')

let app: FastifyInstance
let profile: Profile
let browser: BrowserContext
let page: Page
let url: string
const complaints: string[] = []

beforeAll(async () => {
  app = await createApp({
    logger: pino({ level: 'silent' }),
    random: randomBytes,
    publicUrl: 'http://localhost',
  })
  url = `${await app.listen({ port: 0, host: '127.0.0.1' })}/docs/errors`
  profile = await createProfile()
  browser = await openHeadless(profile)
  page = await browser.newPage()
  page.on('console', (message) => void complaints.push(message.text()))
  page.on('request', (request) => {
    if (!request.url().startsWith(url) && !request.url().endsWith('/favicon.ico'))
      complaints.push(request.url())
  })
})
afterAll(async () => {
  await browser.close()
  await profile.remove()
  await app.close()
})

const backgroundOf = (id: string) =>
  page.evaluate(
    `getComputedStyle(document.getElementById('${id}') ?? document.body).backgroundColor`,
  )

test('a docs_url shows its code, marked, in light and dark', async () => {
  await page.setViewportSize({ width: 1200, height: 800 })
  await page.goto(`${url}#rate_limit.exceeded`)
  const wanted = page.locator('[id="rate_limit.exceeded"]')
  await wanted.waitFor()
  const top = (await wanted.boundingBox())?.y ?? -1
  expect(top).toBeGreaterThanOrEqual(0)
  expect(top).toBeLessThan(800)
  const plain = await backgroundOf('internal.error')
  expect(await backgroundOf('rate_limit.exceeded')).not.toBe(plain)
  const light = await backgroundOf('')
  await page.emulateMedia({ colorScheme: 'dark' })
  expect(await backgroundOf('')).not.toBe(light)
  expect(complaints.filter((text) => !text.includes('favicon'))).toEqual([])
})

test('a narrow screen has nothing to scroll sideways', async () => {
  await page.setViewportSize({ width: 320, height: 700 })
  await page.goto(url)
  expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0)
})

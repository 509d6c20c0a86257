import type { Browser, Page } from 'puppeteer-core'
import { afterAll, beforeAll, expect } from 'vitest'
import { z } from 'zod'
import { findFaults } from '../support/axe.ts'
import { goTo, openFirefox } from '../support/firefox.ts'
import { needs } from '../support/needs.ts'
import { loginLinkOf, type RunningTidegate, startTidegate } from '../support/tidegate.ts'

const { test } = needs('firefox')

let tidegate: RunningTidegate
let browser: Browser
let page: Page
const complaints: string[] = []

beforeAll(async () => {
  ;[tidegate, browser] = await Promise.all([startTidegate(), openFirefox()])
  page = await browser.newPage()
  page.setDefaultTimeout(60_000)
  await goTo(page, `${tidegate.baseUrl}/demo?auto=1`)
  await page.waitForSelector('#result[data-state="done"]')
  page.on('console', (message) => complaints.push(message.text()))
  page.on('pageerror', (error) => complaints.push(String(error)))
  await goTo(page, loginLinkOf(tidegate))
  await page.waitForSelector('::-p-text(Getting started)')
})
afterAll(async () => {
  await browser?.close()
  await tidegate?.stop()
})

const open = (path: string) => goTo(page, `${tidegate.baseUrl}/console/live/${path}`)
const hasParameter = (name: string) => new URL(page.url()).searchParams.has(name)

test('one comes in by the link, and finds, marks and closes the own session by keys alone', async () => {
  await open('sessions')
  await page.waitForSelector('table.rows tbody tr')
  await page.keyboard.press('j')
  await page.keyboard.press('Enter')
  await page.waitForSelector('aside[aria-label="Session"] h1')
  expect(hasParameter('open')).toBe(true)
  await expect
    .poll(async () => {
      await page.keyboard.press('m')
      return page.evaluate('document.activeElement.textContent')
    })
    .toBe('human')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.waitForSelector('::-p-text(labeled bot)')
  await page.keyboard.press('Escape')
  await expect.poll(() => hasParameter('open')).toBe(false)
  await page.keyboard.press('/')
  await page.keyboard.type('nobody')
  await page.keyboard.press('Enter')
  await expect.poll(() => new URL(page.url()).searchParams.get('search')).toBe('nobody')
  await page.waitForSelector('::-p-text(No session)')
})

const listed = z.object({ data: z.array(z.object({ id: z.string() })) })

async function newestOf(things: string): Promise<string> {
  const headers = { authorization: `Bearer ${tidegate.credentials.live.secret_key}` }
  const answer = await fetch(`${tidegate.baseUrl}/v1/${things}?limit=1`, { headers })
  return listed.parse(await answer.json()).data[0]?.id ?? ''
}

test.each([
  ['overview', ''],
  ['sessions', ''],
  ['sessions', 'sessions'],
  ['visitors', ''],
  ['visitors', 'fingerprints'],
  ['webhooks', ''],
  ['settings', ''],
])('%s %s has nothing that hinders people, and fits', async (path, things) => {
  const id = things && (await newestOf(things))
  for (const width of [1280, 360]) {
    await page.setViewport({ width, height: 800 })
    await open(`${path}/${id}`)
    await page.waitForSelector('h1')
    await expect.poll(() => page.$$('.waiting, [aria-busy="true"]')).toEqual([])
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width)
    expect(await page.evaluate(findFaults)).toEqual([])
  }
})

test('nothing was complained of', () => expect(complaints).toEqual([]))

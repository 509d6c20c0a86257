import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import {
  accessible,
  type ConsentPages,
  consent,
  fitsIn,
  heading,
  inSight,
  ok,
  openConsentPages,
  press,
  reviewed,
  screenshot,
  shows,
  unknownId,
} from '../support/consent-page.ts'
import { acme, type ConsentWorld } from '../support/consent-world.ts'
import { eventually } from '../support/eventually.ts'

let consentPages: ConsentPages
let world: ConsentWorld

beforeAll(async () => {
  consentPages = await openConsentPages()
  world = consentPages.world
}, 120_000)
afterAll(() => consentPages?.stop())
afterEach(() => consentPages.closeAll())

const open: ConsentPages['open'] = (...given) => consentPages.open(...given)

describe('what is asked', () => {
  test('of a signup: by whom, for which service, what it gives to whom, and until when', async () => {
    const { page } = await open({ consent: [ok(consent())] })
    await shows(page, 'Create an account at Acme Mail?')
    const main = page.getByRole('main')
    for (const text of [
      'acme.example',
      'Not verified',
      'Transactional mail',
      'K7QF-M2XD',
      'an account called Harbour Notes',
      'ACME_API_KEY',
      'ACME_DOMAIN',
      'ACME_MAIL_GATE_AGENT_TOKEN',
      'asks for dashboard logins',
      '203.0.113.9',
      'tidegate-cli/0.1.0 linux x64',
      'Open until',
    ])
      expect(await main.textContent()).toContain(text)
    expect(await main.getByRole('listitem').filter({ hasText: 'ACME_DOMAIN' }).textContent()).toContain(
      'Not secret',
    )
    const terms = main.getByRole('link', { name: 'Terms' })
    expect(await terms.getAttribute('rel')).toBe('noopener noreferrer nofollow')
    expect(await terms.getAttribute('target')).toBe('_blank')
    expect(await page.getByRole('button').allTextContents()).toEqual(['Decline', 'Approve'])
    expect(await main.textContent()).not.toContain('Your agent tells')
    await page.setViewportSize({ width: 1100, height: 900 })
    for (const name of ['Decline', 'Approve']) await inSight(page, name)
    await screenshot(page, 'light')
    await page.emulateMedia({ colorScheme: 'dark' })
    await accessible(page)
    await screenshot(page, 'dark')
    await page.emulateMedia({ forcedColors: 'active' })
    await screenshot(page, 'forced-colors')
    await page.emulateMedia({ colorScheme: 'light', forcedColors: 'none' })
    await fitsIn(page, 320)
    await accessible(page)
    await screenshot(page, 'phone')
  })

  test('the real thing: the page of a session shows what the API says of it', async () => {
    const { page } = await open({}, { id: await world.signup() })
    await shows(page, 'Create an organization at Tidegate?')
    const text = await page.getByRole('main').textContent()
    for (const part of ['TIDEGATE_SECRET_KEY', 'an organization called Harbour Notes', 'may do everything'])
      expect(text).toContain(part)
    expect(await page.evaluate("document.querySelector('img.logo').naturalWidth")).toBeGreaterThan(0)
    await screenshot(page, 'built-in')
  })
})

describe('approving', () => {
  const approved = ok({ object: 'gate_session', id: unknownId, status: 'approved' })

  test('a proof goes with the token of the page, and the page says that it is done', async () => {
    const { page, posted } = await open({ consent: [ok(consent())], approve: [approved] }, { observed: true })
    await reviewed(page)
    await press(page, 'Approve')
    await shows(page, 'Approved')
    expect(await page.getByRole('main').textContent()).toContain(
      'Acme Mail created the account Harbour Notes.',
    )
    await screenshot(page, 'approved')
    expect(posted.map(({ path: name }) => name)).toEqual(['approve'])
    const body: unknown = JSON.parse(posted[0]?.body ?? '')
    expect(body).toEqual({
      approve_token: 'gtapr_fake',
      sealed_token: expect.stringMatching(/^[\w+/=]{200,}$/),
    })
    await page.close()
    expect(posted.length).toBe(1)
  })
})

describe('a service that means harm', () => {
  const script = '<img src=x onerror="window.ran=1"><script>window.ran=1</script>'
  const hidden = '\u202egnp.exe\u202c\u0000\u001b[31m\u200b\u2066'
  const text = `${script}${hidden}`
  const address = 'javascript:window.ran=1'
  const hostile = {
    name: text,
    description: `${text}\n${'Z̀́̂̃̄̅'.repeat(50)}\n${'word'.repeat(500)}`,
    website: address,
    docs_url: address,
    env_vars: [
      { name: text, key: text, secret: true },
      { name: 'x'.repeat(5000), key: 'Y'.repeat(5000), secret: false },
    ],
    sdks: [{ label: text, install: text, url: address }],
    branding: {
      logo_url: 'https://logos.example/logo.svg',
      primary_color: '#ffffff',
      secondary_color: 'red;}body{display:none',
      ascii_art: `${script}\n${`${'#'.repeat(5000)}\n`.repeat(3000)}`,
    },
    consent: { terms_url: address, privacy_url: 'https://user@evil.example/' },
  }

  test('runs nothing, reaches nobody but its logo, hides nothing and breaks nothing', async () => {
    const serviceId = await world.service(hostile)
    const id = await world.signup(serviceId)
    const dialogs: string[] = []
    const { page, requested } = await open(
      {},
      {
        id,
        init: async (opened) => {
          opened.on('dialog', (dialog) => dialogs.push(dialog.message()))
          await opened.route('https://logos.example/**', (route) => route.abort())
        },
      },
    )
    await heading(page, /Create an account at <img src=x/).waitFor()
    expect(await page.evaluate("'ran' in window")).toBe(false)
    expect(dialogs).toEqual([])
    const hosts = new Set(
      requested.filter((url) => !url.startsWith('blob:')).map((url) => new URL(url).origin),
    )
    expect([...hosts].sort()).toEqual([world.baseUrl, 'https://logos.example'].sort())
    expect(await page.getByRole('main').textContent()).not.toMatch(/(?!\n)[\p{Cc}\p{Bidi_Control}]/u)
    const links = await page.locator('a').evaluateAll((all) => all.map((link) => link.getAttribute('href')))
    expect(links).toEqual([])
    expect(await page.locator('span.logo').textContent()).toBe('<')
    await fitsIn(page, 320)
    await fitsIn(page, 1280)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      await accessible(page)
      for (const name of ['Approve', 'Decline']) await seen(page, name)
      await screenshot(page, `hostile-${colorScheme}`)
    }
  })

  /** Nothing lies over the middle of the button. */
  async function seen(page: Page, name: string): Promise<void> {
    const button = page.getByRole('button', { name })
    await button.scrollIntoViewIfNeeded()
    const box = await button.boundingBox()
    if (!box) throw new Error(`${name} is not shown`)
    const middle = `${box.x + box.width / 2}, ${box.y + box.height / 2}`
    const isOnTop = await page.evaluate(`document.elementFromPoint(${middle})?.textContent === '${name}'`)
    expect(isOnTop).toBe(true)
  }

  test('the policy of the page names the origin of its logo, and nothing that a logo could add', async () => {
    const policyOf = async (logo_url: string) => {
      const branding = { ...acme.branding, logo_url }
      const id = await world.signup(await world.service({ branding }))
      const { headers } = await fetch(world.pageUrl(id))
      return headers.get('content-security-policy')
    }
    const plain = (await fetch(world.pageUrl(unknownId))).headers
    expect(Object.fromEntries(plain)).toMatchObject({
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; worker-src blob:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
      'x-frame-options': 'DENY',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'permissions-policy': expect.stringContaining('camera=()'),
      'cache-control': 'no-store',
    })
    expect(await policyOf('https://cdn.acme.example:8443/a/logo.png')).toContain(
      "img-src 'self' https://cdn.acme.example:8443;",
    )
    expect(await policyOf("https://*.example;script-src 'unsafe-inline'/x")).toBe(
      plain.get('content-security-policy'),
    )
    expect(await policyOf('https://*/x')).toBe(plain.get('content-security-policy'))
  })
})

describe('the page of a real request', () => {
  test('closing it rejects the request; a reload does not, nor does closing one of two tabs', async () => {
    const signups = [await world.signup(), await world.signup(), await world.signup()] as const
    const [closed, reloaded, twice] = signups
    const [first, second, older, newer] = [
      await open({}, { id: closed }),
      await open({}, { id: reloaded }),
      await open({}, { id: twice }),
      await open({}, { id: twice }),
    ]
    for (const { page } of [first, second, newer]) await heading(page, /Create an org/).waitFor()
    await shows(older.page, 'Open in another tab')
    await newer.page.close({ runBeforeUnload: true })
    await heading(older.page, /Create an org/).waitFor()
    await second.page.reload()
    await heading(second.page, /Create an org/).waitFor()
    await first.page.close({ runBeforeUnload: true })
    await eventually(
      async () =>
        expect(await world.session(closed)).toMatchObject({ status: 'rejected', rejection: 'closed' }),
      { timeoutMs: 15_000, intervalMs: 100 },
    )
    // Their pages began to close earlier.
    for (const id of [reloaded, twice]) {
      expect((await world.session(id))?.status).toBe('pending')
      expect(await world.isOpen(id)).toBe(true)
    }
    // Whoever opens it then learns that it is over.
    const again = await open({}, { id: closed })
    await shows(again.page, 'This request was closed')
  })

  test('a browser that is driven is not taken for a person, and the person may still decline', async () => {
    const id = await world.signup()
    const { page } = await open({}, { id })
    await reviewed(page)
    await press(page, 'Approve')
    await page.getByRole('alert').filter({ hasText: 'This looked automated' }).waitFor()
    expect((await world.session(id))?.status).toBe('pending')
    await press(page, 'Decline')
    await shows(page, 'Declined')
    expect(await world.session(id)).toMatchObject({ status: 'rejected', rejection: 'declined' })
  })
})

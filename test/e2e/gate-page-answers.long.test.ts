import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { createProfile } from '../support/chromium.ts'
import {
  type Answer,
  accessible,
  consent,
  ended,
  fitsIn,
  heading,
  lost,
  ok,
  press,
  refused,
  reviewed,
  screenshot,
  shows,
  toFront,
  unknownId,
  useConsentPages,
} from '../support/consent-page.ts'
import { acme } from '../support/consent-world.ts'
import { eventually } from '../support/eventually.ts'
import { createNumbers, movePointer, pause, pressKey } from '../support/hand.ts'
import { needs } from '../support/needs.ts'
import { openDesktop } from '../support/window.ts'

const { describe, test } = needs('chromium', 'desktop')

const consentPages = useConsentPages()
const { open } = consentPages

describe('what is asked', () => {
  test('of a login: to what, as whom, and where this browser goes', async () => {
    const { page } = await open({ consent: [ok(consent({ kind: 'login' }))] })
    await shows(page, 'Log in to Acme Mail’s dashboard as Harbour Notes?')
    expect(await page.getByRole('main').textContent()).toContain(
      'This browser goes to app.acme.example, logged in as Harbour Notes.',
    )
    expect(await page.getByRole('main').textContent()).not.toContain('ACME_API_KEY')
    await screenshot(page, 'login')
    await fitsIn(page, 320)
  })

  test('what the agent tells the service is shown as text, in bounds', async () => {
    const metadata = { plan: 'free', '<b>team</b>': { size: 3 }, note: '\u202enote '.repeat(2000) }
    const { page } = await open({ consent: [ok(consent({ metadata }))] })
    await heading(page, /Create an account/).waitFor()
    const told = page.getByRole('region', { name: 'Your agent tells Acme Mail' })
    expect(await told.getByRole('term').allTextContents()).toEqual(['plan', '<b>team</b>', 'note'])
    const [plan, team, note] = await told.getByRole('definition').allTextContents()
    expect([plan, team]).toEqual(['free', '{"size":3}'])
    expect(note).toMatch(/^\ufffdnote .{0,160}…$/u)
    await screenshot(page, 'metadata')
    await fitsIn(page, 320)
  })

  test('a drawing takes the room it needs, and is a tab stop only where it scrolls', async () => {
    const drawn = (ascii_art: string) =>
      open({ consent: [ok(consent({}, { branding: { ...acme.branding, ascii_art } }))] })
    const small = (await drawn('  /\\_/\\\n ( o.o )\n  > ^ <')).page
    const box = small.getByRole('img', { name: /drawing/ })
    await box.waitFor()
    expect((await box.boundingBox())?.width).toBeLessThan(200)
    expect(await box.getAttribute('tabindex')).toBeNull()
    await screenshot(small, 'drawing')
    const large = (await drawn(`${'#'.repeat(200)}\n`.repeat(50))).page
    await large.locator('.drawing[tabindex="0"]').waitFor()
    await accessible(large)
  })

  test('a variable that is not named after what is verified needs a tick', async () => {
    const variables = [
      { key: 'ACME_API_KEY', name: 'API key', secret: true, group: 'verified' },
      { key: 'DATABASE_URL', name: 'Database', secret: true, group: 'other' },
    ]
    const { page } = await open({ consent: [ok(consent({ variables }))] })
    await heading(page, /Create an account/).waitFor()
    const tick = page.getByRole('checkbox')
    const marked = page.locator('.variables > div').filter({ has: tick })
    expect(await marked.getByRole('code').allTextContents()).toEqual(['DATABASE_URL'])
    expect(await tick.isChecked()).toBe(false)
    await accessible(page)
    await screenshot(page, 'other-variable')
    await fitsIn(page, 320)
  })

  test('a verified service says so', async () => {
    const branding = { ...acme.branding, logo_url: '/assets/mark.svg', verified: true }
    const { page } = await open({ consent: [ok(consent({}, { branding }))] })
    await heading(page, /Acme/).waitFor()
    expect(await page.getByRole('main').textContent()).toContain('Verified service')
    expect(await page.getByRole('main').textContent()).not.toContain('Not verified')
  })
})

describe('what cannot be decided', () => {
  test.each<[string, Answer, string]>([
    ['not-found', refused(404, 'gate.session_not_found'), 'There is no such request'],
    ['expired', refused(410, 'gate.session_expired'), 'This request has expired'],
    [
      'resolved',
      refused(409, 'gate.session_already_resolved'),
      'This request was already answered',
    ],
    ['server', refused(500, 'internal.error'), 'Something went wrong on our side'],
    ['offline', lost, 'No connection'],
    ['was-approved', ended('approved'), 'This sign-up was approved'],
    ['was-approved-login', ended('approved', 'login'), 'This login was approved'],
    ['was-declined', ended('declined'), 'Declined'],
    ['was-closed', ended('closed'), 'This request was closed'],
    ['was-failed', ended('integrator_failed'), 'The service could not finish'],
  ])('%s', async (name, answered, title) => {
    const { page, posted } = await open({ consent: [answered] })
    await shows(page, title)
    await screenshot(page, name)
    await page.close()
    expect(posted).toEqual([])
  })

  test('a page that could not be opened can be opened again', async () => {
    const { page } = await open({ consent: [refused(503, 'service.unavailable'), ok(consent())] })
    await shows(page, 'Something went wrong on our side')
    await press(page, 'Try again')
    await shows(page, /Create an account/)
  })

  test('too many pages: it says how long it waits, and goes on by itself', async () => {
    const { page } = await open(
      { consent: [refused(429, 'gate.rate_limit', 600), ok(consent())] },
      { init: (opened) => opened.clock.install() },
    )
    await shows(page, 'One moment, please')
    expect(await page.getByRole('main').textContent()).toContain('again in 10 minutes.')
    await screenshot(page, 'rate-limited-page')
    await page.clock.fastForward(600_000)
    await shows(page, /Create an account/)
  })

  test('a page that the browser had kept asks anew', async () => {
    const { page } = await open({
      consent: [ok(consent()), refused(409, 'gate.session_already_resolved')],
    })
    await heading(page, /Create an account/).waitFor()
    await page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    await shows(page, 'This request was already answered')
  })

  test('an unknown or malformed session has the same page', async () => {
    for (const id of [unknownId, 'gate_x', '%00']) {
      const page = await consentPages.newPage()
      await page.goto(`${consentPages.world.baseUrl}/gate/consent/${id}`)
      await shows(page, 'There is no such request')
      await page.close()
    }
  })

  test('the time runs out while the page is open', async () => {
    const { page, posted } = await open({ consent: [ok(consent())] })
    await heading(page, /Create an account/).waitFor()
    // Of this page alone: the browser's clock would be that of the pages after it, too.
    await page.evaluate('{ const now = Date.now; Date.now = () => now() + 900_000 }')
    await shows(page, 'This request has expired')
    expect(posted).toEqual([])
  })
})

describe('approving', () => {
  const approved = ok({ object: 'gate_session', id: unknownId, status: 'approved' })

  test('a service that takes its time is asked again, with the same proof', async () => {
    const inProgress = refused(409, 'gate.approval_in_progress', 1)
    const { page, posted } = await open({
      consent: [ok(consent())],
      approve: [inProgress, lost, approved],
    })
    await reviewed(page)
    await press(page, 'Approve')
    await shows(page, 'Acme Mail is setting up the account')
    await screenshot(page, 'in-progress')
    await shows(page, 'Approved')
    expect(posted.length).toBe(3)
    expect(new Set(posted.map(({ body }) => body)).size).toBe(1)
  })

  test('a page that is opened while it is under way asks how it ends', async () => {
    const { page, posted } = await open({
      consent: [ok(consent({ approval: 'in_progress' }))],
      approve: [
        refused(409, 'gate.approval_in_progress', 1),
        refused(409, 'gate.session_already_resolved'),
      ],
    })
    await shows(page, 'Acme Mail is setting up the account')
    await shows(page, 'Acme Mail could not finish')
    await screenshot(page, 'failed')
    expect(posted.map(({ body }) => body)).toEqual(Array(2).fill('{"approve_token":"gtapr_fake"}'))
  })

  test.each<[string, Answer, string, number]>([
    ['flagged', refused(403, 'gate.bot_detected'), 'This looked automated', 1],
    [
      'proof',
      refused(403, 'gate.svc_proof_invalid'),
      'We could not tell whether a person is here',
      2,
    ],
    ['rate-limited', refused(429, 'gate.rate_limit', 40), 'Press Approve again in 40 seconds.', 1],
    ['trouble', refused(500, 'internal.error'), 'That did not go through', 1],
    ['connection-lost', lost, 'The connection was lost', 1],
  ])('%s: says so, and can be tried again', async (name, answered, notice, requests) => {
    const answers = [...Array<Answer>(requests).fill(answered), approved]
    const { page, posted } = await open({ consent: [ok(consent())], approve: answers })
    await reviewed(page)
    await press(page, 'Approve')
    await page.getByRole('alert').filter({ hasText: notice }).waitFor()
    // The notices differ in their words.
    if (name === 'flagged') await accessible(page)
    await screenshot(page, name)
    expect(new Set(posted.map(({ body }) => body)).size).toBe(requests)
    expect(await page.evaluate('document.activeElement.id')).toBe('approve')
    await press(page, 'Approve')
    await shows(page, 'Approved')
  })

  test('after the last attempt there is only Decline', async () => {
    const { page, posted } = await open({
      consent: [ok(consent())],
      approve: [refused(429, 'gate.rate_limit', 80_000), approved],
      cancel: [ok({ object: 'gate_session', id: unknownId, status: 'rejected' })],
    })
    await reviewed(page)
    await press(page, 'Approve')
    await page
      .getByRole('alert')
      .filter({ hasText: 'cannot be approved from here any more' })
      .waitFor()
    const button = page.getByRole('button', { name: 'Approve' })
    expect(await button.isDisabled()).toBe(true)
    await accessible(page)
    await screenshot(page, 'no-more-attempts')
    await button.click({ force: true })
    await press(page, 'Decline')
    await shows(page, 'Declined')
    expect(posted.map(({ path: name }) => name)).toEqual(['approve', 'cancel'])
  })

  test('a slow service: the page says so, and until when it is asked', async () => {
    const { page } = await open(
      { consent: [ok(consent())], approve: [refused(409, 'gate.approval_in_progress', 600)] },
      { init: (opened) => opened.clock.install() },
    )
    await heading(page, /\?$/).waitFor()
    await page.clock.fastForward(1000)
    await press(page, 'Approve')
    await shows(page, 'Acme Mail is setting up the account')
    expect(await page.getByRole('main').textContent()).not.toContain('slow')
    await page.clock.fastForward(20_000)
    await page
      .getByRole('main')
      .getByText(/Acme Mail is slow to answer; .+ until \d+:\d\d/)
      .waitFor()
    expect(await page.getByRole('main').textContent()).not.toContain('a few seconds')
    await screenshot(page, 'slow')
  })

  test('a token that another page made void: the request is shown once more, and nothing is approved', async () => {
    const { page, posted } = await open({
      consent: [ok(consent()), ok(consent({ approve_token: 'gtapr_newer' }))],
      approve: [refused(403, 'gate.approve_token_invalid'), approved],
    })
    await reviewed(page)
    await press(page, 'Approve')
    await page.getByRole('alert').filter({ hasText: 'opened somewhere else' }).waitFor()
    await reviewed(page)
    await press(page, 'Approve')
    await shows(page, 'Approved')
    expect(posted.at(-1)?.body).toContain('gtapr_newer')
  })

  test('one that was answered or ran out meanwhile', async () => {
    const { page } = await open({
      consent: [ok(consent())],
      approve: [refused(410, 'gate.session_expired')],
    })
    await reviewed(page)
    await press(page, 'Approve')
    await shows(page, 'This request has expired')
    const resolved = refused(409, 'gate.session_already_resolved')
    const other = await open({ consent: [ok(consent()), resolved], approve: [resolved] })
    await reviewed(other.page)
    await press(other.page, 'Approve')
    await shows(other.page, 'This request was already answered')
  })

  test('a page that has just come to the front takes no Approve', async () => {
    const { page, posted } = await open({ consent: [ok(consent())], approve: [approved] })
    await reviewed(page)
    await page.evaluate("dispatchEvent(new Event('focus'))")
    await press(page, 'Approve')
    await page.getByRole('alert').filter({ hasText: 'press once more' }).waitFor()
    expect(posted).toEqual([])
  })

  test('a request that is opened in another tab is decided there', async () => {
    const first = await open({ consent: [ok(consent())] })
    await reviewed(first.page)
    const second = await open({ consent: [ok(consent())] })
    await reviewed(second.page)
    await shows(first.page, 'Open in another tab')
    await screenshot(first.page, 'elsewhere')
    await second.page.close({ runBeforeUnload: true })
    await shows(first.page, 'Create an account at Acme Mail?')
    expect(first.posted).toEqual([])
  })

  test('a page that comes to the front learns what happened elsewhere, and is left as it was otherwise', async () => {
    // Not one after the other: a page that is slow to open is in front once more, and asks by itself.
    const first = consent()
    let answered = ok(first)
    const { page } = await open({
      consent: () => answered,
      approve: [refused(403, 'gate.bot_detected')],
    })
    await reviewed(page)
    await press(page, 'Approve')
    const notice = page.getByRole('alert').filter({ hasText: 'This looked automated' })
    await notice.waitFor()
    const focused = () => page.evaluate('document.activeElement.id')
    await expect.poll(focused).toBe('approve')
    answered = ok({ ...first, approve_token: 'gtapr_newer' })
    await toFront(page)
    expect(await notice.isVisible()).toBe(true)
    await expect.poll(focused).toBe('approve')
    answered = ended('declined')
    await toFront(page)
    await shows(page, 'Declined')
  })
})

describe('a login', () => {
  const login = ok(consent({ kind: 'login' }))
  const answered = (redirect_url: string) =>
    ok({ object: 'gate_login_session', id: unknownId, status: 'approved', code: 'x', redirect_url })

  test('goes on to the dashboard', async () => {
    const url = 'https://app.acme.example/auth/gate?code=x'
    const { page } = await open(
      { consent: [login], approve: [answered(url)] },
      {
        init: (opened) =>
          opened.route('https://app.acme.example/**', (route) =>
            route.fulfill({ contentType: 'text/html', body: '<!doctype html><h1>Dashboard</h1>' }),
          ),
      },
    )
    await reviewed(page)
    await press(page, 'Approve login')
    await heading(page, /^Dashboard$/).waitFor()
    expect(page.url()).toBe(url)
    expect(await page.evaluate('document.referrer')).toBe('')
  })

  test.each([
    'https://evil.example/?code=x',
    'javascript:window.ran=1',
    'http://app.acme.example/?code=x',
  ])('does not go to %s', async (url) => {
    const { page, requested } = await open({ consent: [login], approve: [answered(url)] })
    await reviewed(page)
    await press(page, 'Approve login')
    await shows(page, 'The login leads somewhere else')
    expect(requested.every((asked) => asked.startsWith(consentPages.world.baseUrl))).toBe(true)
  })
})

describe('declining', () => {
  const rejected = ok({ object: 'gate_session', id: unknownId, status: 'rejected' })

  test('ends the request', async () => {
    const { page, posted } = await open({ consent: [ok(consent())], cancel: [rejected] })
    await heading(page, /Create an account/).waitFor()
    await press(page, 'Decline')
    await shows(page, 'Declined')
    await screenshot(page, 'declined')
    expect(posted).toEqual([{ path: 'cancel', body: null }])
  })

  test('one that did not arrive can be repeated', async () => {
    const { page } = await open({ consent: [ok(consent())], cancel: [lost, rejected] })
    await heading(page, /Create an account/).waitFor()
    await press(page, 'Decline')
    await page.getByRole('alert').filter({ hasText: 'The connection was lost' }).waitFor()
    await press(page, 'Decline')
    await shows(page, 'Declined')
  })
})

describe('by keyboard alone', () => {
  const answers = {
    consent: [ok(consent())],
    approve: [ok({ object: 'gate_session', id: unknownId, status: 'approved' })],
    cancel: [ok({ object: 'gate_session', id: unknownId, status: 'rejected' })],
  }

  test('a stray Enter or Space decides nothing', async () => {
    const { page, posted } = await open(answers)
    await reviewed(page)
    for (const key of ['Enter', 'Space', 'Enter']) await page.keyboard.press(key)
    expect(await heading(page, /Create an account/).isVisible()).toBe(true)
    expect(posted).toEqual([])
  })

  test.each([
    ['approve', 'Enter', 'Approved'],
    ['approve', 'Space', 'Approved'],
    ['decline', 'Enter', 'Declined'],
    ['decline', 'Space', 'Declined'],
  ])('%s with %s', async (id, key, title) => {
    const { page } = await open(answers)
    await reviewed(page)
    await tabTo(page, id)
    expect(
      await page.evaluate(`getComputedStyle(document.querySelector('#${id}')).outlineStyle`),
    ).toBe('solid')
    await page.keyboard.press(key)
    await shows(page, title)
  })

  async function tabTo(page: Page, id: string): Promise<void> {
    for (let i = 0; i < 20; i++) {
      await page.keyboard.press('Tab')
      if ((await page.evaluate('document.activeElement.id')) === id) return
    }
    throw new Error(`no Tab leads to ${id}`)
  }
})

describe('the page of a real request', () => {
  test('a person at a screen approves', async () => {
    const seed = Date.now()
    console.log(`seed ${seed}`)
    const next = createNumbers(seed)
    const id = await consentPages.world.signup()
    const desktop = await openDesktop()
    const person = await createProfile()
    try {
      await desktop.openWindow(consentPages.world.pageUrl(id), person)
      await eventually(async () => expect(await consentPages.world.isOpen(id)).toBe(true), {
        timeoutMs: 40_000,
        intervalMs: 200,
      })
      await desktop.input([
        ...pause(1500),
        ...movePointer({ x: 1100, y: 320 }, { x: 700, y: 520 }, next),
        ...Array.from({ length: 4 }, () => ['click', '5', ...pause(150 + next() * 200)]).flat(),
        ...movePointer({ x: 700, y: 520 }, { x: 560, y: 640 }, next),
        ...pause(900),
        ...movePointer({ x: 560, y: 640 }, { x: 760, y: 700 }, next),
        // From the heading over the website and Decline to Approve.
        ...[1, 2, 3].flatMap(() => pressKey('Tab', next)),
        ...pause(400),
        ...pressKey('Return', next),
      ])
      await eventually(
        async () => expect((await consentPages.world.session(id))?.status).toBe('approved'),
        {
          timeoutMs: 15_000,
          intervalMs: 100,
        },
      )
    } finally {
      await desktop.close()
      await person.remove()
    }
  }, 120_000)
})

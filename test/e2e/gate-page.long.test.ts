import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import { createProfile } from '../support/chromium.ts'
import {
  type Answer,
  accessible,
  acme,
  approve,
  approved,
  consent,
  ended,
  fitsIn,
  focused,
  heading,
  lost,
  notice,
  ok,
  press,
  refused,
  rejected,
  reviewed,
  shows,
  textOf,
  unknownId,
  useConsentPages,
} from '../support/consent-page.ts'
import { eventually } from '../support/eventually.ts'
import { createNumbers, movePointer, pause, pressKey } from '../support/hand.ts'
import { needs } from '../support/needs.ts'
import { openDesktop } from '../support/window.ts'

const { describe, test } = needs('chromium')
const atScreen = needs('chromium', 'desktop')

const consentPages = useConsentPages()
const { open } = consentPages

const asked = [ok(consent())]
const from = (network: object) => ({ requested_by: { ...consent().requested_by, network } })
const elsewhere = { same: false, country: 'Iceland', operator: 'Example Hosting' }
const nameField = (page: Page) => page.getByLabel(/type the account name/)
const bodiesOf = (posted: { body: string | null }[]) => posted.map(({ body }) => body)

describe('what is asked', () => {
  test('of a login: to what, as whom, and where this browser goes', async () => {
    const { page } = await open({ consent: [ok(consent({ kind: 'login' }))] })
    await shows(page, 'Log in to Acme Mail’s dashboard as Harbour Notes?')
    expect(await textOf(page)).toContain(
      'This browser opens app.acme.example, logged in as Harbour Notes.',
    )
    expect(await textOf(page)).not.toContain('ACME_API_KEY')
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
    const large = (await drawn(`${'#'.repeat(200)}\n`.repeat(50))).page
    await large.locator('.drawing[tabindex="0"]').waitFor()
    await accessible(large)
  })

  test('a verified service says so', async () => {
    const branding = { ...acme.branding, logo_url: '/assets/mark.svg', verified: true }
    const { page } = await open({ consent: [ok(consent({}, { branding }))] })
    await heading(page, /Acme/).waitFor()
    expect(await textOf(page)).toContain('Verified service')
    expect(await textOf(page)).not.toContain('Not verified')
  })
})

describe('what cannot be decided', () => {
  test.each<[string, Answer, string]>([
    ['not found', refused(404, 'gate.session_not_found'), 'Request not found'],
    ['expired', refused(410, 'gate.session_expired'), 'This request has expired'],
    ['resolved', refused(409, 'gate.session_already_resolved'), 'This request was already decided'],
    ['opened too often', refused(429, 'gate.rate_limit', 600), 'One moment, please'],
    ['not to be had', refused(500, 'internal.error'), 'Something went wrong on our side'],
    ['offline', lost, 'No connection'],
    ['approved', ended('approved'), 'This sign-up was approved'],
    ['an approved login', ended('approved', 'login'), 'This login was approved'],
    ['declined', ended('declined'), 'Declined'],
    ['closed', ended('closed'), 'This request was closed'],
    ['failed', ended('integrator_failed'), 'The service could not finish'],
    ['unclaimed', ended('claim_failed'), 'The code was wrong five times'],
  ])('is %s', async (_name, answered, title) => {
    const { page, posted } = await open({ consent: [answered] })
    await shows(page, title)
    await page.close()
    expect(posted).toEqual([])
  })

  test('a page that could not be opened can be opened again', async () => {
    const { page } = await open({ consent: [refused(503, 'service.unavailable'), ok(consent())] })
    await shows(page, 'Something went wrong on our side')
    await press(page, 'Try again')
    await shows(page, /Create an account/)
  })

  test.each([
    ['that the browser had kept', "new PageTransitionEvent('pageshow', { persisted: true })"],
    ['that comes to the front after a while', "(putForward(10_000), new Event('focus'))"],
  ])('a page %s asks anew', async (_name, event) => {
    const { page } = await open({ consent: [ok(consent()), ended('declined')] })
    await heading(page, /Create an account/).waitFor()
    await page.evaluate(`dispatchEvent(${event})`)
    await shows(page, 'Declined')
  })

  test('the time runs out while the page is open', async () => {
    const { page, posted } = await open({ consent: asked })
    await heading(page, /Create an account/).waitFor()
    // The clock is this page's alone: that of the browser would be the next pages' clock, too.
    await page.evaluate('{ const now = Date.now; Date.now = () => now() + 900_000 }')
    await shows(page, 'This request has expired')
    expect(posted).toEqual([])
  })
})

describe('approving', () => {
  test('a service that takes its time is asked again, with the same proof', async () => {
    const inProgress = refused(409, 'gate.approval_in_progress', 1)
    const { page, posted } = await open({ consent: asked, approve: [inProgress, lost, approved()] })
    await approve(page)
    await shows(page, 'Acme Mail is setting up the account')
    await shows(page, 'Approved')
    expect([posted.length, new Set(bodiesOf(posted)).size]).toEqual([3, 1])
  })

  test.each<[string, Answer, number]>([
    ['This looked automated', refused(403, 'gate.bot_detected'), 1],
    ['We could not confirm that a person is here', refused(403, 'gate.svc_proof_invalid'), 2],
    ['Press Approve again in 40 seconds.', refused(429, 'gate.rate_limit', 40), 1],
    ['That did not work', refused(500, 'internal.error'), 1],
    ['The connection was lost', lost, 1],
  ])('"%s": it can be tried again', async (text, answered, requests) => {
    const answers = [...Array<Answer>(requests).fill(answered), approved()]
    const { page, posted } = await open({ consent: asked, approve: answers })
    await approve(page)
    await notice(page, text)
    // The notices differ in their words.
    if (text === 'This looked automated') await accessible(page)
    expect(new Set(bodiesOf(posted)).size).toBe(requests)
    expect(await focused(page)).toBe('approve')
    await press(page, 'Approve')
    await shows(page, 'Approved')
  })

  test('after the last attempt there is only Decline', async () => {
    const { page, posted } = await open({
      consent: asked,
      approve: [refused(429, 'gate.rate_limit', 80_000), approved()],
      cancel: [rejected],
    })
    await approve(page)
    await notice(page, 'can no longer be approved from here')
    const button = page.getByRole('button', { name: 'Approve' })
    expect(await button.isDisabled()).toBe(true)
    await accessible(page)
    await button.click({ force: true })
    await press(page, 'Decline')
    await shows(page, 'Declined')
    expect(posted.map(({ path: name }) => name)).toEqual(['approve', 'cancel'])
  })

  test('a slow service: the page says so, and until when it is asked', async () => {
    const { page } = await open(
      { consent: asked, approve: [refused(409, 'gate.approval_in_progress', 600)] },
      { init: (opened) => opened.clock.install() },
    )
    await heading(page, /\?$/).waitFor()
    await page.clock.fastForward(1000)
    await press(page, 'Approve')
    await shows(page, 'Acme Mail is setting up the account')
    expect(await textOf(page)).not.toContain('slow')
    await page.clock.fastForward(20_000)
    const main = page.getByRole('main')
    await main.getByText(/Acme Mail is slow to respond; retrying until \d+:\d\d/).waitFor()
    expect(await textOf(page)).not.toContain('a few seconds')
  })

  test('a page that has just come to the front takes no Approve', async () => {
    const { page, posted } = await open({ consent: asked, approve: [approved()] })
    await reviewed(page)
    await page.evaluate("dispatchEvent(new Event('focus'))")
    await press(page, 'Approve')
    await notice(page, 'Press Approve again to confirm')
    expect(posted).toEqual([])
  })
})

describe('a login', () => {
  const login = [ok(consent({ kind: 'login' }))]
  const answered = (redirect_url: string) =>
    ok({ object: 'gate_login_session', id: unknownId, status: 'approved', code: 'x', redirect_url })

  test('goes on to the dashboard', async () => {
    const url = 'https://app.acme.example/auth/gate?code=x'
    const { page } = await open(
      { consent: login, approve: [answered(url)] },
      {
        init: (opened) =>
          opened.route('https://app.acme.example/**', (route) =>
            route.fulfill({ contentType: 'text/html', body: '<!doctype html><h1>Dashboard</h1>' }),
          ),
      },
    )
    await approve(page, 'Approve login')
    await heading(page, /^Dashboard$/).waitFor()
    expect(page.url()).toBe(url)
    expect(await page.evaluate('document.referrer')).toBe('')
  })

  test('goes nowhere else', async () => {
    const other = answered('https://evil.example/?code=x')
    const { page, requested } = await open({ consent: login, approve: [other] })
    await approve(page, 'Approve login')
    await shows(page, 'This login points to another site')
    expect(requested.every((url) => url.startsWith(consentPages.world.baseUrl))).toBe(true)
  })
})

test('declining can be repeated where it did not arrive', async () => {
  const { page, posted } = await open({ consent: asked, cancel: [lost, rejected] })
  await heading(page, /Create an account/).waitFor()
  await press(page, 'Decline')
  await notice(page, 'The connection was lost')
  await press(page, 'Decline')
  await shows(page, 'Declined')
  expect(posted).toEqual(Array(2).fill({ path: 'cancel', body: null }))
})

describe('by keyboard alone', () => {
  const answers = { consent: asked, approve: [approved()], cancel: [rejected] }

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
    for (let i = 0; i < 20 && (await focused(page)) !== id; i++) await page.keyboard.press('Tab')
    expect(await focused(page)).toBe(id)
    const outline = `getComputedStyle(document.querySelector('#${id}')).outlineStyle`
    expect(await page.evaluate(outline)).toBe('solid')
    await page.keyboard.press(key)
    await shows(page, title)
  })
})

describe('the page of a real request', () => {
  atScreen.test(
    'a person at a screen approves',
    async () => {
      const seed = Date.now()
      console.log(`seed ${seed}`)
      const next = createNumbers(seed)
      const { world } = consentPages
      const id = await world.signup()
      const desktop = await openDesktop()
      const person = await createProfile()
      try {
        await desktop.openWindow(world.pageUrl(id), person)
        await eventually(async () => expect(await world.isOpen(id)).toBe(true), {
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
        await eventually(async () => expect((await world.session(id))?.status).toBe('approved'), {
          timeoutMs: 15_000,
          intervalMs: 100,
        })
      } finally {
        await desktop.close()
        await person.remove()
      }
    },
    120_000,
  )

  test('closing it rejects the request; a reload does not, nor does closing one of two tabs', async () => {
    const { world } = consentPages
    const { signup } = world
    const [closed, reloaded, twice] = [await signup(), await signup(), await signup()]
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
    const rejection = { status: 'rejected', rejection: 'closed' }
    const isRejected = async () => expect(await world.session(closed)).toMatchObject(rejection)
    await eventually(isRejected, { timeoutMs: 15_000, intervalMs: 100 })
    // Their pages began to close earlier.
    for (const id of [reloaded, twice]) {
      expect((await world.session(id))?.status).toBe('pending')
      expect(await world.isOpen(id)).toBe(true)
    }
    // Opened then, the page says that it is over.
    const again = await open({}, { id: closed })
    await shows(again.page, 'This request was closed')
  })
})

describe('variables', () => {
  const variable = (key: string, group: string) => ({ key, name: 'A key', secret: true, group })
  const variables = [
    variable('ACME_KEY', 'verified'),
    variable('ACME_MAIL_KEY', 'service'),
    variable('ACME_MAIL_ID', 'service'),
    variable('DATABASE_URL', 'other'),
    variable('OPENAI_BASE_URL', 'refused'),
  ]
  const [own, others] = [
    /^Write these to my tool’s environment file/,
    /^Also write these to my tool’s environment file/,
  ]
  const ours = ['ACME_KEY', 'ACME_MAIL_KEY', 'ACME_MAIL_ID']

  test.each([
    [[], ['ACME_KEY']],
    [[own], ours],
    [
      [own, others],
      [...ours, 'DATABASE_URL'],
    ],
  ])(
    'that are ticked go to the env file, and those of a verified name: %o',
    async (ticks, accepted) => {
      const answers = { consent: [ok(consent({ variables }))], approve: [approved()] }
      const { page, posted } = await open(answers)
      await reviewed(page)
      const boxes = page.getByRole('checkbox')
      expect(await boxes.count()).toBe(2)
      for (const box of await boxes.all()) expect(await box.isChecked()).toBe(false)
      for (const name of ticks) await page.getByRole('checkbox', { name }).check()
      await fitsIn(page, 320)
      await accessible(page)
      await press(page, 'Approve')
      await shows(page, 'Approved')
      expect(JSON.parse(posted[0]?.body ?? '').accepted_env_vars).toEqual(accepted)
    },
  )

  test('of a real service are told apart by what is verified of it', async () => {
    const { world } = consentPages
    const keys = ['ACME_KEY', 'DATABASE_URL', 'OPENAI_BASE_URL']
    const env_vars = keys.map((key) => ({ name: 'Key', key, secret: true }))
    const id = await world.signup(await world.service({ env_vars }))
    const { page } = await open({}, { id })
    await heading(page, /Create an account/).waitFor()
    const list = page.getByRole('listitem')
    expect(await list.locator('code').allTextContents()).toEqual([
      expect.stringMatching(/_GATE_AGENT_TOKEN$/),
      ...keys,
    ])
    expect(await page.getByRole('checkbox').count()).toBe(1)
    expect(await textOf(page)).toContain('they could change how other programs run')
  })
})

describe('before an attempt is spent', () => {
  const given = (network: object) => ({
    consent: [ok(consent(from(network)))],
    approve: [approved()],
  })

  test('the name of the account is typed where the agent is in another network', async () => {
    const { page, posted } = await open(given(elsewhere))
    await reviewed(page)
    expect(await textOf(page)).toContain(
      'It came from a different network than this browser’s: Iceland, Example',
    )
    await accessible(page)
    for (const typed of ['', 'Harbour', 'Harbor Notes']) {
      await nameField(page).fill(typed)
      await press(page, 'Approve')
      await notice(page, 'First type the account name')
      expect(await focused(page)).toBe('account-name')
    }
    expect(posted).toEqual([])
    await nameField(page).fill(' harbour  notes ')
    await press(page, 'Approve')
    await shows(page, 'Approved')
  })

  test.each([
    { width: 360, height: 640 },
    { width: 1280, height: 720 },
  ])('the warning and the code are what is seen first, $width wide', async (size) => {
    const { page } = await open(given(elsewhere))
    await page.setViewportSize(size)
    await reviewed(page)
    const code = page.getByRole('group', { name: 'Confirmation code' })
    expect(await code.textContent()).toContain('K7QF-M2XD')
    const warning = page.getByRole('heading', { name: 'This did not come from your network' })
    const first = await boxOf(page.locator('.decide'))
    const [told, shown] = [await boxOf(warning.locator('..')), await boxOf(code)]
    for (const box of [told, shown]) {
      expect(box.y).toBeGreaterThanOrEqual(0)
      expect(box.y + box.height).toBeLessThanOrEqual(first.y)
    }
    // Beside it, or right below where that is too narrow.
    const gap = Math.max(shown.y - (told.y + told.height), shown.x - (told.x + told.width))
    expect(gap).toBeLessThan(40)
    const ofTheLink = 'This page does not know who you are: anyone with the link can approve.'
    expect(await textOf(page)).toContain(ofTheLink)
    await accessible(page)
  })

  test('a program that presses Approve is told to let a person do it; a person with a key alone may', async () => {
    const { page, posted } = await open(given({ ...elsewhere, same: true }))
    await reviewed(page)
    expect(await page.getByRole('textbox').count()).toBe(0)
    await page.evaluate("document.getElementById('approve').click()")
    await notice(page, 'A person must press Approve')
    expect(posted).toEqual([])
    await page.getByRole('button', { name: 'Approve' }).press('Enter')
    await shows(page, 'Approved')
  })
})

async function boxOf(locator: Locator) {
  const box = await locator.boundingBox()
  if (!box) throw new Error('it is not shown')
  return box
}

describe('a service that means harm', () => {
  const script = '<img src=x onerror="window.ran=1"><script>window.ran=1</script>'
  const text = `${script}\u202egnp.exe\u202c\u0000\u001b[31m\u200b\u2066`
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
      ascii_art: `${script}\n${`${'#'.repeat(1000)}\n`.repeat(300)}`,
    },
    consent: { terms_url: address, privacy_url: 'https://user@evil.example/' },
  }

  test('runs nothing, reaches nobody but its logo, hides nothing and breaks nothing', async () => {
    const { world } = consentPages
    const id = await world.signup(await world.service(hostile))
    const dialogs: string[] = []
    const init = async (opened: Page) => {
      opened.on('dialog', (dialog) => dialogs.push(dialog.message()))
      await opened.route('https://logos.example/**', (route) => route.abort())
    }
    const { page, requested } = await open({}, { id, init })
    await heading(page, /Create an account at <img src=x/).waitFor()
    expect(await page.evaluate("'ran' in window")).toBe(false)
    expect(dialogs).toEqual([])
    const urls = requested.filter((url) => !url.startsWith('blob:'))
    const origins = new Set(urls.map((url) => new URL(url).origin))
    expect(origins).toEqual(new Set([world.baseUrl, 'https://logos.example']))
    expect(await textOf(page)).not.toMatch(/(?!\n)[\p{Cc}\p{Bidi_Control}]/u)
    expect(await page.locator('a').count()).toBe(0)
    expect(await page.locator('span.logo').textContent()).toBe('<')
    await fitsIn(page, 320)
    await fitsIn(page, 1280)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      await accessible(page)
      for (const name of ['Approve', 'Decline']) await seen(page, name)
    }
  })

  /** Throws where something lies over the middle of the button. */
  async function seen(page: Page, name: string): Promise<void> {
    const button = page.getByRole('button', { name })
    await button.scrollIntoViewIfNeeded()
    const { x, y, width, height } = await boxOf(button)
    const onTop = `document.elementFromPoint(${x + width / 2}, ${y + height / 2})?.textContent`
    expect(await page.evaluate(onTop)).toBe(name)
  }

  test.each([360, 1280])(
    'paints over nothing of ours, whatever it writes, %i wide',
    async (width) => {
      const branding = { ...acme.branding, logo_url: undefined, ascii_art: ' /\\ \n/  \\' }
      const shown = consent({ metadata: { note: 'Hello' }, ...from(elsewhere) }, { branding })
      const { page } = await open({ consent: [ok(shown)] })
      await page.setViewportSize({ width, height: 900 })
      await reviewed(page)
      // Past what the page leaves out of it: the box itself must hold it. Red, as nothing of ours is.
      await page.evaluate(`
      const marks = '\\u0300\\u0302\\u0304\\u030c\\u0316\\u0317'.repeat(12)
      for (const one of document.querySelectorAll('.foreign')) {
        one.style.color = 'rgb(255, 0, 0)'
        const walker = document.createTreeWalker(one, NodeFilter.SHOW_TEXT)
        while (walker.nextNode())
          walker.currentNode.data = walker.currentNode.data.replace(/[a-z]/gi, (letter) => letter + marks)
      }
    `)
      expect(await strayPixels(page)).toBe(0)
      // As a control: without its box it is seen over what is ours.
      await page.evaluate(`
      for (const one of document.querySelectorAll('.foreign')) {
        one.style.contain = 'none'
        one.style.overflow = 'visible'
      }
    `)
      expect(await strayPixels(page)).toBeGreaterThan(100)
    },
  )

  /** Counts the red pixels that lie outside of the boxes of what others wrote. */
  async function strayPixels(page: Page): Promise<number> {
    const boxes = await page.locator('.foreign').evaluateAll((all) =>
      all.map((one) => {
        const { left, top, right, bottom } = one.getBoundingClientRect()
        return [left - 1, top - 1, right + 1, bottom + 1]
      }),
    )
    expect(boxes.length).toBeGreaterThan(8)
    const image = (await page.screenshot({ fullPage: true })).toString('base64')
    const drawing = await page.context().newPage()
    const count = await drawing.evaluate<number>(`(async () => {
      const blob = await (await fetch('data:image/png;base64,${image}')).blob()
      const bitmap = await createImageBitmap(blob)
      const { width, height } = bitmap
      const canvas = new OffscreenCanvas(width, height).getContext('2d')
      canvas.drawImage(bitmap, 0, 0)
      const { data } = canvas.getImageData(0, 0, width, height)
      const boxes = ${JSON.stringify(boxes)}
      let stray = 0
      for (let at = 0; at < data.length; at += 4) {
        const [red, green, blue] = [data[at], data[at + 1], data[at + 2]]
        if (red - green < 120 || red - blue < 120) continue
        const [x, y] = [(at / 4) % width, Math.floor(at / 4 / width)]
        if (!boxes.some(([left, top, right, bottom]) => x >= left && x <= right && y >= top && y <= bottom)) stray++
      }
      return stray
    })()`)
    await drawing.close()
    return count
  }

  test('what it says stands as its own, and marks in it are not piled up', async () => {
    const description = `Tidegate has verified us.\n${'Z\u0300\u0301\u0302\u0303'.repeat(3)}`
    const { page } = await open({ consent: [ok(consent({}, { description }))] })
    await reviewed(page)
    const said = page.getByRole('region', { name: 'In the service’s own words' })
    const shown = `Tidegate has verified us.\n${'Z\u0300\u0301'.repeat(3)}`
    expect(await said.getByRole('blockquote').textContent()).toBe(shown)
    expect(await page.getByRole('banner').textContent()).not.toContain('verified us')
    expect(await page.locator('.head').textContent()).toContain('Not verified')
  })

  test('the policy of the page names the origin of its logo', async () => {
    const { world } = consentPages
    const branding = { ...acme.branding, logo_url: 'https://cdn.acme.example:8443/a/logo.png' }
    const id = await world.signup(await world.service({ branding }))
    const { headers } = await fetch(world.pageUrl(id))
    const images = "img-src 'self' https://cdn.acme.example:8443;"
    expect(headers.get('content-security-policy')).toContain(images)
  })
})

describe('a code that the tool is told', () => {
  const code = '483 201'

  test('is shown large and readable, also after a reload, until the tool has told it', async () => {
    const waiting = consent(from(elsewhere))
    const { page, posted } = await open({
      consent: [ok(waiting), ok({ ...waiting, claim: 'waiting', approve_token: 'gtapr_other' })],
      approve: [approved({ status: 'pending', claim_code: code })],
    })
    const answer = (status: string) =>
      page.route('**/approve', (route) => route.fulfill({ json: approved({ status }) }))
    await reviewed(page)
    await nameField(page).fill('Harbour Notes')
    await press(page, 'Approve')
    await shows(page, 'Give this code to your tool')
    const shown = page.getByRole('img', { name: 'Code: 4 8 3 2 0 1' })
    expect(await shown.textContent()).toBe(code)
    await fitsIn(page, 320)
    await accessible(page)
    // The token of a reloaded page has not approved: the server shows it no code.
    await answer('pending')
    await page.reload()
    await shows(page, 'Give this code to your tool')
    expect(await shown.textContent()).toBe(code)
    await answer('approved')
    await shows(page, 'Approved')
    expect(JSON.parse(posted[0]?.body ?? '')).toMatchObject({ account_name: 'Harbour Notes' })
    expect(posted.every(({ path: name }) => name === 'approve')).toBe(true)
  })

  test('a page that the server asks for the name shows the field, and keeps the three tries', async () => {
    const unnamed = {
      ...refused(422, 'gate.validation_failed'),
      details: { fields: [{ name: 'account_name', issue: 'required' }] },
    }
    const { page, posted } = await open({ consent: asked, approve: [unnamed, approved()] })
    await approve(page)
    await notice(page, 'Type the account name as well')
    await accessible(page)
    await nameField(page).fill('harbour  notes')
    await approve(page)
    await shows(page, 'Approved')
    const names = bodiesOf(posted).map((body) => JSON.parse(body ?? '').account_name)
    expect(names).toEqual([undefined, 'Harbour Notes'])
  })
})

test('the receipt of an approval erases by one press, with the token that no server was told', async () => {
  const receipt_url = `${consentPages.world.baseUrl}/gate/receipt/${unknownId}#gtrcpt_fake`
  const { page } = await open({ consent: asked, approve: [approved({ receipt_url })] })
  await approve(page)
  await page.getByRole('link', { name: 'Delete the record of who approved' }).click()
  await heading(page, 'Delete the record of your approval').waitFor()
  await accessible(page)
  await fitsIn(page, 320)
  const button = page.getByRole('button', { name: 'Delete the record' })
  await button.click()
  await page.getByText('This link is incomplete').waitFor()
  const bodies: unknown[] = []
  await page.route('**/erase', (route) => {
    bodies.push(route.request().postDataJSON())
    return route.fulfill({ json: { data: {}, meta: { request_id: 'req_1' } } })
  })
  await button.click()
  await page.getByText('The record is deleted').waitFor()
  expect(bodies).toEqual([{ receipt_token: 'gtrcpt_fake' }])
})

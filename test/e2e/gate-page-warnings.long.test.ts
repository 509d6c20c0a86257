import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import {
  accessible,
  consent,
  fitsIn,
  heading,
  ok,
  press,
  reviewed,
  screenshot,
  shows,
  unknownId,
  useConsentPages,
} from '../support/consent-page.ts'
import { acme } from '../support/consent-world.ts'
import { needs } from '../support/needs.ts'

const { describe, test } = needs('chromium')

const consentPages = useConsentPages()
const { open } = consentPages

describe('variables', () => {
  const approved = ok({ object: 'gate_session', id: unknownId, status: 'approved' })
  const variable = (key: string, group: string) => ({ key, name: 'A key', secret: true, group })
  const variables = [
    variable('ACME_KEY', 'verified'),
    variable('ACME_MAIL_KEY', 'service'),
    variable('ACME_MAIL_ID', 'service'),
    variable('DATABASE_URL', 'other'),
    variable('OPENAI_BASE_URL', 'refused'),
  ]

  async function accepted(ticks: RegExp[]) {
    const answers = { consent: [ok(consent({ variables }))], approve: [approved] }
    const { page, posted } = await open(answers)
    await reviewed(page)
    const boxes = page.getByRole('checkbox')
    expect(await boxes.count()).toBe(2)
    for (const box of await boxes.all()) expect(await box.isChecked()).toBe(false)
    for (const name of ticks) await page.getByRole('checkbox', { name }).check()
    if (ticks.length === 2) {
      await accessible(page)
      await fitsIn(page, 320)
      await accessible(page)
      await screenshot(page, 'variables')
    }
    await press(page, 'Approve')
    await shows(page, 'Approved')
    return JSON.parse(posted[0]?.body ?? '').accepted_env_vars
  }

  test('of a verified name go to the env file; the others in as many as two ticks, or not', async () => {
    const [own, others] = [/environment file of my tool$/, /environment file of my tool, too$/]
    expect(await accepted([])).toEqual(['ACME_KEY'])
    expect(await accepted([own])).toEqual(['ACME_KEY', 'ACME_MAIL_KEY', 'ACME_MAIL_ID'])
    expect(await accepted([own, others])).toEqual([
      'ACME_KEY',
      'ACME_MAIL_KEY',
      'ACME_MAIL_ID',
      'DATABASE_URL',
    ])
  })

  test('of a real service are told apart by what is verified of it', async () => {
    const key = (name: string) => ({ name: 'Key', key: name, secret: true })
    const keys = ['ACME_KEY', 'DATABASE_URL', 'OPENAI_BASE_URL']
    const serviceId = await consentPages.world.service({ env_vars: keys.map(key) })
    const { page } = await open({}, { id: await consentPages.world.signup(serviceId) })
    await heading(page, /Create an account/).waitFor()
    const list = page.getByRole('listitem')
    expect(await list.locator('code').allTextContents()).toEqual([
      expect.stringMatching(/_GATE_AGENT_TOKEN$/),
      'ACME_KEY',
      'DATABASE_URL',
      'OPENAI_BASE_URL',
    ])
    expect(await page.getByRole('checkbox').count()).toBe(1)
    expect(await page.getByRole('main').textContent()).toContain('they would steer other programs')
  })
})

describe('before an attempt is spent', () => {
  const given = (network: object) => {
    const requested_by = { ...consent().requested_by, network }
    return { consent: [ok(consent({ requested_by }))], approve: [ok({ object: 'gate_session' })] }
  }
  const elsewhere = { same: false, country: 'Iceland', operator: 'Example Hosting' }

  test('the name of the account is typed where the agent is in another network', async () => {
    const { page, posted } = await open(given(elsewhere))
    await reviewed(page)
    const text = await page.getByRole('main').textContent()
    expect(text).toContain(
      'It was asked for from another network than the one this browser is in: Iceland, Example',
    )
    await accessible(page)
    await screenshot(page, 'elsewhere-network')
    const field = page.getByRole('textbox', { name: /type the account’s name: Harbour Notes/ })
    for (const typed of ['', 'Harbour', 'Harbor Notes']) {
      await field.fill(typed)
      await press(page, 'Approve')
      await page
        .getByRole('alert')
        .filter({ hasText: 'Type the name of the account first' })
        .waitFor()
      expect(await page.evaluate('document.activeElement.id')).toBe('account-name')
    }
    expect(posted).toEqual([])
    await field.fill(' harbour  notes ')
    await press(page, 'Approve')
    await shows(page, 'Approved')
  })

  test.each([
    { width: 360, height: 640 },
    { width: 1280, height: 720 },
  ])(
    'the warning of another network and the code are what is seen first, $width wide',
    async (size) => {
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
      const text = await page.getByRole('main').textContent()
      expect(text).toContain(
        'Whoever has this link can approve, and this page does not know who you are.',
      )
      await accessible(page)
      await screenshot(page, `warning-${size.width}`)
    },
  )

  async function boxOf(locator: Locator) {
    const box = await locator.boundingBox()
    if (!box) throw new Error('it is not shown')
    return box
  }

  test('it is typed as well where nobody knows from where the agent asked', async () => {
    const { page } = await open(given({ same: null, country: null, operator: null }))
    await reviewed(page)
    expect(await page.getByRole('textbox').count()).toBe(1)
  })

  test('a program that presses Approve is told to let a person do it; a person with a key alone may', async () => {
    const { page, posted } = await open(given({ ...elsewhere, same: true }))
    await reviewed(page)
    expect(await page.getByRole('textbox').count()).toBe(0)
    await page.evaluate("document.getElementById('approve').click()")
    await page.getByRole('alert').filter({ hasText: 'A person has to press Approve' }).waitFor()
    expect(posted).toEqual([])
    await page.getByRole('button', { name: 'Approve' }).press('Enter')
    await shows(page, 'Approved')
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
      ascii_art: `${script}\n${`${'#'.repeat(1000)}\n`.repeat(300)}`,
    },
    consent: { terms_url: address, privacy_url: 'https://user@evil.example/' },
  }

  test('runs nothing, reaches nobody but its logo, hides nothing and breaks nothing', async () => {
    const serviceId = await consentPages.world.service(hostile)
    const id = await consentPages.world.signup(serviceId)
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
    expect([...hosts].sort()).toEqual([consentPages.world.baseUrl, 'https://logos.example'].sort())
    expect(await page.getByRole('main').textContent()).not.toMatch(
      /(?!\n)[\p{Cc}\p{Bidi_Control}]/u,
    )
    const links = await page
      .locator('a')
      .evaluateAll((all) => all.map((link) => link.getAttribute('href')))
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

  test.each([360, 1280])(
    'paints over nothing of ours, whatever it writes, %i wide',
    async (width) => {
      const metadata = { note: 'Hello' }
      const requested_by = {
        ...consent().requested_by,
        network: { same: false, country: 'Iceland', operator: 'X' },
      }
      const branding = { ...acme.branding, logo_url: undefined, ascii_art: ' /\\ \n/  \\' }
      const { page } = await open({
        consent: [ok(consent({ metadata, requested_by }, { branding }))],
      })
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

  /** How many red pixels lie outside of the boxes of what others wrote. */
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
    const said = page.getByRole('region', { name: 'The service says of itself' })
    expect(await said.getByRole('blockquote').textContent()).toBe(
      `Tidegate has verified us.\n${'Z\u0300\u0301'.repeat(3)}`,
    )
    expect(await page.getByRole('banner').textContent()).not.toContain('verified us')
    expect(await page.locator('.head').textContent()).toContain('Not verified')
  })

  /** Nothing lies over the middle of the button. */
  async function seen(page: Page, name: string): Promise<void> {
    const button = page.getByRole('button', { name })
    await button.scrollIntoViewIfNeeded()
    const box = await button.boundingBox()
    if (!box) throw new Error(`${name} is not shown`)
    const middle = `${box.x + box.width / 2}, ${box.y + box.height / 2}`
    const isOnTop = await page.evaluate(
      `document.elementFromPoint(${middle})?.textContent === '${name}'`,
    )
    expect(isOnTop).toBe(true)
  }

  test('the policy of the page names the origin of its logo, and nothing that a logo could add', async () => {
    const policyOf = async (logo_url: string) => {
      const branding = { ...acme.branding, logo_url }
      const id = await consentPages.world.signup(await consentPages.world.service({ branding }))
      const { headers } = await fetch(consentPages.world.pageUrl(id))
      return headers.get('content-security-policy')
    }
    const plain = (await fetch(consentPages.world.pageUrl(unknownId))).headers
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

describe('a code that the tool is told', () => {
  const code = '483 201'
  const waiting = ok({ object: 'gate_session', id: unknownId, status: 'pending', claim_code: code })
  const approved = ok({ object: 'gate_session', id: unknownId, status: 'approved' })
  const elsewhere = { same: false, country: null, operator: null }
  const answers = (page: Page, data: object) =>
    page.route('**/approve', (route) =>
      route.fulfill({ json: { data, meta: { request_id: 'req_1' } } }),
    )

  test('is shown large and readable, also after a reload, until the tool has told it', async () => {
    const requested_by = { ...consent().requested_by, network: elsewhere }
    const asked = consent({ requested_by })
    const { page, posted } = await open({
      consent: [ok(asked), ok({ ...asked, claim: 'waiting', approve_token: 'gtapr_other' })],
      approve: [waiting],
    })
    await reviewed(page)
    await page.getByLabel(/type the account’s name/).fill('Harbour Notes')
    await press(page, 'Approve')
    await shows(page, 'Tell your tool this code')
    const shown = page.getByRole('img', { name: 'Code: 4 8 3 2 0 1' })
    expect(await shown.textContent()).toBe(code)
    await accessible(page)
    await screenshot(page, 'claim')
    await fitsIn(page, 320)
    await accessible(page)
    // The token of a reloaded page has not approved: the server shows it no code.
    await answers(page, { object: 'gate_session', id: unknownId, status: 'pending' })
    await page.reload()
    await shows(page, 'Tell your tool this code')
    expect(await shown.textContent()).toBe(code)
    await answers(page, { object: 'gate_session', id: unknownId, status: 'approved' })
    await shows(page, 'Approved')
    expect(JSON.parse(posted[0]?.body ?? '')).toMatchObject({ account_name: 'Harbour Notes' })
    expect(posted.every(({ path: name }) => name === 'approve')).toBe(true)
  })

  test('a page that the server asks for the name shows the field, and keeps the three tries', async () => {
    const unnamed = {
      status: 422,
      code: 'gate.validation_failed',
      details: { fields: [{ name: 'account_name', issue: 'required' }] },
    }
    const { page, posted } = await open({ consent: [ok(consent())], approve: [unnamed, approved] })
    await reviewed(page)
    await press(page, 'Approve')
    await page.getByRole('alert').filter({ hasText: 'Type the account’s name, too' }).waitFor()
    await accessible(page)
    await page.getByLabel(/type the account’s name/).fill('harbour  notes')
    await reviewed(page)
    await press(page, 'Approve')
    await shows(page, 'Approved')
    expect(posted.map(({ body }) => JSON.parse(body ?? '').account_name)).toEqual([
      undefined,
      'Harbour Notes',
    ])
  })
})

test('the receipt of an approval erases by one press, with the token that no server was told', async () => {
  const receipt_url = `${consentPages.world.baseUrl}/gate/receipt/${unknownId}#gtrcpt_fake`
  const approved = ok({ object: 'gate_session', id: unknownId, status: 'approved', receipt_url })
  const { page } = await open({ consent: [ok(consent())], approve: [approved] })
  await reviewed(page)
  await press(page, 'Approve')
  await page.getByRole('link', { name: 'Have it forgotten who approved' }).click()
  await heading(page, 'Forget who approved').waitFor()
  await accessible(page)
  await fitsIn(page, 320)
  const button = page.getByRole('button', { name: 'Forget it' })
  await button.click()
  await page.getByText('This link is not complete').waitFor()
  const bodies: unknown[] = []
  await page.route('**/erase', (route) => {
    bodies.push(route.request().postDataJSON())
    return route.fulfill({ json: { data: {}, meta: { request_id: 'req_1' } } })
  })
  await button.click()
  await page.getByText('It is forgotten').waitFor()
  expect(bodies).toEqual([{ receipt_token: 'gtrcpt_fake' }])
})

import { expect } from 'vitest'
import { createCollectClient } from '../../infra/wire/collect/client.ts'
import { behaviorSchema, type SentObservations } from '../../schemas/observations.ts'
import { planSession } from '../../services/cli/simulate/generate/plan.ts'
import {
  accessible,
  consent,
  fitsIn,
  inSight,
  ok,
  press,
  reviewed,
  screenshot,
  shows,
  unknownId,
  useConsentPages,
} from '../support/consent-page.ts'
import { bindingOf, pageKey } from '../support/gate-proof.ts'
import { needs } from '../support/needs.ts'

const { describe, test } = needs('chromium')

const browserUserAgent =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36'

const consentPages = useConsentPages()
const { open } = consentPages

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
    expect(
      await main.getByRole('listitem').filter({ hasText: 'ACME_DOMAIN' }).textContent(),
    ).toContain('Not secret')
    const terms = main.getByRole('link', { name: 'Terms' })
    expect(await terms.getAttribute('rel')).toBe('noopener noreferrer nofollow')
    expect(await terms.getAttribute('target')).toBe('_blank')
    expect(await page.getByRole('button').allTextContents()).toEqual(['Decline', 'Approve'])
    expect(await main.textContent()).not.toContain('Your agent tells')
    const desktop = { width: 1280, height: 720 }
    for (const size of [{ width: 360, height: 600 }, desktop]) {
      await page.setViewportSize(size)
      for (const name of ['Decline', 'Approve']) await inSight(page, name)
    }
    await screenshot(page, 'light')
    await page.emulateMedia({ colorScheme: 'dark' })
    await accessible(page)
    const color = "getComputedStyle(document.getElementById('approve')).backgroundColor"
    expect(await page.evaluate(color)).toBe('rgb(91, 61, 245)')
    await screenshot(page, 'dark')
    await page.emulateMedia({ forcedColors: 'active' })
    await screenshot(page, 'forced-colors')
    await page.emulateMedia({ colorScheme: 'light', forcedColors: 'none' })
    await fitsIn(page, 320)
    await accessible(page)
    await screenshot(page, 'phone')
  })

  test('the real thing: the page of a session shows what the API says of it', async () => {
    const { page } = await open({}, { id: await consentPages.world.signup() })
    await shows(page, 'Create an organization at Tidegate?')
    const text = await page.getByRole('main').textContent()
    for (const part of [
      'TIDEGATE_SECRET_KEY',
      'an organization called Harbour Notes',
      'may do everything',
    ])
      expect(text).toContain(part)
    expect(await page.evaluate("document.querySelector('img.logo').naturalWidth")).toBeGreaterThan(
      0,
    )
    await screenshot(page, 'built-in')
  })
})

describe('approving', () => {
  const approved = ok({ object: 'gate_session', id: unknownId, status: 'approved' })

  test('a proof goes with the token of the page, and the page says that it is done', async () => {
    const { page, posted } = await open(
      { consent: [ok(consent())], approve: [approved] },
      { observed: true },
    )
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
      accepted_env_vars: ['ACME_MAIL_GATE_AGENT_TOKEN'],
    })
    await page.close()
    expect(posted.length).toBe(1)
  })
})

describe('a script without a browser', () => {
  const snapshot = planSession('script', 0, {
    clients: { web: 1, ios: 0, android: 0 },
    bots: 0,
    returning: 0,
  }).batches[0].snapshot
  const version = 1 as const
  const used = behaviorSchema.parse({ keyboard: { events: 4, keys: 4 } })
  type Answers = { challenge: string; timing_nonce: string; canvas_challenge_hash: null }
  interface Attempt {
    batches: (answers: Answers) => SentObservations[]
    bindTo?: (approveToken: string) => string
  }
  const good = (proofs: Answers) => ({ version, elapsed_ms: 9, snapshot: { ...snapshot, proofs } })
  const attempts: [string, RegExp, Attempt][] = [
    ['sends nothing', /challenge/, { batches: () => [] }],
    ['sends an empty batch', /challenge/, { batches: () => [{ version, elapsed_ms: 1 }] }],
    [
      'says that somebody typed',
      /challenge/,
      { batches: () => [{ version, elapsed_ms: 1, behavior: used }] },
    ],
    ['sends a page that nobody uses', /Nobody has used/, { batches: (proofs) => [good(proofs)] }],
    [
      'names no approve token',
      /another approve token/,
      { batches: (proofs) => [{ ...good(proofs), behavior: used }], bindTo: () => 'gtapr_other' },
    ],
  ]

  test.each(attempts)('that %s approves nothing', async (_name, sentence, { batches, bindTo }) => {
    const id = await consentPages.world.signup()
    const headers = { 'user-agent': browserUserAgent, origin: consentPages.world.baseUrl }
    const session = `${consentPages.world.baseUrl}/v1/gate/sessions/${id}`
    const { data } = (await (await fetch(`${session}/consent`, { headers })).json()) as {
      data: { approve_token: string }
    }
    const client = createCollectClient({
      endpoint: consentPages.world.baseUrl,
      publishableKey: await pageKey(consentPages.world.baseUrl, id),
      fetch: (url, request) =>
        fetch(url, { ...request, headers: { ...request.headers, ...headers } }),
      sdk: { name: 'tidegate-web', version: '0.1.0', platform: 'web' },
      page: { url: consentPages.world.pageUrl(id), referrer: null },
    })
    const opened = await client.open()
    const answers = {
      challenge: opened.challenge,
      timing_nonce: opened.timingNonce,
      canvas_challenge_hash: null,
    }
    for (const batch of batches(answers)) await client.sendBatch(batch)
    const binding = bindingOf((bindTo ?? String)(data.approve_token))
    const { sealedToken } = await client.requestResult({ version, elapsed_ms: 99, binding })
    const answer = await fetch(`${session}/approve`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({ approve_token: data.approve_token, sealed_token: sealedToken }),
    })
    expect(await answer.json()).toMatchObject({
      error: {
        code: 'gate.svc_proof_invalid',
        status: 403,
        message: expect.stringMatching(sentence),
      },
    })
    expect((await consentPages.world.session(id))?.status).toBe('pending')
  })
})

describe('the page of a real request', () => {
  test('a browser that is driven is not taken for a person, and the person may still decline', async () => {
    const id = await consentPages.world.signup()
    const { page } = await open({}, { id })
    await reviewed(page)
    await press(page, 'Approve')
    await page.getByRole('alert').filter({ hasText: 'This looked automated' }).waitFor()
    expect((await consentPages.world.session(id))?.status).toBe('pending')
    await press(page, 'Decline')
    await shows(page, 'Declined')
    expect(await consentPages.world.session(id)).toMatchObject({
      status: 'rejected',
      rejection: 'declined',
    })
  })
})

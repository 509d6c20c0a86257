import { expect } from 'vitest'
import { createCollectClient } from '../../infra/wire/collect/client.ts'
import { behaviorSchema, type SentObservations } from '../../schemas/observations.ts'
import { planSession } from '../../services/cli/simulate/generate/plan.ts'
import {
  accessible,
  approve,
  approved,
  consent,
  fitsIn,
  notice,
  ok,
  press,
  shows,
  textOf,
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
    const domain = main.getByRole('listitem').filter({ hasText: 'ACME_DOMAIN' })
    expect(await domain.textContent()).toContain('Not secret')
    const terms = main.getByRole('link', { name: 'Terms' })
    expect(await terms.getAttribute('rel')).toBe('noopener noreferrer nofollow')
    expect(await terms.getAttribute('target')).toBe('_blank')
    expect(await page.getByRole('button').allTextContents()).toEqual(['Decline', 'Approve'])
    expect(await main.textContent()).not.toContain('Your agent tells')
    for (const [width, height] of [
      [360, 600],
      [1280, 720],
    ] as const) {
      await page.setViewportSize({ width, height })
      for (const name of ['Decline', 'Approve']) {
        const box = await page.getByRole('button', { name }).boundingBox()
        expect((box?.y ?? Number.POSITIVE_INFINITY) + (box?.height ?? 0)).toBeLessThanOrEqual(
          height,
        )
      }
    }
    await page.emulateMedia({ colorScheme: 'dark' })
    await accessible(page)
    const color = "getComputedStyle(document.getElementById('approve')).backgroundColor"
    expect(await page.evaluate(color)).toBe('rgb(91, 61, 245)')
    await page.emulateMedia({ colorScheme: 'light' })
    await fitsIn(page, 320)
    await accessible(page)
  })

  test('the real thing: the page of a session shows what the API says of it', async () => {
    const { page } = await open({}, { id: await consentPages.world.signup() })
    await shows(page, 'Create an organization at Tidegate?')
    const parts = [
      'TIDEGATE_SECRET_KEY',
      'an organization called Harbour Notes',
      'has full access to it',
    ]
    for (const part of parts) expect(await textOf(page)).toContain(part)
    const logoWidth = await page.evaluate("document.querySelector('img.logo').naturalWidth")
    expect(logoWidth).toBeGreaterThan(0)
  })
})

test('a proof goes with the token of the page, and the page says that it is done', async () => {
  const answers = { consent: [ok(consent())], approve: [approved()] }
  const { page, posted } = await open(answers, { observed: true })
  await approve(page)
  await shows(page, 'Approved')
  expect(await textOf(page)).toContain('Acme Mail created the account Harbour Notes.')
  expect(posted.map(({ path: name }) => name)).toEqual(['approve'])
  expect(JSON.parse(posted[0]?.body ?? '')).toEqual({
    approve_token: 'gtapr_fake',
    sealed_token: expect.stringMatching(/^[\w+/=]{200,}$/),
    accepted_env_vars: ['ACME_MAIL_GATE_AGENT_TOKEN'],
  })
  await page.close()
  expect(posted.length).toBe(1)
})

describe('a script without a browser', () => {
  const mix = { clients: { web: 1, ios: 0, android: 0 }, bots: 0, returning: 0 }
  const { snapshot } = planSession('script', 0, mix).batches[0]
  const version = 1 as const
  const used = behaviorSchema.parse({ keyboard: { events: 4, keys: 4 } })
  const empty = { version, elapsed_ms: 1 }
  /** Its page, where it answers the challenge; that somebody uses it; and another approve token. */
  type Attempt = (page: SentObservations) => { batches: SentObservations[]; bindTo?: string }
  const attempts: [string, RegExp, Attempt][] = [
    ['sends nothing', /challenge/, () => ({ batches: [] })],
    ['sends an empty batch', /challenge/, () => ({ batches: [empty] })],
    ['says that somebody typed', /challenge/, () => ({ batches: [{ ...empty, behavior: used }] })],
    ['sends a page that nobody uses', /Nobody has used/, (page) => ({ batches: [page] })],
    [
      'names no approve token',
      /another approve token/,
      (page) => ({ batches: [{ ...page, behavior: used }], bindTo: 'gtapr_other' }),
    ],
  ]

  test.each(attempts)('that %s approves nothing', async (_name, sentence, attempt) => {
    const { world } = consentPages
    const id = await world.signup()
    const headers = { 'user-agent': browserUserAgent, origin: world.baseUrl }
    const session = `${world.baseUrl}/v1/gate/sessions/${id}`
    const { data } = JSON.parse(await (await fetch(`${session}/consent`, { headers })).text())
    const client = createCollectClient({
      endpoint: world.baseUrl,
      publishableKey: await pageKey(world.baseUrl, id),
      fetch: (url, request) =>
        fetch(url, { ...request, headers: { ...request.headers, ...headers } }),
      sdk: { name: 'tidegate-web', version: '0.1.0', platform: 'web' },
      page: { url: world.pageUrl(id), referrer: null },
    })
    const { challenge, timingNonce: timing_nonce } = await client.open()
    const proofs = { challenge, timing_nonce, canvas_challenge_hash: null }
    const { batches, bindTo = data.approve_token } = attempt({
      version,
      elapsed_ms: 9,
      snapshot: { ...snapshot, proofs },
    })
    for (const batch of batches) await client.sendBatch(batch)
    const binding = bindingOf(bindTo)
    const { sealedToken } = await client.requestResult({ version, elapsed_ms: 99, binding })
    const answer = await fetch(`${session}/approve`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({ approve_token: data.approve_token, sealed_token: sealedToken }),
    })
    const message = expect.stringMatching(sentence)
    expect(await answer.json()).toMatchObject({
      error: { code: 'gate.svc_proof_invalid', status: 403, message },
    })
    expect((await world.session(id))?.status).toBe('pending')
  })
})

test('a browser that is driven is not taken for a person, and the person may still decline', async () => {
  const id = await consentPages.world.signup()
  const { page } = await open({}, { id })
  await approve(page)
  await notice(page, 'This looked automated')
  expect((await consentPages.world.session(id))?.status).toBe('pending')
  await press(page, 'Decline')
  await shows(page, 'Declined')
  expect(await consentPages.world.session(id)).toMatchObject({
    status: 'rejected',
    rejection: 'declined',
  })
})

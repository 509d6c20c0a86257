import { afterAll, beforeAll, expect } from 'vitest'
import { openToken } from '../../infra/wire/sealed-token.ts'
import { createProfile, openHeadless, type Profile } from '../support/chromium.ts'
import { needs } from '../support/needs.ts'
import { createRest } from '../support/rest.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

const { test } = needs('chromium')

let tidegate: RunningTidegate
let profile: Profile

beforeAll(async () => {
  tidegate = await startTidegate()
  profile = await createProfile()
})
afterAll(async () => {
  await profile.remove()
  await tidegate.stop()
})

interface Visit {
  sessionId: string
  sealedToken: string
  /** Text that the page shows. */
  shown: string
}

/** Opens the browser on the profile, lets the demo page run by itself, and closes the browser again. */
async function visitDemo(): Promise<Visit> {
  const context = await openHeadless(profile)
  try {
    const page = await context.newPage()
    const verifying = page.waitForRequest('**/demo/api/verify')
    await page.goto(`${tidegate.baseUrl}/demo?auto=1`)
    const { sealedToken } = (await verifying).postDataJSON()
    const result = await page.waitForSelector('#result[data-state="done"]')
    const sessionId = await result.getAttribute('data-session-id')
    return { sessionId: sessionId ?? '', sealedToken, shown: (await result.textContent()) ?? '' }
  } finally {
    await context.close()
  }
}

test('headless Chromium is a bot with reasons, its token says the same, and it is known the next time', async () => {
  const { secret_key: secretKey } = tidegate.credentials.live
  const rest = createRest(tidegate.baseUrl, secretKey)

  const first = await visitDemo()
  const detail = await rest.session(first.sessionId)
  const [summary] = await rest.searchSessions(first.sessionId)
  expect(summary?.latest_decision).toMatchObject({ verdict: 'bot', is_provisional: false })
  expect(detail.decision).toMatchObject({
    automation_status: 'automated',
    decision_status: 'final',
  })
  const fired = detail.signals_fired.map(({ signal }) => signal)
  expect(fired).toEqual(expect.arrayContaining(['webdriver_detected', 'headless_user_agent']))
  expect(detail.attribution?.labels).not.toEqual([])
  expect(detail.highlights[0]).toMatchObject({ effect: 'increases_risk', importance: 'high' })
  expect(detail.browser).toMatchObject({ engine: expect.stringMatching(/blink/i) })
  expect(detail.request.url).toBe(`${tidegate.baseUrl}/demo?auto=1`)
  expect(first.shown).toContain('This looks automated')

  const visitorId = detail.visitor_fingerprint?.id ?? ''
  const opened = openToken(first.sealedToken, { secretKey })
  expect(opened).toMatchObject({
    session_id: first.sessionId,
    decision: {
      event_id: detail.decision.event_id,
      verdict: 'bot',
      risk_score: detail.decision.risk_score,
    },
    visitor_fingerprint: { id: visitorId },
  })
  expect(detail.visitor_fingerprint?.lifecycle.seen_count).toBe(1)

  const second = await visitDemo()
  expect(second.sessionId).not.toBe(first.sessionId)
  const again = await rest.session(second.sessionId)
  expect(again.visitor_fingerprint?.id).toBe(visitorId)
  expect(again.visitor_fingerprint?.lifecycle.seen_count).toBe(2)
  const visitor = await rest.visitor(visitorId)
  expect(visitor.lifecycle.seen_count).toBe(2)
  const seen = visitor.activity.sessions.map(({ session_id }) => session_id)
  expect([...new Set(seen)]).toEqual([second.sessionId, first.sessionId])
}, 90_000)

import { expect } from 'vitest'
import { heading, shows, useConsentPages } from '../support/consent-page.ts'
import { eventually } from '../support/eventually.ts'
import { needs } from '../support/needs.ts'

const { describe, test } = needs('chromium')

const consentPages = useConsentPages()
const { open } = consentPages

describe('the page of a real request', () => {
  test('closing it rejects the request; a reload does not, nor does closing one of two tabs', async () => {
    const signups = [
      await consentPages.world.signup(),
      await consentPages.world.signup(),
      await consentPages.world.signup(),
    ] as const
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
        expect(await consentPages.world.session(closed)).toMatchObject({
          status: 'rejected',
          rejection: 'closed',
        }),
      { timeoutMs: 15_000, intervalMs: 100 },
    )
    // Their pages began to close earlier.
    for (const id of [reloaded, twice]) {
      expect((await consentPages.world.session(id))?.status).toBe('pending')
      expect(await consentPages.world.isOpen(id)).toBe(true)
    }
    // Whoever opens it then learns that it is over.
    const again = await open({}, { id: closed })
    await shows(again.page, 'This request was closed')
  })
})

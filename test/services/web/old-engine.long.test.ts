import { afterAll, beforeAll, expect } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { needs } from '../../support/needs.ts'
import { runInOldEngine } from '../../support/old-engine.ts'
import type { CollectServer } from './collect-server.ts'
import { createPageServer, observationsOf } from './sdk-page.ts'

const { test } = needs('chromium', 'old-engine')

let server: CollectServer

beforeAll(async () => {
  server = await createPageServer()
})
afterAll(() => server.close())

async function visit(): Promise<void> {
  const lines = await runInOldEngine(
    `${server.url}/page`,
    `window.addEventListener('error', ({ message }) => console.error('thrown: ' + message))
    run({ publishableKey: '${server.publishableKey}' }).getSession().then(
      ({ sessionId }) => console.info('handed over ' + sessionId), (error) => console.info(String(error)))
      .then(() => { document.title = 'done' })`,
  )
  expect(lines.join('\n')).toMatch(/handed over sid_/)
  expect(lines.join('\n')).not.toMatch(/thrown|Uncaught/)
  const snapshot = observationsOf(server).findLast((sent) => sent.snapshot)?.snapshot
  expect(snapshot?.navigator.user_agent).toContain('Chrome/87')
  expect(snapshot?.tamper).toMatchObject({
    realm_available: true,
    foreign_primitives: [],
    patched_functions: [],
    realm_differences: [],
  })
  // Chromium before 89 has the flag only if it is automated.
  expect(snapshot?.automation).toMatchObject({
    webdriver: null,
    console_readers: [],
    cdp_runtime: false,
  })
  expect(snapshot?.worker.available).toBe(true)
  expect(snapshot?.iframe.available).toBe(true)
  expect(snapshot?.canvas.hash).not.toBeNull()
}

// Retries, because on an overloaded machine a late part is null by design.
test('the engine of Chromium 87 loads the SDK, sends a complete snapshot and hands over', async () => {
  await eventually(visit, { timeoutMs: 80_000 })
}, 90_000)

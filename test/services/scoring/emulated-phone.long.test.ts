import { afterAll, beforeAll, expect } from 'vitest'
import { addBehavior } from '../../../services/scoring/session/observed.ts'
import { eventually } from '../../support/eventually.ts'
import { needs } from '../../support/needs.ts'
import type { CollectServer } from '../web/collect-server.ts'
import { createPageServer, lastSnapshot, observationsOf } from '../web/sdk-page.ts'
import { openEmulatedPhone, replacedPlatforms } from './emulated-phone.ts'
import { evaluateClient, slugs } from './support/sessions.ts'
import * as clients from './support/snapshots.ts'
import { taught } from './support/taught.ts'

const { describe, it } = needs('chromium', 'desktop')

let server: CollectServer
beforeAll(async () => {
  server = await createPageServer()
})
afterAll(() => server.close())

const deployments = {
  taught,
  fresh: { ...taught, progress: () => ({ isLearned: false, visitors: 3, needed: 20 }) },
}

/** Verdicts of all that has arrived, as of a browser that answers its questions rightly. */
function verdicts(behavior?: object) {
  const snapshot = lastSnapshot(server)
  const { user_agent: userAgent } = snapshot.navigator
  const clientHints = { 'sec-ch-ua-platform': '"Android"', 'sec-ch-ua-mobile': '?1' }
  const client = {
    snapshot: { ...snapshot, proofs: clients.proofsOf(userAgent ?? '') },
    clientHints,
  }
  return Object.values(deployments).map((learned) => {
    const evaluation = evaluateClient(client, { learned, ...(behavior ? { behavior } : {}) })
    return { verdict: evaluation.score.verdict, fired: slugs(evaluation) }
  })
}

// Without graphics, since a machine without a card would show that by its renderer.
const flags = [
  '--disable-gpu',
  '--disable-3d-apis',
  '--window-position=0,0',
  '--window-size=412,915',
]

describe('an emulated phone in a window', () => {
  it.each(Object.entries(replacedPlatforms))(
    'that replaces the platform of workers by %s is never human, on load and while acting',
    async (_, inWorkers) => {
      const phone = await openEmulatedPhone({ inWorkers, flags })
      try {
        await phone.open(`${server.url}/page`)
        await eventually(async () =>
          expect(await phone.evaluate('document.documentElement.dataset.ready')).toBe('yes'),
        )
        const before = observationsOf(server).length
        await phone.evaluate(
          `run({ publishableKey: '${server.publishableKey}' }).getSession().then(() => 1)`,
        )
        const { navigator, worker, tamper } = lastSnapshot(server)
        expect([navigator.platform, worker.platform]).toEqual(['Linux armv81', 'Linux armv81'])
        expect(tamper.foreign_primitives).toEqual(['worker.navigator.platform'])
        for (const { verdict, fired } of verdicts()) {
          expect([verdict, fired]).not.toEqual(['human', fired])
          expect(fired).toContain('phone_with_computer_parts')
        }
        for (let taps = 0; taps < 6; taps++) await phone.tap(60 + taps * 41, 40 + taps * 57)
        await phone.evaluate('client.getSession().then(() => 1)')
        const behavior = observationsOf(server)
          .slice(before)
          .flatMap((sent) => sent.behavior ?? [])
          .reduce((known, more) => addBehavior(known, more))
        expect(behavior.touch.touches).toBe(6)
        for (const { verdict, fired } of verdicts(behavior)) {
          expect([verdict, fired]).not.toEqual(['human', fired])
          expect(fired).not.toContain('natural_touch')
        }
      } finally {
        await phone.close()
      }
    },
  )
})

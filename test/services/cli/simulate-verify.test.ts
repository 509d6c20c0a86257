import { expect, test } from 'vitest'
import type { HttpClient } from '../../../services/cli/simulate/http.ts'
import { createPacer } from '../../../services/cli/simulate/pacer.ts'
import { createRecording } from '../../../services/cli/simulate/recorder.ts'
import { verifySessions } from '../../../services/cli/simulate/verify.ts'

/** Returns a client of a server with one session, whose decision is final. */
function serverOf(automation_status: string, sources: string[] | null): HttpClient {
  const decision = { automation_status, decision_status: 'final' }
  const data = { id: 'sid_1', decision, evidence: sources && { sources } }
  const body = Buffer.from(JSON.stringify({ data }))
  return {
    request: async () => ({ status: 200, headers: { get: () => null }, body }),
    close: () => {},
  }
}

test.each<[string, string, string[] | null, { proven: number; errors: string[] }]>([
  ['human with a proof', 'human', ['snapshot', 'simulated_answers'], { proven: 1, errors: [] }],
  ['a bot with a proof', 'automated', ['simulated_answers'], { proven: 1, errors: [] }],
  ['inconclusive without a proof', 'uncertain', ['snapshot'], { proven: 0, errors: [] }],
  ['inconclusive, from an old server', 'uncertain', null, { proven: 0, errors: [] }],
  [
    'human without a proof',
    'human',
    ['recorded_answers'],
    { proven: 0, errors: ['readback human_without_proof'] },
  ],
])('reads back a session that is %s', async (_, status, sources, expected) => {
  const recording = createRecording()
  const { proven, readable } = await verifySessions([{ sessionId: 'sid_1', actor: 'human' }], {
    baseUrl: 'http://127.0.0.1:1',
    secretKey: 'sk',
    concurrency: 1,
    recording,
    pacer: createPacer(),
    http: serverOf(status, sources),
  })
  expect({ proven, errors: [...recording.errors.keys()] }).toEqual(expected)
  expect(readable).toBe(1)
})

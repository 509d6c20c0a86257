import { hash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { clusterLogs } from '../support/cluster.ts'
import { openTracedWorld, traceOf } from '../support/traced-session.ts'

describe.each(clusterLogs())('with the log on %s', (log) => {
  it('each of several sessions is one trace', async () => {
    await using traced = await openTracedWorld(log)
    for (const _ of [1, 2, 3]) {
      const sessionId = await traced.session()
      const [first] = await traceOf(traced, sessionId)
      expect(first?.traceId).toBe(hash('sha256', sessionId, 'hex').slice(0, 32))
    }
  }, 120_000)
})

import { randomBytes } from 'node:crypto'
import { inflateRawSync } from 'node:zlib'
import { sealToken } from '../../../infra/wire/sealed-token.ts'
import { startCollectApp } from '../collect/collect-app.ts'

export type CollectServer = Awaited<ReturnType<typeof createCollectServer>>

const secretHash = 'ab'.repeat(32)

/** Creates a collect server for browsers. Routes can be added before `listen`. */
export async function createCollectServer({ batchIntervalMs = 300 } = {}) {
  let handOffs = 0
  const { app, publishable, events, close } = await startCollectApp({
    clock: Date.now,
    sourceMbPerHour: 1_000_000,
    batchIntervalMs,
    async sealResult({ sessionId, decisionId }) {
      handOffs++
      const payload = { session_id: sessionId, decision: { event_id: decisionId } }
      return sealToken({ payload, secretHashes: [secretHash], random: randomBytes })
    },
  })
  const server = {
    app,
    publishableKey: publishable({ environment: 'test' }),
    secretHash,
    /** Set by `listen`. */
    url: '',
    async listen(): Promise<void> {
      server.url = await app.listen({ port: 0, host: '127.0.0.1' })
    },
    events,
    /** Returns the decrypted bodies that the server has accepted. */
    plaintexts: (): string[] =>
      events().flatMap(({ type, data }) =>
        type === 'BatchReceived' || type === 'ResultRequested'
          ? [inflateRawSync(data.payload).toString('utf8')]
          : [],
      ),
    /** Returns the number of hand-offs so far. */
    handOffs: () => handOffs,
    close,
  }
  return server
}

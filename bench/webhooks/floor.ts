import { Pool } from 'undici'
import { z } from 'zod'
import { serveRounds } from '../round-server.ts'

// The lower bound of a sender: undici posts bytes that are there already, and stores nothing.
const roundSchema = z.object({
  url: z.string(),
  headers: z.record(z.string(), z.string()),
  body: z.string(),
  /** The webhook-id of each request. */
  ids: z.array(z.string()),
  inFlight: z.int(),
})

const pools = new Map<string, Pool>()

async function sendAll(round: unknown): Promise<void> {
  const { url, headers, body, ids, inFlight } = roundSchema.parse(round)
  const { origin, pathname } = new URL(url)
  const pool = pools.get(origin) ?? new Pool(origin, { connections: inFlight })
  pools.set(origin, pool)
  const rest = ids.values()
  const sender = async () => {
    for (const id of rest) {
      const options = { method: 'POST' as const, path: pathname, body }
      const response = await pool.request({ ...options, headers: { ...headers, 'webhook-id': id } })
      await response.body.text()
      if (response.statusCode !== 200)
        throw new Error(`the receiver answered ${response.statusCode}`)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, sender))
}

await serveRounds({
  name: 'Floor',
  run: sendAll,
  close: () => Promise.all([...pools.values()].map((pool) => pool.close())),
})

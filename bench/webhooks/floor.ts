import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { Pool } from 'undici'
import { z } from 'zod'

// What a sender could do at best: undici posts bytes that are there already, and remembers nothing. `POST /` makes a
// round and answers when all of it is sent.
const roundSchema = z.object({
  url: z.string(),
  headers: z.record(z.string(), z.string()),
  body: z.string(),
  /** The webhook-id of each request. */
  ids: z.array(z.string()),
  inFlight: z.int(),
})

const pools = new Map<string, Pool>()

async function sendAll({
  url,
  headers,
  body,
  ids,
  inFlight,
}: z.output<typeof roundSchema>): Promise<void> {
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

const server = createServer(async (request, response) => {
  await sendAll(roundSchema.parse(await json(request)))
  response.end()
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the floor has no port')
  console.log(`Floor is ready: http://127.0.0.1:${address.port}`)
})
process.once('SIGTERM', async () => {
  server.close()
  server.closeAllConnections()
  await Promise.all([...pools.values()].map((pool) => pool.close()))
})

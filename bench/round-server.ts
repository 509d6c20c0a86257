import { once } from 'node:events'
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import type { Child } from './child.ts'

export interface RoundServer {
  name: string
  run: (body: unknown) => Promise<unknown>
  close: () => Promise<unknown>
}

/** Responds to `POST /` with the result of `run` until SIGTERM, so that the bench can measure this process. */
export async function serveRounds({ name, run, close }: RoundServer): Promise<void> {
  const server = createServer(async (request, response) => {
    try {
      response.end(JSON.stringify((await run(await json(request))) ?? null))
    } catch (error) {
      response.writeHead(500).end(error instanceof Error ? error.stack : String(error))
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  process.once('SIGTERM', async () => {
    server.close()
    server.closeAllConnections()
    await close()
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error(`${name} has no port`)
  console.log(`${name} is ready: http://127.0.0.1:${address.port}`)
}

/** Runs a round in the child and returns its result. */
export async function runRound({ url }: Child, body: object): Promise<unknown> {
  const response = await fetch(url, { method: 'POST', body: JSON.stringify(body) })
  if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`)
  return response.json()
}

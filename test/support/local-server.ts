import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Serves HTTP on a free port of 127.0.0.1. */
export async function serveLocally(listener: RequestListener) {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port }: AddressInfo = Object(server.address())
  return {
    server,
    url: `http://127.0.0.1:${port}`,
    /** Closes the server and its connections. */
    close(): void {
      server.close()
      server.closeAllConnections()
    },
  }
}

export type LocalServer = Awaited<ReturnType<typeof serveLocally>>

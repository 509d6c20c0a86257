import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'

/** User agent that an office proxy sends for every browser. */
const rewritten =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36 Gate/7.2'

export interface RewritingProxy {
  port: number
  close(): void
}

/** Passes requests on, with another user agent. */
export async function openRewritingProxy(): Promise<RewritingProxy> {
  const server = createServer(pass)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port')
  return { port: address.port, close: () => void server.close().closeAllConnections() }
}

function pass(incoming: IncomingMessage, outgoing: ServerResponse): void {
  const { method, url = '', headers } = incoming
  const options = { method, headers: { ...headers, 'user-agent': rewritten, via: '1.1 gate' } }
  const onward = request(url, options, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
    answer.pipe(outgoing)
  })
  onward.on('error', () => outgoing.destroy())
  incoming.pipe(onward)
}

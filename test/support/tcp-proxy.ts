import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export interface TcpProxy {
  /** URL of the server through this proxy. */
  url: string
  /** Returns the current and the highest number of connections. */
  connections(): { now: number; most: number }
  /** Silently stops traffic on open connections; new ones work. */
  freeze(): void
  /** Stops traffic on all connections, old and new. */
  cut(): void
  /** Resets open connections; new ones work. */
  mend(): void
  close(): Promise<void>
}

/** Starts a proxy in front of the server of `url` that can stop traffic like a broken network. Port 0 = any. */
export async function startTcpProxy(url: string, port = 0): Promise<TcpProxy> {
  const target = new URL(url)
  const open = new Set<[Socket, Socket]>()
  const waiting = new Set<Socket>()
  let isCut = false
  let most = 0
  const server = createServer((client) => {
    if (isCut) {
      waiting.add(client.on('error', () => {}).pause())
      return
    }
    const upstream = connect(Number(target.port), target.hostname)
    const pair: [Socket, Socket] = [client, upstream]
    open.add(pair)
    most = Math.max(most, open.size)
    client.pipe(upstream)
    upstream.pipe(client)
    for (const socket of pair) {
      socket.on('error', () => {})
      socket.on('close', () => {
        open.delete(pair)
        client.destroy()
        upstream.destroy()
      })
    }
  }).listen(port, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port')
  const own = new URL(url)
  // A Unix socket would bypass the proxy.
  own.searchParams.delete('host')
  own.host = `127.0.0.1:${address.port}`
  function freeze(): void {
    for (const [client, upstream] of open) {
      client.unpipe(upstream)
      upstream.unpipe(client)
      client.pause()
      upstream.pause()
    }
  }
  return {
    url: own.href,
    connections: () => ({ now: open.size, most }),
    freeze,
    cut() {
      isCut = true
      freeze()
    },
    mend() {
      isCut = false
      for (const socket of [...open].flat().concat(...waiting)) socket.destroy()
      waiting.clear()
    },
    async close() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of [...open].flat().concat(...waiting)) socket.destroy()
      await closed
    },
  }
}

/** Creates a proxy that is initially stopped. While stopped, nothing listens on its port. */
export function createAbsentProxy(url: string, port: number) {
  let proxy: TcpProxy | undefined
  return {
    goes: async () => proxy?.close(),
    async comes() {
      proxy = await startTcpProxy(url, port)
    },
  }
}

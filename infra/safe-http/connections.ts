import type { Socket } from 'node:net'
import { Client } from 'undici'
import { type AddressRules, hostOf, loopback } from './addresses.ts'
import { DeliveryFailure, dial, type HostResolver, noAddress, secure } from './sockets.ts'

export interface ConnectionPool {
  /** The idle connection to the receiver that was used last, or else a new one. */
  acquire(url: URL): Connection
  open(url: URL): Connection
  /** Keeps the connection for the next request, unless it is closing. */
  release(connection: Connection): void
  discard(connection: Connection): void
  close(): Promise<void>
}

/** Idle connections to all receivers together; each is a file descriptor. They end by themselves within seconds. */
const mostIdle = 512

/**
 * Keeps connections for reuse. It has no limit for each receiver, since the slow requests of one endpoint would delay
 * those of another at the same host. Callers limit what they have in flight.
 */
export function createConnectionPool(connector: Connector): ConnectionPool {
  const all = new Set<Connection>()
  const idle = new Map<string, Connection[]>()
  let idleCount = 0

  function forget(connection: Connection) {
    const connections = idle.get(connection.origin)
    const index = connections?.indexOf(connection) ?? -1
    if (connections === undefined || index < 0) return
    connections.splice(index, 1)
    idleCount--
    if (connections.length === 0) idle.delete(connection.origin)
  }

  function discard(connection: Connection) {
    forget(connection)
    connection.destroy().finally(() => all.delete(connection))
  }

  function open(url: URL): Connection {
    const connection = openConnection({ url, connector })
    all.add(connection)
    connection.client.on('disconnect', () => {
      if (idle.get(connection.origin)?.includes(connection)) discard(connection)
    })
    return connection
  }

  return {
    open,
    discard,
    acquire(url) {
      const connection = idle.get(url.origin)?.at(-1)
      if (!connection) return open(url)
      forget(connection)
      return connection
    },
    release(connection) {
      if (!connection.isOpen() || idleCount >= mostIdle) return discard(connection)
      const connections = idle.get(connection.origin)
      if (connections) connections.push(connection)
      else idle.set(connection.origin, [connection])
      idleCount++
    },
    async close() {
      await Promise.all(Array.from(all, (connection) => connection.destroy()))
    },
  }
}

/** One connection to one receiver, at most one exchange at a time. */
export interface Connection {
  origin: string
  client: Client
  carried: number
  /** Whether another exchange can follow on the same connection. */
  isOpen(): boolean
  /** Also ends an attempt to connect. */
  destroy(): Promise<void>
}

/** Receivers commonly close idle connections after 5 seconds; one that names a time is believed up to the longest. */
const keepAliveMs = 4000
const longestKeepAliveMs = 30_000
const maxHeaderBytes = 16 * 1024

/**
 * Connects with the first exchange. Each connection is an undici Client: a Pool would not say whether an exchange ran on
 * a connection that had been idle, nor end an attempt to connect.
 */
function openConnection({ url, connector }: { url: URL; connector: Connector }): Connection {
  const stop = new AbortController()
  let socket: Socket | undefined
  const client = new Client(url.origin, {
    pipelining: 1,
    allowH2: false,
    maxHeaderSize: maxHeaderBytes,
    keepAliveTimeout: keepAliveMs,
    keepAliveMaxTimeout: longestKeepAliveMs,
    // The time of an exchange is limited as a whole.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect(_options, done) {
      connector(url, stop.signal).then(
        (opened) => {
          socket = opened
          connection.carried = 0
          done(null, opened)
        },
        (error) => done(error, null),
      )
    },
  })
  const connection: Connection = {
    origin: url.origin,
    client,
    carried: 0,
    isOpen: () => socket !== undefined && !socket.destroyed,
    async destroy() {
      stop.abort()
      await client.destroy()
    },
  }
  return connection
}

interface ConnectorOptions {
  rules: AddressRules
  resolve: HostResolver
  /** From the first SYN to the end of the TLS handshake. */
  timeoutMs: number
  ca?: string | undefined
}

/** Rejects with DeliveryFailure. */
type Connector = (url: URL, signal: AbortSignal) => Promise<Socket>

const mostAddresses = 8

/**
 * Connects only where the rules allow. The name is resolved once, every address is checked, and those same addresses are
 * dialled. The address at the other end is checked again before a byte is sent. Plain http goes to exceptions only,
 * since no certificate proves who answers there.
 */
export function createConnector({ rules, resolve, timeoutMs, ca }: ConnectorOptions): Connector {
  return async (url, signal) => {
    const isSecure = url.protocol === 'https:'
    const mayReach = isSecure ? rules.isAllowed : rules.isException
    const host = hostOf(url)
    const addresses = checkedAddresses(await resolve(host, signal), mayReach)
    return await beforeTimeout({ timeoutMs, signal }, async (stop) => {
      const port = Number(url.port) || (isSecure ? 443 : 80)
      const socket = await dial({ host, port, addresses, signal: stop })
      if (!mayReach(socket.remoteAddress ?? '')) {
        socket.destroy()
        throw noAddress('address')
      }
      return isSecure ? await secure(socket, { host, ca, signal: stop }) : socket
    })
  }
}

/** One bad address refuses them all: a name that mixes it in wants it to be reached sooner or later. */
function checkedAddresses(addresses: string[], mayReach: (ip: string) => boolean): string[] {
  const allowed = addresses.filter(mayReach)
  // Of the two meanings of localhost an operator may have allowed one.
  const isLocalhost = addresses.every((ip) => loopback.includes(ip))
  const areAllGood = allowed.length === addresses.length || isLocalhost
  if (allowed.length === 0 || !areAllGood) throw noAddress('address')
  return allowed.slice(0, mostAddresses)
}

async function beforeTimeout<R>(
  { timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal },
  work: (stop: AbortSignal) => Promise<R>,
): Promise<R> {
  const stop = new AbortController()
  const timer = setTimeout(() => {
    stop.abort(new DeliveryFailure('timeout', 'The receiver did not accept a connection in time.'))
  }, timeoutMs)
  try {
    return await work(AbortSignal.any([signal, stop.signal]))
  } finally {
    clearTimeout(timer)
  }
}

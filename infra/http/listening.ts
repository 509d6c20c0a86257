import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createAcceptor, type Server } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { errorMessage, systemCode } from '../thrown.ts'
import { withTimeout } from '../timing.ts'

export interface ListenAddress {
  port: number
  host: string
  /** Setting that the error message names; default PORT. */
  setting?: string
}

export interface ReservedPort {
  port: number
  release(): Promise<void>
}

/**
 * Occupies the port during startup, so that a second server fails before it has done anything. Until `release`,
 * requests go to `listener`. Rejects with a message for the operator if the port is not available.
 */
export async function reservePort(
  { port, host }: ListenAddress,
  listener: RequestListener,
): Promise<ReservedPort> {
  const server = createServer({ requireHostHeader: false }, listener)
  server.listen(port, host)
  await once(server, 'listening').catch((cause) => {
    throw new Error(listenProblem({ port, host }, cause), { cause })
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  return {
    port: address.port,
    async release() {
      if (!server.listening) return
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

const listenAttempts = 20
const listenPauseMs = 100
// Maximum of connections waiting to be accepted, capped by net.core.somaxconn. Node's default of 511 overflows in a
// burst of new visitors, whose dropped SYNs are retransmitted after 1, 3, 7 and 15 seconds.
const backlog = 4096

// Each turn of the event loop accepts one connection per listening socket (libuv since 1.45). A busy server needs a
// tenth of a second or more per turn, so with one socket new visitors would wait for minutes while open connections are
// served at once. Linux distributes connections among sockets with SO_REUSEPORT.
const sockets = process.platform === 'linux' ? 16 : 1

interface ListenOptions extends ListenAddress {
  backlog?: number
  reusePort?: boolean
}

/**
 * Listens with several sockets on a port that `reservePort` held until now; without that, two servers could share it
 * unnoticed. Retries for two seconds, because the system may have given the port to an outgoing connection meanwhile.
 */
export async function listenShared(app: FastifyInstance, address: ListenAddress): Promise<void> {
  const options = { ...address, backlog, reusePort: sockets > 1 }
  const acceptors = addAcceptors(app, sockets - 1)
  await listen(app, options)
  await Promise.all(acceptors.map((acceptor) => tryListen(acceptor, options)))
}

/** Listens with one socket; retries for two seconds while the port is in use. */
export async function listen(app: FastifyInstance, options: ListenOptions): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await app.listen(options)
      return
    } catch (error) {
      if (!isInUse(error) || attempt === listenAttempts)
        throw new Error(listenProblem(options, error), { cause: error })
      await delay(listenPauseMs)
    }
  }
}

/** Creates servers that pass their connections to the app and close with it, so that no accepted request is lost. */
function addAcceptors(app: FastifyInstance, count: number): Server[] {
  const accept = () =>
    createAcceptor({ allowHalfOpen: true, noDelay: true }, (socket) =>
      app.server.emit('connection', socket),
    )
  const acceptors = Array.from({ length: count }, accept)
  let closed: Promise<unknown> | undefined
  app.addHook('preClose', async () => {
    const listening = acceptors.filter((acceptor) => acceptor.listening)
    closed = Promise.all(listening.map((acceptor) => once(acceptor.close(), 'close')))
  })
  app.addHook('onClose', async () => {
    await closed
  })
  return acceptors
}

// Ignores a failure: the first socket then accepts all connections.
async function tryListen(server: Server, options: ListenOptions): Promise<void> {
  server.listen(options)
  await once(server, 'listening').catch(() => {})
}

const isInUse = (error: unknown) => systemCode(error) === 'EADDRINUSE'

/** Returns a message for the operator about a port that is not available. */
function listenProblem({ port, host, setting = 'PORT' }: ListenAddress, error: unknown): string {
  if (isInUse(error))
    return `Port ${port} on ${host} is in use: is Tidegate already running? Set ${setting} to use another.`
  return `Cannot listen on port ${port} on ${host} (${setting}, HOST): ${errorMessage(error)}`
}

export interface DrainOptions {
  /** Milliseconds in which new requests are still served, so that load balancers can notice the shutdown. */
  drainMs: number
  /** Milliseconds that running requests then have to finish before their connections are closed. */
  closeMs?: number
}

/** Closes the app gracefully: no request that arrives within `drainMs` fails. Call once `isStopping` returns true. */
export async function drain(
  app: FastifyInstance,
  { drainMs, closeMs = 5000 }: DrainOptions,
): Promise<void> {
  await delay(drainMs)
  const closed = app.close()
  await withTimeout(closed, closeMs).catch(() => app.server.closeAllConnections())
  await closed
}

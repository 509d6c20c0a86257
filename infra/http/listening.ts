import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createAcceptor, type Server } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { errorMessage, systemCode } from '../thrown.ts'
import { within } from '../timing.ts'

export interface ListenAddress {
  port: number
  host: string
  /** The setting that names the port; default PORT. */
  setting?: string
}

export interface HeldPort {
  port: number
  release(): Promise<void>
}

/**
 * Occupies the port while the server still starts, so that a second server notices before it has done anything.
 * Meanwhile `answer` is what requests get. Rejects with a message for the operator when the port cannot be had.
 */
export async function holdPort(
  { port, host }: ListenAddress,
  answer: RequestListener,
): Promise<HeldPort> {
  const server = createServer({ requireHostHeader: false }, answer)
  server.listen(port, host)
  await once(server, 'listening').catch((cause) => {
    throw new Error(problem({ port, host }, cause), { cause })
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
// Connections that wait to be accepted, as far as the system allows (net.core.somaxconn). Node's own 511 are full after
// a moment of many new visitors. What comes then is dropped, and tries again after 1, 3, 7 and 15 seconds.
const backlog = 4096

// A turn of the event loop accepts one connection of each socket that listens (libuv since 1.45). While the server is
// busy a turn takes a tenth of a second and more, so that with one socket new visitors would wait for minutes next to
// connections that are answered at once. Linux shares what comes among sockets with SO_REUSEPORT.
const sockets = process.platform === 'linux' ? 16 : 1

interface Shared {
  backlog?: number
  reusePort?: boolean
}

/**
 * Listens for many on a port that was held until now: without that two servers would share it and not notice. The
 * system may have given it to an outgoing connection in between, which ends soon. After two seconds another server has
 * the port.
 */
export async function listenOnHeld(app: FastifyInstance, place: ListenAddress): Promise<void> {
  const sharing = { ...place, backlog, reusePort: sockets > 1 }
  const others = acceptOnMoreSockets(app, sockets - 1)
  await listen(app, sharing)
  await Promise.all(others.map((other) => listenToo(other, sharing)))
}

/** Listens on a port that nobody has held, for the few who know of it. */
export async function listen(app: FastifyInstance, place: ListenAddress & Shared): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await app.listen(place)
      return
    } catch (error) {
      if (!isInUse(error) || attempt === listenAttempts)
        throw new Error(problem(place, error), { cause: error })
      await delay(listenPauseMs)
    }
  }
}

/** What they accept is answered by the app, and they close with it: no request that has come is lost. */
function acceptOnMoreSockets(app: FastifyInstance, count: number): Server[] {
  const accept = () =>
    createAcceptor({ allowHalfOpen: true, noDelay: true }, (socket) =>
      app.server.emit('connection', socket),
    )
  const others = Array.from({ length: count }, accept)
  let closed: Promise<unknown> | undefined
  app.addHook('preClose', async () => {
    const listening = others.filter((other) => other.listening)
    closed = Promise.all(listening.map((other) => once(other.close(), 'close')))
  })
  app.addHook('onClose', async () => {
    await closed
  })
  return others
}

// Where it cannot, the first socket accepts what this one would have: no reason not to start.
async function listenToo(server: Server, place: ListenAddress & Shared): Promise<void> {
  server.listen(place)
  await once(server, 'listening').catch(() => {})
}

const isInUse = (error: unknown) => systemCode(error) === 'EADDRINUSE'

/** What to tell the operator of a port that cannot be had. */
function problem({ port, host, setting = 'PORT' }: ListenAddress, error: unknown): string {
  if (isInUse(error))
    return `Port ${port} of ${host} is in use: is Tidegate running already? ${setting} sets another.`
  return `Cannot listen on port ${port} of ${host} (${setting}, HOST): ${errorMessage(error)}`
}

export interface DrainOptions {
  /** New requests are still answered for so long. Load balancers learn meanwhile that this server stops. */
  drainMs: number
  /** Requests may then still take so long. A client that has not sent all of its request by then is cut off. */
  closeMs?: number
}

/** No request that arrived in time fails. Call after the app's `isStopping` became true. */
export async function drain(
  app: FastifyInstance,
  { drainMs, closeMs = 5000 }: DrainOptions,
): Promise<void> {
  await delay(drainMs)
  const closed = app.close()
  await within(closed, closeMs).catch(() => app.server.closeAllConnections())
  await closed
}

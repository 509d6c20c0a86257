import type { Socket } from 'node:net'
import { Client } from 'undici'
import type { Connector } from './connector.ts'

/** One connection to one receiver, at most one exchange at a time. */
export interface Lane {
  origin: string
  client: Client
  /** Exchanges that began on the connection that is open now. */
  carried: number
  /** Whether another exchange can follow on the same connection. */
  isOpen(): boolean
  /** Ends it whatever it is doing, connecting included; resolves when the connection is gone. */
  destroy(): Promise<void>
}

/** Receivers commonly close idle connections after 5 seconds; one that says a time is believed up to the second. */
const keepAliveMs = 4000
const longestKeepAliveMs = 30_000
const maxHeaderBytes = 16 * 1024

/**
 * A lane to the receiver of `url`, which connects with the first exchange. An undici Client for each, since a Pool
 * would not tell whether an exchange ran on a connection that had been idle, nor end an attempt to connect.
 */
export function openLane({ url, connector }: { url: URL; connector: Connector }): Lane {
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
          lane.carried = 0
          done(null, opened)
        },
        (error) => done(error, null),
      )
    },
  })
  const lane: Lane = {
    origin: url.origin,
    client,
    carried: 0,
    isOpen: () => socket !== undefined && !socket.destroyed,
    async destroy() {
      stop.abort()
      await client.destroy()
    },
  }
  return lane
}

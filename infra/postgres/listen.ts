import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { Logger } from 'pino'
import { connectionConfig } from './pool.ts'

export interface ListenerOptions {
  url: string
  channels: string[]
  onNotification: (channel: string, payload: string) => void
  onReconnect?: () => void
  logger: Logger
  /** Milliseconds between heartbeats, which detect a half-open connection (default 5000). */
  heartbeatMs?: number
}

export interface Listener {
  close(): Promise<void>
}

const reconnectMs = 250

/** LISTENs on a dedicated connection, which reconnects by itself. Rejects if the first attempt fails. */
export async function openListener(options: ListenerOptions): Promise<Listener> {
  let closed = false
  let client = await listen(options, reconnect)

  function reconnect(): void {
    if (closed) return
    options.logger.warn({ channels: options.channels }, 'lost the LISTEN connection; reconnecting')
    void retry()
  }

  async function retry(): Promise<void> {
    while (!closed) {
      await delay(reconnectMs, undefined, { ref: false })
      const next = await listen(options, reconnect).catch(() => undefined)
      if (!next) continue
      client = next
      if (closed) await client.end()
      else options.onReconnect?.()
      return
    }
  }

  return {
    async close() {
      closed = true
      await client.end()
    },
  }
}

async function listen(options: ListenerOptions, onLost: () => void): Promise<pg.Client> {
  const { url, heartbeatMs = 5000 } = options
  const config = connectionConfig({
    url,
    applicationName: 'tidegate listener',
    queryTimeoutMs: heartbeatMs,
  })
  const client = new pg.Client(config)
  client.on('error', () => {})
  client.on('notification', ({ channel, payload = '' }) => options.onNotification(channel, payload))
  try {
    await client.connect()
    for (const channel of options.channels)
      await client.query(`listen ${client.escapeIdentifier(channel)}`)
  } catch (error) {
    await client.end().catch(() => {})
    throw error
  }
  const heartbeat = setInterval(() => {
    // While a query is pending, `end` doesn't wait for the server to close the connection.
    client.query('select 1').catch(() => client.end().catch(() => {}))
  }, heartbeatMs)
  heartbeat.unref()
  client.on('end', () => {
    clearInterval(heartbeat)
    onLost()
  })
  return client
}

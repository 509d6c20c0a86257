import { randomBytes } from 'node:crypto'
import { createServer, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '../../infra/local/free-port.ts'
import { operator } from '../support/cluster.ts'
import { createTestDatabase } from '../support/postgres.ts'
import { startServerProcess } from '../support/server-process.ts'

describe('telemetry', () => {
  let settings: Record<string, string>
  let drop: () => Promise<void>
  beforeAll(async () => {
    const database = await createTestDatabase()
    drop = database.drop
    const TIDEGATE_MASTER_KEYS = randomBytes(32).toString('base64')
    settings = { DATABASE_URL: database.url, TIDEGATE_MASTER_KEYS, KAFKA_BROKERS: '' }
  })
  afterAll(() => drop?.())

  it('loads nothing where nobody asks for it', async () => {
    // Tells of every package of OpenTelemetry that is loaded, by import or require.
    const hook = `import { registerHooks } from 'node:module'
      registerHooks({ load(url, context, next) {
        const name = /node_modules[/](@opentelemetry[/][^/]+)/.exec(url)?.[1]
        if (name) process.stderr.write('loaded ' + name + '\\n')
        return next(url, context)
      } })`
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(hook)}`
    const server = await startServerProcess(['serve'], {
      ...settings,
      FROM_SOURCE: '1',
      NODE_OPTIONS,
    })
    expect(await server.end('SIGTERM')).toBe(0)
    // prom-client asks the interface whether somebody traces.
    expect([...new Set(server.output().match(/^loaded .*$/gm))]).toEqual([
      'loaded @opentelemetry/api',
    ])
  }, 60_000)

  it.each(['refuses', 'never answers'])(
    'that is sent to one who %s harms nothing',
    async (fault) => {
      await using receiver = await silentReceiver(fault === 'never answers')
      const env = {
        ...settings,
        LOG_LEVEL: 'info',
        OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
        OTEL_EXPORTER_OTLP_TIMEOUT: '200',
      }
      const server = await startServerProcess(['serve'], env)
      const { publishable } = await operator(settings).organization()
      const target = ['--base-url', server.baseUrl, '--publishable-key', publishable.key]
      const load = ['simulate', ...target, '--sessions', '3', '--returning', '0', '--json']
      expect(await operator(settings).cli(load)).toMatchObject({ code: 0 })
      expect(await server.end('SIGTERM')).toBe(0)
      expect(server.output()).toContain('traces are lost: OTLP cannot be sent')
    },
    60_000,
  )
})

/** A port that nobody listens on, or where somebody takes connections and says nothing. */
async function silentReceiver(listens: boolean) {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => void sockets.add(socket.on('error', () => {})))
  const port = await freePort()
  if (listens) await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      if (listens) await new Promise((resolve) => server.close(resolve))
    },
  }
}

import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { freePort } from '../../infra/local/free-port.ts'
import { startCli } from '../support/cli.ts'
import {
  createInstallation,
  type Installation,
  kafkaPlace,
  readinessOf,
} from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { deleteTopics } from '../support/logs.ts'
import { needs } from '../support/needs.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'

// Each test has its own installation, because a database is bound to its first log.
let installation: Installation
beforeEach(async () => {
  installation = await createInstallation({ env: { LOG_LEVEL: 'warn' } })
})
afterEach(() => installation.stop())

needs('kafka').describe('a broker that does not answer yet', () => {
  it('is waited for, and whoever asks meanwhile is told so as by the running server', async () => {
    const { brokers, prefix } = await kafkaPlace()
    const broker = await startTcpProxy(`kafka://${brokers}`)
    broker.cut()
    const port = await freePort()
    const child = startCli(['serve', '--roles', 'collect'], {
      ...installation.settings,
      PORT: String(port),
      KAFKA_BROKERS: new URL(broker.url).host,
      KAFKA_TOPIC_PREFIX: prefix,
    })
    let output = ''
    child.stdout?.on('data', (data) => {
      output += data
    })
    const says = (text: string) =>
      eventually(() => expect(output).toContain(text), { timeoutMs: 40_000, intervalMs: 50 })
    // Its first attempt has failed by then, which ended the start before.
    await says('waiting for the log')
    const answer = await fetch(`http://127.0.0.1:${port}/v2/collect/sessions`, {
      method: 'POST',
      headers: { origin: 'https://shop.example' },
    })
    expect(await answer.json()).toMatchObject({
      error: { code: 'service.unavailable', request_id: answer.headers.get('x-request-id') },
    })
    expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([
      503,
      'https://shop.example',
    ])
    broker.mend()
    await says('Tidegate is ready')
    expect(await readinessOf(`http://127.0.0.1:${port}`)).toBe('200 ok')
    child.kill('SIGTERM')
    expect((await child.result).code).toBe(0)
    await broker.close()
    await deleteTopics(brokers.split(','), prefix)
  }, 90_000)
})

it('is not waited for longer than LOG_WAIT_MS says, and the hint names the setting', async () => {
  const { code, stdout } = await startCli(['serve', '--roles', 'collect'], {
    ...installation.settings,
    PORT: '0',
    LOG_WAIT_MS: '0',
    KAFKA_BROKERS: '127.0.0.1:1',
  }).result
  expect(code).toBe(1)
  const lines = stdout.split('\n').filter((line) => line.includes('"fatal"'))
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ hint: expect.stringMatching(/KAFKA_BROKERS/) })
})

describe('METRICS_PORT', () => {
  it('moves /metrics away from the port that others reach, and a second process is refused it', async () => {
    const port = String(await freePort())
    const start = () => installation.serve('collect', { env: { METRICS_PORT: port } })
    const server = await start()
    expect((await fetch(`${server.baseUrl}/metrics`)).status).toBe(404)
    const scraped = await fetch(`http://127.0.0.1:${port}/metrics`)
    expect(await scraped.text()).toContain('tidegate_collect_in_flight')
    expect((await fetch(`http://127.0.0.1:${port}/livez`)).status).toBe(404)
    await expect(start()).rejects.toThrow(
      `Port ${port} on 127.0.0.1 is in use: is Tidegate already running? Set METRICS_PORT`,
    )
    expect(await server.end('SIGTERM')).toBe(0)
  }, 60_000)
})

import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createCollectClient } from '../../infra/wire/collect/client.ts'
import { eventually } from '../support/eventually.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

interface Answer {
  status: number
  /** True if the server announced that it closes the connection after this response. */
  last: boolean
}

async function read(url: string, agent: Agent, key?: string): Promise<Answer> {
  const headers = key ? { authorization: `Bearer ${key}` } : {}
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(url, { agent, headers }, resolve).once('error', reject)
  })
  await text(response)
  return { status: response.statusCode ?? 0, last: response.headers.connection === 'close' }
}

/** Reads on one connection until the server ends it, then once more on another: the port is still open. */
async function readUntilDrained(url: string, key: string, answers: Answer[]): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  while (!answers.at(-1)?.last) answers.push(await read(url, agent, key))
  answers.push(await read(url, agent, key))
  agent.destroy()
}

/** Opens sessions, one after the other, until an answer is the last of its connection. No request is tried again. */
async function collectUntilDrained({ credentials, baseUrl }: RunningTidegate, answers: Answer[]) {
  const recorded = async (url: string, request: RequestInit): Promise<Response> => {
    const response = await fetch(url, request)
    answers.push({ status: response.status, last: response.headers.get('connection') === 'close' })
    return response
  }
  while (!answers.at(-1)?.last) {
    const client = createCollectClient({
      endpoint: baseUrl,
      publishableKey: credentials.live.ios_publishable_key,
      fetch: recorded,
      sdk: { name: 'test', version: '1', platform: 'ios' },
      retry: { attempts: 1 },
    })
    await client.open()
    await client.sendBatch({ version: 1, elapsed_ms: 5 })
  }
}

/** Sends a part of a request and nothing more; resolves when the server has ended the connection. */
async function stall(port: number, part: string): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  socket.on('error', () => {})
  socket.write(part)
  socket.resume()
  await once(socket, 'close')
}

/** Observations while a loaded server stops. */
interface Stop {
  readers: Answer[][]
  collectors: Answer[][]
  failures: unknown[]
  notReady: Answer
  code: number | null
  seconds: number
}

async function stopUnderLoad(server: RunningTidegate): Promise<Stop> {
  const port = Number(new URL(server.baseUrl).port)
  const readers: Answer[][] = Array.from({ length: 6 }, () => [])
  const collectors: Answer[][] = Array.from({ length: 4 }, () => [])
  const stalled = [
    stall(
      port,
      'POST /v2/collect/sessions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"half":',
    ),
    stall(port, 'GET /livez HTT'),
  ]
  const sessions = `${server.baseUrl}/v1/sessions`
  const load = [
    ...readers.map((answers) =>
      readUntilDrained(sessions, server.credentials.live.secret_key, answers),
    ),
    ...collectors.map((answers) => collectUntilDrained(server, answers)),
  ]
  const settled = Promise.allSettled(load)
  await eventually(() => {
    for (const answers of [...readers, ...collectors]) expect(answers.length).toBeGreaterThan(10)
  })
  const started = performance.now()
  const stopped = server.stop()
  const notReady = await eventually(async () => {
    const answer = await read(`${server.baseUrl}/readyz`, new Agent())
    expect(answer.status).toBe(503)
    return answer
  })
  const results = await settled
  const failures = results.flatMap((result) =>
    result.status === 'rejected' ? [result.reason] : [],
  )
  const code = await stopped
  await Promise.all(stalled)
  return {
    readers,
    collectors,
    failures,
    notReady,
    code,
    seconds: (performance.now() - started) / 1000,
  }
}

describe('SIGTERM under load, with clients that never finish their request', () => {
  let server: RunningTidegate
  let stop: Stop
  beforeAll(async () => {
    server = await startTidegate()
    stop = await stopUnderLoad(server)
    console.log(`stopped in ${stop.seconds.toFixed(1)} s`)
  }, 60_000)
  afterAll(() => server?.stop())

  it('answers every request that was sent', () => {
    const answers = [...stop.readers, ...stop.collectors].flat()
    expect(stop.failures).toEqual([])
    expect(answers.filter(({ status }) => status < 200 || status > 299)).toEqual([])
  })

  it('says not ready while the port is open, and ends connections with an answer', () => {
    expect(stop.notReady).toEqual({ status: 503, last: true })
    for (const answers of stop.readers)
      expect(answers.slice(-2).map(({ last }) => last)).toEqual([true, true])
  })

  it('ends with 0 in less than 10 seconds', () => {
    expect(stop.code).toBe(0)
    expect(stop.seconds).toBeLessThan(10)
  })
})

import type { Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { addressRecords } from '../../support/dns-server.ts'
import { eventually } from '../../support/eventually.ts'
import { createTestClient, httpText, postTo, startDns, startRawReceiver } from './raw-receiver.ts'

it.each<[string, (socket: Socket) => void]>([
  ['is closed', (socket) => socket.end()],
  ['is reset', (socket) => socket.resetAndDestroy()],
  ['breaks within the response', (socket) => socket.end('HTTP/1.1 2')],
])('a reused connection that %s during a request fails it without a retry', async (_title, end) => {
  const receiver = await startRawReceiver(({ socket, nth }) => {
    if (nth === 1) socket.write(httpText(200))
    else end(socket)
  })
  const client = createTestClient()
  const url = `http://127.0.0.1:${receiver.port}/`
  expect(await client.post(postTo(url))).toMatchObject({ status: 200 })
  await turn()
  expect(await client.post(postTo(url))).toMatchObject({ kind: 'failure', reason: 'reset' })
  expect([receiver.requests.length, receiver.connections]).toEqual([2, 1])
})

it('a slow request does not delay others to the same host', async () => {
  const waiting: Socket[] = []
  const receiver = await startRawReceiver(({ socket }) => {
    waiting.push(socket)
    if (waiting.length === 30)
      for (const waitingSocket of waiting) waitingSocket.write(httpText(200))
  })
  const client = createTestClient()
  const url = `http://127.0.0.1:${receiver.port}/`
  const outcomes = await Promise.all(Array.from({ length: 30 }, () => client.post(postTo(url))))
  expect(outcomes).toMatchObject(Array(30).fill({ status: 200 }))
})

it('bytes after a response do not become the next response', async () => {
  const receiver = await startRawReceiver(({ socket }) =>
    socket.write(httpText(200, 'x') + httpText(410, 'y')),
  )
  const client = createTestClient()
  for (let count = 0; count < 3; count++) {
    const outcome = await client.post(postTo(`http://127.0.0.1:${receiver.port}/`))
    expect(outcome).toMatchObject({ kind: 'response', status: 200 })
  }
})

it('a new address of a name is used within maxConnectionAgeMs, even on a busy connection', async () => {
  const receiver = await startRawReceiver(({ socket }) => socket.write(httpText(200)))
  await startRawReceiver(({ socket }) => socket.write(httpText(201)), {
    host: '127.0.0.2',
    port: receiver.port,
  })
  const dns = await startDns((question) =>
    addressRecords(question, [question.before === 0 ? '127.0.0.1' : '127.0.0.2']),
  )
  const client = createTestClient({ dnsServers: [dns.address], maxConnectionAgeMs: 300 })
  const status = async () => {
    const outcome = await client.post(postTo(`http://moving.example:${receiver.port}/`))
    await turn()
    return outcome.kind === 'response' && outcome.status
  }
  expect([await status(), await status()]).toEqual([200, 200])
  expect(receiver.connections).toBe(1)
  await eventually(async () => expect(await status()).toBe(201))
  expect(receiver.connections).toBe(1)
})

it('idle connections close by themselves, even of many receivers', async () => {
  const receiver = await startRawReceiver(({ socket }) => socket.write(httpText(200)))
  const client = createTestClient()
  const urls = Array.from({ length: 200 }, (_, i) => `http://r${i}.localhost:${receiver.port}/`)
  await Promise.all(urls.map((url) => client.post(postTo(url))))
  expect(receiver.connections).toBe(200)
  await eventually(() => expect(receiver.sockets.size).toBe(0))
})

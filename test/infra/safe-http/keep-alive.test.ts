import type { Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { addressRecords } from '../../support/dns-server.ts'
import { eventually } from '../../support/eventually.ts'
import { answerOf, createTestClient, postTo, startNames, startRawReceiver } from './raw-receiver.ts'

it.each<[string, (socket: Socket) => void]>([
  ['is closed', (socket) => socket.end()],
  ['is reset', (socket) => socket.resetAndDestroy()],
  ['breaks within the response', (socket) => socket.end('HTTP/1.1 2')],
])(
  'a kept connection that %s under the next request is a failure, and the request is not repeated',
  async (_how, end) => {
    const receiver = await startRawReceiver(({ socket, nth }) => {
      if (nth === 1) socket.write(answerOf(200))
      else end(socket)
    })
    const client = createTestClient()
    const url = `http://127.0.0.1:${receiver.port}/`
    expect(await client.post(postTo(url))).toMatchObject({ status: 200 })
    await turn()
    expect(await client.post(postTo(url))).toMatchObject({ kind: 'failure', reason: 'reset' })
    expect([receiver.requests.length, receiver.connections]).toEqual([2, 1])
  },
)

it('a slow post does not hold up another one to the same host', async () => {
  const waiting: Socket[] = []
  const receiver = await startRawReceiver(({ socket }) => {
    waiting.push(socket)
    if (waiting.length === 30) for (const one of waiting) one.write(answerOf(200))
  })
  const client = createTestClient()
  const url = `http://127.0.0.1:${receiver.port}/`
  const outcomes = await Promise.all(Array.from({ length: 30 }, () => client.post(postTo(url))))
  expect(outcomes).toMatchObject(Array(30).fill({ status: 200 }))
})

it('bytes after a response are not taken for the next one', async () => {
  const receiver = await startRawReceiver(({ socket }) =>
    socket.write(answerOf(200, 'x') + answerOf(410, 'y')),
  )
  const client = createTestClient()
  for (let count = 0; count < 3; count++) {
    const outcome = await client.post(postTo(`http://127.0.0.1:${receiver.port}/`))
    expect(outcome).toMatchObject({ kind: 'response', status: 200 })
  }
})

it('a name that changes its address is followed within the longest time of a connection, however busy it is', async () => {
  const receiver = await startRawReceiver(({ socket }) => socket.write(answerOf(200)))
  await startRawReceiver(({ socket }) => socket.write(answerOf(201)), {
    host: '127.0.0.2',
    port: receiver.port,
  })
  const dns = await startNames((question) =>
    addressRecords(question, [question.before === 0 ? '127.0.0.1' : '127.0.0.2']),
  )
  const client = createTestClient({ dnsServers: [dns.address], connectionMs: 300 })
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

it('however many receivers there are, all connections end by themselves', async () => {
  const receiver = await startRawReceiver(({ socket }) => socket.write(answerOf(200)))
  const client = createTestClient()
  const urls = Array.from({ length: 200 }, (_, i) => `http://r${i}.localhost:${receiver.port}/`)
  await Promise.all(urls.map((url) => client.post(postTo(url))))
  expect(receiver.connections).toBe(200)
  await eventually(() => expect(receiver.sockets.size).toBe(0))
})

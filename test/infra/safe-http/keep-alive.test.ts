import type { Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { addressRecords, startDnsServer } from '../../support/dns-server.ts'
import { eventually } from '../../support/eventually.ts'
import { afterwards, answerOf, createTestClient, postTo, startRawReceiver } from './raw-receiver.ts'

it('one connection carries one post after another', async () => {
  const receiver = await startRawReceiver(({ socket }) => socket.write(answerOf(200, 'x')))
  const client = createTestClient()
  for (let count = 0; count < 20; count++) {
    const outcome = await client.post(postTo(`http://127.0.0.1:${receiver.port}/${count}`))
    expect(outcome).toMatchObject({ status: 200 })
    await turn()
  }
  expect([receiver.requests.length, receiver.connections]).toEqual([20, 1])
})

it('posts at the same time have a connection each, never two on one', async () => {
  const busy = new Set<number>()
  let most = 0
  const receiver = await startRawReceiver(({ socket, connection }) => {
    expect(busy.has(connection)).toBe(false)
    busy.add(connection)
    most = Math.max(most, busy.size)
    setTimeout(() => {
      busy.delete(connection)
      socket.write(answerOf(200))
    }, 50)
  })
  const client = createTestClient()
  const url = `http://127.0.0.1:${receiver.port}/`
  for (let round = 0; round < 2; round++) {
    await Promise.all(Array.from({ length: 30 }, () => client.post(postTo(url))))
    await turn()
  }
  expect(most).toBe(30)
  expect(receiver.connections).toBeLessThan(40)
})

it('a connection that the receiver closed while it was idle is no failure', async () => {
  const receiver = await startRawReceiver(({ socket }) => socket.write(answerOf(200)))
  const client = createTestClient()
  const url = `http://127.0.0.1:${receiver.port}/`
  expect(await client.post(postTo(url))).toMatchObject({ status: 200 })
  for (const socket of receiver.sockets) socket.end()
  expect(await client.post(postTo(url))).toMatchObject({ status: 200 })
  await eventually(() => expect(receiver.sockets.size).toBe(1))
  expect(receiver.connections).toBe(2)
})

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
  const dns = await startDnsServer((question) =>
    addressRecords(question, [question.before === 0 ? '127.0.0.1' : '127.0.0.2']),
  )
  afterwards(() => dns.close())
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
  expect([receiver.connections, receiver.sockets.size]).toEqual([200, 200])
  await eventually(() => expect(receiver.sockets.size).toBe(0))
})

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
  }
  expect([receiver.requests.length, receiver.connections]).toEqual([20, 1])
})

it('posts at the same time have a connection each, never two on one', async () => {
  let open = 0
  let most = 0
  const receiver = await startRawReceiver(({ socket, nth }) => {
    expect(nth).toBeLessThanOrEqual(2)
    most = Math.max(most, ++open)
    setTimeout(() => {
      open--
      socket.write(answerOf(200))
    }, 50)
  })
  const client = createTestClient()
  const url = `http://127.0.0.1:${receiver.port}/`
  for (let round = 0; round < 2; round++) {
    await Promise.all(Array.from({ length: 30 }, () => client.post(postTo(url))))
  }
  expect([most, receiver.connections]).toEqual([30, 30])
})

it.each<[string, string]>([
  ['says that it closes', answerOf(200, '', 'connection: close\r\n')],
  ['keeps connections for less than a second', answerOf(200, '', 'keep-alive: timeout=1\r\n')],
  ['speaks HTTP/1.0', 'HTTP/1.0 200 X\r\ncontent-length: 0\r\n\r\n'],
])('a connection is used once when the receiver %s', async (_what, answer) => {
  const receiver = await startRawReceiver(({ socket }) => socket.write(answer))
  const client = createTestClient()
  for (let count = 1; count <= 3; count++) {
    const outcome = await client.post(postTo(`http://127.0.0.1:${receiver.port}/`))
    expect(outcome).toMatchObject({ status: 200 })
    expect(receiver.connections).toBe(count)
  }
  await eventually(() => expect(receiver.sockets.size).toBe(0))
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

it.each(['end', 'resetAndDestroy'] as const)(
  'a kept connection that breaks (%s) with the next request on its way is replaced once, within the same post',
  async (how) => {
    const receiver = await startRawReceiver(({ socket, nth }) => {
      if (nth === 1) socket.write(answerOf(200))
      else socket[how]()
    })
    const client = createTestClient()
    const url = `http://127.0.0.1:${receiver.port}/`
    expect(await client.post(postTo(url))).toMatchObject({ status: 200 })
    expect(await client.post(postTo(url))).toMatchObject({ status: 200 })
    expect([receiver.requests.length, receiver.connections]).toEqual([3, 2])
    expect(receiver.requests[1]).toBe(receiver.requests[2])
  },
)

it('the replacement may fail as well, and is not replaced', async () => {
  const receiver = await startRawReceiver(({ socket, connection, nth }) => {
    if (connection === 1 && nth === 1) socket.write(answerOf(200))
    else socket.resetAndDestroy()
  })
  const client = createTestClient()
  const url = `http://127.0.0.1:${receiver.port}/`
  expect(await client.post(postTo(url))).toMatchObject({ status: 200 })
  expect(await client.post(postTo(url))).toMatchObject({ kind: 'failure', reason: 'reset' })
  expect([receiver.requests.length, receiver.connections]).toEqual([3, 2])
})

it('a kept connection that breaks within a response is a failure', async () => {
  const receiver = await startRawReceiver(({ socket, nth }) => {
    if (nth === 1) socket.write(answerOf(200))
    else socket.end('HTTP/1.1 2')
  })
  const client = createTestClient()
  const url = `http://127.0.0.1:${receiver.port}/`
  expect(await client.post(postTo(url))).toMatchObject({ status: 200 })
  expect(await client.post(postTo(url))).toMatchObject({ kind: 'failure', reason: 'reset' })
  expect([receiver.requests.length, receiver.connections]).toEqual([2, 1])
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

it('a name that changes its address keeps its connection, and the next connection goes where it points then', async () => {
  const receiver = await startRawReceiver(({ socket, text }) =>
    socket.write(answerOf(200, '', text.includes('/last') ? 'connection: close\r\n' : '')),
  )
  const moved = await startRawReceiver(({ socket }) => socket.write(answerOf(201)), {
    host: '127.0.0.2',
    port: receiver.port,
  })
  const dns = await startDnsServer((question) =>
    addressRecords(question, [question.before === 0 ? '127.0.0.1' : '127.0.0.2']),
  )
  afterwards(() => dns.close())
  const client = createTestClient({ dnsServers: [dns.address] })
  const url = `http://moving.example:${receiver.port}`
  const statuses: unknown[] = []
  for (const path of ['/', '/', '/last', '/', '/']) {
    const outcome = await client.post(postTo(url + path))
    statuses.push(outcome.kind === 'response' && outcome.status)
  }
  expect(statuses).toEqual([200, 200, 200, 201, 201])
  expect([receiver.connections, moved.connections]).toEqual([1, 1])
})

it('however many receivers there are, only some connections are kept, and all end by themselves', async () => {
  let most = 0
  const receiver = await startRawReceiver(({ socket }) => {
    most = Math.max(most, receiver.sockets.size)
    socket.write(answerOf(200))
  })
  const client = createTestClient()
  const names = Array.from({ length: 1500 }, (_, index) => `http://r${index}.localhost:${receiver.port}/`)
  const take = async () => {
    for (let url = names.pop(); url; url = names.pop()) {
      expect(await client.post(postTo(url))).toMatchObject({ status: 200 })
    }
  }
  await Promise.all(Array.from({ length: 20 }, take))
  expect(receiver.connections).toBe(1500)
  console.log(`kept connections: ${most} at most`)
  // 512 idle ones, 20 in use, and those whose end has not arrived yet.
  expect(most).toBeLessThan(700)
  await eventually(() => expect(receiver.sockets.size).toBe(0))
})

it('idle connections end by themselves', async () => {
  const receiver = await startRawReceiver(({ socket }) => socket.write(answerOf(200)))
  const client = createTestClient()
  await Promise.all(
    Array.from({ length: 5 }, () => client.post(postTo(`http://127.0.0.1:${receiver.port}/`))),
  )
  expect(receiver.sockets.size).toBe(5)
  await eventually(() => expect(receiver.sockets.size).toBe(0))
})

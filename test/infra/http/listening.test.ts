import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { createServer } from 'node:net'
import fastify from 'fastify'
import { expect, test } from 'vitest'
import { listenShared, reservePort } from '../../../infra/http/listening.ts'

const host = '127.0.0.1'
const refuse: RequestListener = (_, response) => void response.writeHead(503).end()

/** Reserves and releases a port, and takes it with another server. Retries if another test took the port. */
async function takePort() {
  for (;;) {
    const held = await reservePort({ port: 0, host }, refuse)
    expect((await fetch(`http://${host}:${held.port}/`)).status).toBe(503)
    await held.release()
    const intruder = createServer().listen(held.port, host)
    const isTaken = await once(intruder, 'listening').then(
      () => true,
      () => false,
    )
    if (isTaken) return { held, intruder }
  }
}

test('listening waits for a server that takes the port for a moment', async () => {
  const { held, intruder } = await takePort()

  const app = fastify()
  app.get('/', async () => 'ours')
  const listening = listenShared(app, { port: held.port, host })
  intruder.close()
  await listening

  expect(await (await fetch(`http://${host}:${held.port}/`)).text()).toBe('ours')
  await app.close()
})

test('a port in use is rejected with a message for the operator', async () => {
  const held = await reservePort({ port: 0, host }, refuse)
  await expect(reservePort({ port: held.port, host }, refuse)).rejects.toThrow(
    `Port ${held.port} on ${host} is in use`,
  )
  await held.release()
})

test('closing waits for the requests on all sockets', async () => {
  const held = await reservePort({ port: 0, host }, refuse)
  await held.release()
  const app = fastify({ return503OnClosing: false })
  const begun = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  let waiting = 0
  app.get('/', async () => {
    waiting += 1
    if (waiting === 64) begun.resolve()
    await gate.promise
    return 'ours'
  })
  await listenShared(app, { port: held.port, host })
  const responses = Array.from({ length: 64 }, async () =>
    (await fetch(`http://${host}:${held.port}/`, { headers: { connection: 'close' } })).text(),
  )
  await begun.promise
  let isClosed = false
  const closed = app.close().then(() => {
    isClosed = true
  })
  await expect.poll(() => app.server.listening).toBe(false)
  expect(isClosed).toBe(false)
  gate.resolve()
  expect(await Promise.all(responses)).toEqual(responses.map(() => 'ours'))
  await closed
})

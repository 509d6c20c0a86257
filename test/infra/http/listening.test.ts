import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { createServer } from 'node:net'
import fastify from 'fastify'
import { expect, test } from 'vitest'
import { holdPort, listenOnHeld } from '../../../infra/http/listening.ts'

const host = '127.0.0.1'
const refuse: RequestListener = (_, response) => void response.writeHead(503).end()

test('whoever takes the held port for a moment only delays listening', async () => {
  const held = await holdPort({ port: 0, host }, refuse)
  expect((await fetch(`http://${host}:${held.port}/`)).status).toBe(503)
  await held.release()
  const intruder = createServer().listen(held.port, host)
  await once(intruder, 'listening')

  const app = fastify()
  app.get('/', async () => 'ours')
  const listening = listenOnHeld(app, { port: held.port, host })
  intruder.close()
  await listening

  expect(await (await fetch(`http://${host}:${held.port}/`)).text()).toBe('ours')
  await app.close()
})

test('a port that another server keeps is refused with a message for the operator', async () => {
  const held = await holdPort({ port: 0, host }, refuse)
  await expect(holdPort({ port: held.port, host }, refuse)).rejects.toThrow(
    `Port ${held.port} of ${host} is in use`,
  )
  await held.release()
})

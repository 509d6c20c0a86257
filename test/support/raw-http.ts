import { once } from 'node:events'
import { connect } from 'node:net'
import type { FastifyInstance } from 'fastify'

/** Response as received. */
export interface Answer {
  status: number
  headers: Record<string, unknown>
  body: string
}

/** Sends bytes to the listening app. With `code`, emits a client error with this code meanwhile. */
export async function sendRaw(app: FastifyInstance, raw: string, code?: string): Promise<Answer> {
  const address = app.server.address()
  if (typeof address !== 'object' || !address) throw new Error('not listening')
  const accepted = once(app.server, 'connection')
  const socket = connect(address.port, '127.0.0.1')
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  const [peer] = await accepted
  socket.write(raw)
  if (code) app.server.emit('clientError', Object.assign(new Error(code), { code }), peer)
  await once(socket, 'close')
  const [head = '', body = ''] = Buffer.concat(chunks).toString().split('\r\n\r\n')
  const [first = '', ...lines] = head.split('\r\n')
  const headers = Object.fromEntries(
    lines.map((line) => [line.split(': ')[0]?.toLowerCase(), line.split(': ')[1]]),
  )
  return { status: Number(first.split(' ')[1]), headers, body }
}

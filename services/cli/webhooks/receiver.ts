import { type Answer, type LoopbackRequest, type LoopbackServer, serveLoopback } from '../loopback.ts'

export type { Answer } from '../loopback.ts'
export type Received = Pick<LoopbackRequest, 'headers' | 'body'>
export type Receiver = LoopbackServer

interface ReceiverOptions {
  /** 0 = a free one. */
  port: number
  /** What becomes of a POST; when it throws, the answer is 500. */
  answer: (received: Received) => Promise<Answer>
}

/** A receiver on this machine's loopback address, at whatever path. Rejects when the port is taken. */
export function startReceiver({ port, answer }: ReceiverOptions): Promise<Receiver> {
  return serveLoopback({
    port,
    answer: async ({ method, ...received }) => (method === 'POST' ? answer(received) : { status: 405 }),
  })
}

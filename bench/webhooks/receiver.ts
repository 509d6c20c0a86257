import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'

// A customer's server at its quickest: it answers 200 before it looks at anything. `GET /arrivals?count=N` answers
// once N different events have arrived since the last such answer, with `[event id, epoch milliseconds]` of each.
const arrivals = new Map<string, number>()
let waiting: { count: number; response: ServerResponse } | undefined

const server = createServer((request, response) => {
  if (request.method === 'GET') {
    const count = Number(new URL(request.url ?? '', 'http://receiver').searchParams.get('count'))
    waiting = { count, response }
    return answerIfComplete()
  }
  receive(request, response)
})

function receive(request: IncomingMessage, response: ServerResponse): void {
  request.resume().once('end', () => {
    response.end()
    const id = String(request.headers['webhook-id'])
    if (!arrivals.has(id)) arrivals.set(id, performance.timeOrigin + performance.now())
    answerIfComplete()
  })
}

function answerIfComplete(): void {
  if (!waiting || arrivals.size < waiting.count) return
  waiting.response.end(JSON.stringify([...arrivals]))
  waiting = undefined
  arrivals.clear()
}

server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the receiver has no port')
  console.log(`Receiver is ready: http://127.0.0.1:${address.port}`)
})
process.once('SIGTERM', () => {
  server.close()
  server.closeAllConnections()
})

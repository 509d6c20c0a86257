import http from 'node:http'

export interface LoadRequest {
  method: 'GET' | 'POST'
  path: string
  headers: Record<string, string>
  body?: Buffer
}

export interface LoadAnswer {
  status: number
  headers: http.IncomingHttpHeaders
  body: Buffer
}

/** Requests of a worker. `next` gets the previous response, and returns undefined when there are no more requests. */
export interface Sequence {
  next(previous: LoadAnswer | undefined): LoadRequest | undefined
}

export interface LoadResult {
  requests: number
  seconds: number
  /** Milliseconds from the request to the end of the response, in the order of responses. */
  latencies: number[]
}

/**
 * Sends each sequence over its own connection, one request at a time. Requests are prepared first, so that the
 * generator uses little CPU time. Throws at the first response that is not 2xx.
 */
export async function runLoad(
  baseUrl: string,
  sequences: readonly Sequence[],
): Promise<LoadResult> {
  const { send, close } = connect(baseUrl, sequences.length)
  const latencies: number[] = []
  const start = performance.now()
  try {
    await Promise.all(sequences.map((sequence) => runSequence(sequence, send, latencies)))
  } finally {
    close()
  }
  return { requests: latencies.length, seconds: (performance.now() - start) / 1000, latencies }
}

export interface Connections {
  send(request: LoadRequest): Promise<LoadAnswer>
  close(): void
}

export function connect(baseUrl: string, maxSockets: number): Connections {
  const { hostname, port } = new URL(baseUrl)
  const agent = new http.Agent({ keepAlive: true, maxSockets })
  return {
    send: (request) => sendOne({ ...request, agent, hostname, port }),
    close: () => agent.destroy(),
  }
}

async function runSequence(
  sequence: Sequence,
  send: (request: LoadRequest) => Promise<LoadAnswer>,
  latencies: number[],
): Promise<void> {
  let answer: LoadAnswer | undefined
  for (;;) {
    const request = sequence.next(answer)
    if (!request) return
    const start = performance.now()
    answer = await send(request)
    latencies.push(performance.now() - start)
    if (answer.status >= 300) throw new Error(`${request.path}: ${answer.status} ${answer.body}`)
  }
}

interface Sending extends LoadRequest {
  agent: http.Agent
  hostname: string
  port: string
}

function sendOne({ body, ...options }: Sending): Promise<LoadAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<LoadAnswer>()
  const headers = { ...options.headers, ...(body ? { 'Content-Length': String(body.length) } : {}) }
  const request = http.request({ ...options, headers }, (response) => {
    const chunks: Buffer[] = []
    response.on('data', (chunk: Buffer) => chunks.push(chunk))
    response.on('end', () =>
      resolve({
        status: response.statusCode ?? 0,
        headers: response.headers,
        body: Buffer.concat(chunks),
      }),
    )
    response.on('error', reject)
  })
  request.on('error', reject)
  request.end(body)
  return promise
}

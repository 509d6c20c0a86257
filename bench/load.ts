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

/** One worker's requests in order: `next` sees the answer to the one before. undefined = done. */
export interface Sequence {
  next(previous: LoadAnswer | undefined): LoadRequest | undefined
}

export interface LoadResult {
  requests: number
  seconds: number
  /** Milliseconds from sending to the end of the answer, in the order of the answers. */
  latencies: number[]
}

/**
 * Sends each sequence over a connection of its own, one request in flight each. All is prepared before, so that the
 * generator costs as little as it can of the machine it shares. Throws at the first answer that is not 2xx.
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

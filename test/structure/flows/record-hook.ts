import { createServer } from 'node:http'
import { Session } from 'node:inspector'

/**
 * Loaded into a server before anything else (`--import`). Answers, on the Unix socket RECORD_SOCKET, which functions ran
 * since it was asked last: one `path:function:offset` a line, of the project's own files. V8 counts the calls.
 */

interface Coverage {
  result: {
    url: string
    functions: { functionName: string; ranges: { startOffset: number; count: number }[] }[]
  }[]
}

const root = new URL('../../../', import.meta.url).href
const own = /^(schemas|infra|projections|services)\//

function ran({ result }: Coverage): string[] {
  return result.flatMap(({ url, functions }) => {
    const file = url.startsWith(root) ? url.slice(root.length) : ''
    if (!own.test(file)) return []
    const called = functions.filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0)
    return called.map(
      ({ functionName, ranges }) => `${file}:${functionName}:${ranges[0]?.startOffset}`,
    )
  })
}

const socket = process.env.RECORD_SOCKET
if (socket && process.argv.includes('serve')) {
  const session = new Session()
  session.connect()
  session.post('Profiler.enable')
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  const server = createServer((_request, response) => {
    session.post('Profiler.takePreciseCoverage', (error: Error | null, coverage: Coverage) => {
      response.statusCode = error ? 500 : 200
      response.end(error ? error.message : ran(coverage).join('\n'))
    })
  })
  server.listen(socket)
  server.unref()
}

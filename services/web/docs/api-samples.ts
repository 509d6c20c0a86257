import type { Operation } from './api-document.ts'

/** A recorded request and its response. */
export interface Example {
  path: string
  request?: unknown
  status: number
  /** Absent if the response is not JSON or has no body. */
  response?: unknown
}

/** Code that makes a call, by language. */
export interface Samples {
  curl: string
  typescript: string
  python: string
}

interface Call {
  operation: Operation
  example: Example
  serverUrl: string
}

const tokenNames: Record<string, string> = {
  secretKey: 'TIDEGATE_SECRET_KEY',
  publishableKey: 'TIDEGATE_PUBLISHABLE_KEY',
  pollToken: 'POLL_TOKEN',
  agentToken: 'AGENT_TOKEN',
}

/** Returns the call in curl, TypeScript and Python. The last two use the server SDK if it supports the operation. */
export function samplesOf(call: Call): Samples {
  const sdk = sdkCalls[call.operation.operationId]?.(call.example)
  return {
    curl: curl(call),
    typescript: sdk ? typescriptSdk(call, sdk.typescript) : typescript(call),
    python: sdk ? pythonSdk(call, sdk.python) : python(call),
  }
}

function tokenName({ security }: Operation): string | undefined {
  const [scheme] = security.flatMap((requirement) => Object.keys(requirement))
  return scheme === undefined ? undefined : tokenNames[scheme]
}

function curl({ operation, example: { path, request }, serverUrl }: Call): string {
  const token = tokenName(operation)
  const method =
    operation.method === (request === undefined ? 'GET' : 'POST') ? '' : `-X ${operation.method} `
  return [
    `curl ${method}${shellText(serverUrl + path)}`,
    ...(token ? [`-H "Authorization: Bearer $${token}"`] : []),
    ...(request === undefined ? [] : [`--json ${shellText(JSON.stringify(request))}`]),
  ].join(' \\\n  ')
}

const shellText = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

function typescript({ operation, example: { path, request, response }, serverUrl }: Call): string {
  const token = tokenName(operation)
  const headers = [
    ...(token ? [`authorization: \`Bearer \${process.env.${token}}\`,`] : []),
    ...(request === undefined ? [] : [`'content-type': 'application/json',`]),
  ]
  const options = [
    ...(operation.method === 'GET' ? [] : [`method: '${operation.method}',`]),
    ...(headers.length > 0 ? ['headers: {', ...headers.map((line) => `  ${line}`), '},'] : []),
    ...(request === undefined ? [] : [`body: JSON.stringify(${jsLiteral(request, 1)}),`]),
  ]
  const url = `'${serverUrl}${path}'`
  const init = options.length > 0 ? `, {\n${options.map((line) => `  ${line}`).join('\n')}\n}` : ''
  const rest = response === undefined ? '' : '\nconst body = await response.json()'
  return `const response = await fetch(${url}${init})${rest}`
}

function python({ operation, example: { path, request, response }, serverUrl }: Call): string {
  const token = tokenName(operation)
  const lines = [
    `"${operation.method}",`,
    `"${serverUrl}${path}",`,
    ...(token ? [`headers={"Authorization": f"Bearer {os.environ['${token}']}"},`] : []),
    ...(request === undefined ? [] : [`json=${pythonLiteral(request, 1)},`]),
  ]
  const rest = response === undefined ? '' : '\nbody = response.json()'
  const imports = token ? 'import os\nimport requests' : 'import requests'
  return `${imports}\n\nresponse = requests.request(\n${lines.map((line) => `    ${line}`).join('\n')}\n)${rest}`
}

interface SdkCall {
  typescript: string
  python: string
}

/** Returns the last segment of a path, without the query. */
const lastId = (path: string): string => path.split('?')[0]?.split('/').at(-1) ?? ''

// Calls with @tidegate/server and tidegate_server.py, by operation id.
const sdkCalls: Record<string, (example: Example) => SdkCall> = {
  getSession: ({ path }) => ({
    typescript: `const session = await tidegate.sessions.get('${lastId(path)}')`,
    python: `session = tidegate.get_session("${lastId(path)}")`,
  }),
  listSessions: ({ path }) => ({
    typescript: `for await (const session of tidegate.sessions.list(${jsQuery(path)})) {\n  console.log(session.id, session.latest_decision.verdict)\n}`,
    python: `for session in tidegate.list_sessions(${pythonQuery(path)}):\n    print(session["id"], session["latest_decision"]["verdict"])`,
  }),
  countSessions: ({ path }) => ({
    typescript: `const counts = await tidegate.sessions.count(${jsQuery(path)})`,
    python: `counts = tidegate.count_sessions(${pythonQuery(path)})`,
  }),
  updateSession: ({ path, request }) => ({
    typescript: `const session = await tidegate.sessions.setUser('${lastId(path)}', ${userLiteral(request)})`,
    python: `session = tidegate.set_user("${lastId(path)}", ${userLiteral(request).replaceAll("'", '"')})`,
  }),
  getVisitorFingerprint: ({ path }) => ({
    typescript: `const visitor = await tidegate.visitors.get('${lastId(path)}')`,
    python: `visitor = tidegate.get_visitor("${lastId(path)}")`,
  }),
  listVisitorFingerprints: ({ path }) => ({
    typescript: `for await (const visitor of tidegate.visitors.list(${jsQuery(path)})) {\n  console.log(visitor.id)\n}`,
    python: `for visitor in tidegate.list_visitors(${pythonQuery(path)}):\n    print(visitor["id"])`,
  }),
  markSessions: ({ request }) => ({
    typescript: `const mark = await tidegate.marks.create(${jsLiteral(request, 0)})`,
    python: `mark = tidegate.create_mark(${pythonLiteral(request, 0)})`,
  }),
  deleteMark: ({ path }) => ({
    typescript: `await tidegate.marks.remove('${lastId(path)}')`,
    python: `tidegate.remove_mark("${lastId(path)}")`,
  }),
  scoreRequests: ({ request }) => ({
    typescript: `const scored = await tidegate.scoreRequests(${jsLiteral(requestsIn(request), 0)})`,
    python: `scored = tidegate.score_requests(${pythonLiteral(requestsIn(request), 0)})`,
  }),
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const userLiteral = (request: unknown): string =>
  isRecord(request) ? `'${String(request.client_user_id)}'` : 'null'

const requestsIn = (request: unknown): unknown => (isRecord(request) ? request.requests : [])

function jsQuery(path: string): string {
  const pairs = queryOf(path).map(([name, value]) => `${name}: '${value}'`)
  return pairs.length > 0 ? `{ ${pairs.join(', ')} }` : ''
}

const pythonQuery = (path: string): string =>
  queryOf(path)
    .map(([name, value]) => `${name}="${value}"`)
    .join(', ')

const queryOf = (path: string): [string, string][] => [
  ...new URLSearchParams(path.split('?')[1] ?? '').entries(),
]

function typescriptSdk({ serverUrl }: Call, call: string): string {
  return `import { createClient, failClosed } from '@tidegate/server'

const tidegate = createClient({
  url: '${serverUrl}',
  secretKey: process.env.TIDEGATE_SECRET_KEY,
  whenUnavailable: failClosed,
})

${call}`
}

function pythonSdk({ serverUrl }: Call, call: string): string {
  return `import os
from tidegate_server import Client, fail_closed

tidegate = Client(
    url="${serverUrl}",
    secret_key=os.environ["TIDEGATE_SECRET_KEY"],
    when_unavailable=fail_closed,
)

${call}`
}

/** Formats a value as JavaScript, without unnecessary quotes around names. */
function jsLiteral(value: unknown, depth: number): string {
  return JSON.stringify(value, undefined, 2)
    .replace(/^(\s*)"(\w+)":/gm, '$1$2:')
    .replaceAll('\n', `\n${'  '.repeat(depth)}`)
}

function pythonLiteral(value: unknown, depth: number): string {
  const pad = '    '.repeat(depth)
  if (value === null) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (Array.isArray(value) && value.every((item) => typeof item === 'object' && item !== null))
    return pythonBlock(
      '[',
      value.map((item) => pythonLiteral(item, depth + 1)),
      ']',
      pad,
    )
  if (Array.isArray(value)) return `[${value.map((item) => pythonLiteral(item, depth)).join(', ')}]`
  if (isRecord(value)) {
    const members = Object.entries(value).map(
      ([name, member]) => `${JSON.stringify(name)}: ${pythonLiteral(member, depth + 1)}`,
    )
    return pythonBlock('{', members, '}', pad)
  }
  return JSON.stringify(value)
}

function pythonBlock(open: string, items: string[], close: string, pad: string): string {
  if (items.length === 0) return open + close
  return `${open}\n${items.map((item) => `${pad}    ${item},`).join('\n')}\n${pad}${close}`
}

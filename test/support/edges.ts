import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { request } from 'undici'
import { freePort } from '../../infra/local/free-port.ts'
import { codeBlock, docs } from './code-block.ts'
import { endChild } from './end-child.ts'
import { eventually } from './eventually.ts'
import { findProgram } from './needs/programs.ts'
import { nginxText } from './nginx-text.ts'
import { elsewhere, installThere } from './packed.ts'

const recipe = (name: string) => codeBlock('guide/requests.md', `edge: ${name}`)

export interface EdgeOptions {
  tidegateUrl: string
  secretKey: string
  /** The program behind. Express has one of its own, which answers the same. */
  appUrl: string
}

/** Request as received by the program behind an edge. */
export interface SeenBehind {
  verdict: string | null
  method: string
  path: string
  body: string
}

interface SentThere {
  headers: Record<string, string>
  /** Body of a POST; without it, sends a GET. */
  body?: string
}

export interface Edge {
  /** Sends a request like an external client. Resolves with the response of the program behind the edge. */
  send(path: string, sent: SentThere): Promise<SeenBehind>
  output(): string
  stop(): Promise<void>
}

export type StartEdge = (options: EdgeOptions) => Promise<Edge>

interface Setting {
  folder: string
  port: number
}

interface Prepared {
  command: string[]
  env?: NodeJS.ProcessEnv
  /** Headers that the network in front of the edge adds to each request. */
  headers?: Record<string, string>
}

/** Writes the edge's files into its folder. */
type Prepare = (options: EdgeOptions, setting: Setting) => Promise<Prepared>

/** Edges that run the recipes of docs/guide/requests.md, with replaced addresses and file names. */
export const edges = {
  Express: startsWith(prepareExpress),
  'a Worker': startsWith(prepareWorker),
  nginx: startsWith(prepareNginx),
} satisfies Record<string, StartEdge>

const localUrl = 'http://127.0.0.1:8787'

async function prepareExpress({ tidegateUrl, secretKey }: EdgeOptions, { folder, port }: Setting) {
  const example = await readFile(path.join(docs, 'examples/express/package.json'), 'utf8')
  const { express }: { express: string } = JSON.parse(example).dependencies
  await installThere(folder, `express@${express}`)
  const judging = (await recipe('express.js')).replace(localUrl, tidegateUrl)
  const behind = `
app.use(express.text({ type: '*/*' }), ({ tidegate, method, originalUrl: path, body = '' }, res) => {
  res.json({ verdict: tidegate?.verdict ?? null, method, path, body })
})
app.listen(${port}, '127.0.0.1')`
  const text = `import express from 'express'\nconst app = express()\n${judging}${behind}`
  await writeFile(path.join(folder, 'edge.js'), text)
  return { command: ['node', 'edge.js'], env: { TIDEGATE_SECRET_KEY: secretKey } }
}

async function prepareWorker(
  { tidegateUrl, secretKey, appUrl }: EdgeOptions,
  { folder, port }: Setting,
) {
  await installThere(folder, 'workerd@1.20260730.1')
  await writeFile(path.join(folder, 'worker.js'), await recipe('worker.js'))
  const variables = { TIDEGATE_URL: tidegateUrl, TIDEGATE_SECRET_KEY: secretKey }
  const bindings = Object.entries(variables).map(
    ([name, text]) => `(name = "${name}", text = "${text}")`,
  )
  const config = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "worker", worker = .worker), (name = "internet", network = (allow = ["private"]))],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (cfBlobHeader = "CF-Blob"), service = "worker")],
);
const worker :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")],
  bindings = [${bindings.join()}],
  compatibilityDate = "2026-07-01",
);`
  await writeFile(path.join(folder, 'config.capnp'), config)
  // A Worker has the address of the site, and its own requests to that go to the program behind.
  const { host } = new URL(appUrl)
  const handshake = JSON.stringify({
    botManagement: { ja4: 't13d1516h2_8daaf6152771_e5627efa2ab1' },
  })
  return {
    command: ['node_modules/.bin/workerd', 'serve', 'config.capnp'],
    headers: { host, 'cf-connecting-ip': '127.0.0.1', 'cf-blob': handshake },
  }
}

async function prepareNginx(
  { tidegateUrl, secretKey, appUrl }: EdgeOptions,
  { folder, port }: Setting,
) {
  const judging = (await recipe('nginx.js')).replace(localUrl, tidegateUrl)
  await writeFile(path.join(folder, 'tidegate.js'), judging)
  await writeFile(path.join(folder, 'tidegate-key.conf'), `set $tidegate_key ${secretKey};`)
  const http = (await recipe('nginx.conf'))
    .replaceAll('/etc/nginx/', `${folder}/`)
    .replace('# ... listen, server_name, certificates ...', `listen 127.0.0.1:${port};`)
    .replace('http://app', appUrl)
  const main = 'load_module modules/ngx_http_js_module.so;'
  await writeFile(path.join(folder, 'nginx.conf'), nginxText({ folder, http, main }))
  const program = findProgram('nginx') ?? 'nginx'
  return { command: [program, '-e', 'stderr', '-c', path.join(folder, 'nginx.conf')] }
}

function startsWith(prepare: Prepare): StartEdge {
  return async (options) => {
    const folder = await mkdtemp(path.join(tmpdir(), 'tidegate-edge-'))
    const port = await freePort()
    const { command, env, headers } = await prepare(options, { folder, port })
    const [program = '', ...args] = command
    const child = spawn(program, args, {
      cwd: folder,
      env: { ...elsewhere(), ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const lines: string[] = []
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (data) => lines.push(String(data)))
    const edge: Edge = {
      send: (target, sent) =>
        send(`http://127.0.0.1:${port}${target}`, {
          ...sent,
          headers: { ...sent.headers, ...headers },
        }),
      output: () => lines.join(''),
      async stop() {
        await endChild(child)
        await rm(folder, { recursive: true, force: true, maxRetries: 5 })
      },
    }
    await eventually(() => edge.send('/', { headers: {} })).catch(async (cause) => {
      await edge.stop()
      throw new Error(`${program} does not answer:\n${edge.output()}`, { cause })
    })
    return edge
  }
}

async function send(url: string, { headers, body }: SentThere): Promise<SeenBehind> {
  const answer = await request(url, {
    headers,
    ...(body !== undefined && { method: 'POST', body }),
  })
  const text = await answer.body.text()
  if (answer.statusCode !== 200) throw new Error(`the edge answered ${answer.statusCode}: ${text}`)
  return JSON.parse(text)
}

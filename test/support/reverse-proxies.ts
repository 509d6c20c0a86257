import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { freePort } from '../../infra/local/free-port.ts'
import { endChild } from './end-child.ts'
import { eventually } from './eventually.ts'
import { findProgram } from './needs/programs.ts'
import { nginxText } from './nginx-text.ts'
import { root } from './test-projects.ts'
import type { Certificate } from './tls-certificates.ts'

const page = readFileSync(path.join(root, 'docs/operate/proxies.md'), 'utf8')

/** Returns the code block after `<!-- recipe: name -->` in docs/operate/proxies.md. */
export function recipe(name: string): string {
  const block = new RegExp(`<!-- recipe: ${name} -->\n\`\`\`\\w+\n([\\s\\S]*?)\`\`\``).exec(
    page,
  )?.[1]
  if (!block) throw new Error(`docs/operate/proxies.md has no recipe ${name}`)
  return block
}

export interface ReverseProxies {
  /** Resolves with the proxy's URL when `/t.js` responds. `upstream` is `host:port` of every role. */
  nginx(upstream: string, text: string): Promise<string>
  caddy(upstream: string, text: string): Promise<string>
  stop(): Promise<void>
}

interface ReverseProxyOptions {
  certificate: Certificate
  /** Rejects until a proxy responds at the URL. */
  answers: (url: string) => Promise<unknown>
}

/** Starts recipes with replaced addresses and file names. */
export async function createReverseProxies(options: ReverseProxyOptions): Promise<ReverseProxies> {
  const folder = await mkdtemp(path.join(tmpdir(), 'tidegate-proxies-'))
  const [cert, key] = [path.join(folder, 'server.pem'), path.join(folder, 'server.key')]
  await writeFile(cert, options.certificate.cert)
  await writeFile(key, options.certificate.key, { mode: 0o600 })
  const started: ChildProcess[] = []

  function here(text: string, { upstream, port }: { upstream: string; port: number }): string {
    return text
      .replaceAll(/10\.0\.0\.1[123]:8787/g, upstream)
      .replaceAll('listen 443', `listen 127.0.0.1:${port}`)
      .replaceAll(/\/etc\/nginx\/\w+\.pem/g, cert)
      .replaceAll(/\/etc\/nginx\/\w+\.key/g, key)
      .replace('tidegate.example {', `https://127.0.0.1:${port} {\n\ttls ${cert} ${key}`)
  }

  async function start(program: string, args: string[], port: number): Promise<string> {
    const url = `https://127.0.0.1:${port}`
    const output: string[] = []
    const env = { ...process.env, HOME: folder }
    const child = spawn(findProgram(program) ?? program, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env,
    })
    started.push(child)
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (data) => output.push(String(data)))
    await eventually(async () => {
      await options.answers(url).catch((cause) => {
        throw new Error(`${program} does not answer:\n${output.join('')}`, { cause })
      })
    })
    return url
  }

  return {
    async nginx(upstream, text) {
      const port = await freePort()
      const own = await mkdtemp(path.join(folder, 'nginx-'))
      const config = path.join(own, 'nginx.conf')
      await writeFile(config, nginxText({ folder: own, http: here(text, { upstream, port }) }))
      return start('nginx', ['-e', 'stderr', '-c', config], port)
    },
    async caddy(upstream, text) {
      const port = await freePort()
      const config = path.join(folder, `Caddyfile-${port}`)
      await writeFile(
        config,
        `{\n\tadmin off\n\tauto_https off\n}\n${here(text, { upstream, port })}`,
      )
      return start('caddy', ['run', '--adapter', 'caddyfile', '--config', config], port)
    },
    async stop() {
      for (const child of started) await endChild(child)
      await rm(folder, { recursive: true, force: true })
    },
  }
}

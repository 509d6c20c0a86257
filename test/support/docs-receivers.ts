import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { freePort } from '../../infra/local/free-port.ts'
import { endChild } from './end-child.ts'
import { eventually } from './eventually.ts'
import { type Needing, needs } from './needs.ts'

const run = promisify(execFile)

export interface Language {
  name: string
  file: string
  /** Needs for running the receiver. */
  needing: Needing
  /** Compiles the file if needed, and returns the command that runs it. */
  prepare(file: string): Promise<string[]>
}

/** Returns the languages of the receivers in docs/examples/. `python`: needs of the Python one. */
export function receiverLanguages({ python = needs('python') } = {}): Language[] {
  return [
    {
      name: 'Node.js',
      file: 'receiver.mjs',
      needing: needs(),
      prepare: async (file) => [process.execPath, file],
    },
    {
      name: 'Python',
      file: 'receiver.py',
      needing: python,
      prepare: async (file) => ['python3', '-u', file],
    },
    {
      name: 'Go',
      file: 'receiver.go',
      needing: needs('go'),
      async prepare(file) {
        const program = file.replace(/\.go$/, '')
        await run('go', ['build', '-o', program, file])
        return [program]
      },
    },
  ]
}

export interface Sent {
  body: string
  headers: Record<string, string>
}

export interface Receiver {
  post(sent: Sent): Promise<{ status: number; body: string }>
  /**
   * The status of a POST with these headers, of whose body so many bytes come; undefined = closed before it was read.
   */
  postBytes(headers: Record<string, string>, count: number): Promise<number | undefined>
  output(): string
  stop(): Promise<void>
}

/** Starts a receiver of a page with the secrets and waits until it listens. */
export async function startReceiver(
  [command = '', ...args]: string[],
  secrets: string[],
): Promise<Receiver> {
  const port = await freePort()
  const env = { ...process.env, PORT: String(port), WEBHOOK_SECRETS: secrets.join(',') }
  const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const lines: string[] = []
  for (const stream of [child.stdout, child.stderr])
    createInterface(stream).on('line', (line) => lines.push(line))
  const url = `http://127.0.0.1:${port}/hooks`
  const post = async ({ body, headers }: Sent) => {
    const all = { ...headers, 'content-type': 'application/json' }
    const response = await fetch(url, { method: 'POST', headers: all, body })
    return { status: response.status, body: await response.text() }
  }
  const postBytes = async (headers: Record<string, string>, count: number) => {
    const socket = connect(port, '127.0.0.1')
    const all = Object.entries({ host: 'a', ...headers }).map(
      ([header, value]) => `${header}: ${value}\r\n`,
    )
    socket.write(`POST /hooks HTTP/1.1\r\n${all.join('')}\r\n`)
    socket.write(Buffer.alloc(count, '0'))
    // A server that closes with unread bytes may reset the connection, so the response can be lost.
    const answer = await once(socket, 'data').catch(() => undefined)
    socket.destroy()
    return answer && Number(String(answer[0]).split(' ')[1])
  }
  const output = () => lines.join('\n')
  await eventually(() => listening(child, { post, output }), { timeoutMs: 20_000, intervalMs: 50 })
  return { post, postBytes, output, stop: () => endChild(child) }
}

async function listening(child: ChildProcess, { post, output }: Pick<Receiver, 'post' | 'output'>) {
  if (child.exitCode !== null) throw new Error(`the receiver ended: ${output()}`)
  const { status } = await post({ body: '{}', headers: {} })
  if (status !== 401) throw new Error(`the receiver answered ${status}`)
}

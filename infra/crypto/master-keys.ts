import { type ExecFileException, execFile } from 'node:child_process'
import type { Config } from '../config.ts'

type Settings = Pick<Config, 'TIDEGATE_MASTER_KEYS' | 'TIDEGATE_MASTER_KEYS_COMMAND'>

const outputBytes = 1024 * 1024

/** The keys of the settings, or what their command prints. No error has anything of its output, which may be secret. */
export async function readMasterKeys(
  { TIDEGATE_MASTER_KEYS: keys, TIDEGATE_MASTER_KEYS_COMMAND: command }: Settings,
  { timeoutMs = 30_000 }: { timeoutMs?: number } = {},
): Promise<string | undefined> {
  if (!command) return keys
  const printed = await run(command, timeoutMs)
  // Node reads base64 out of any text: a message of the command would be a key, and another one the next time.
  const isList = printed.split(',').every((part) => /^[A-Za-z0-9+/]+={0,2}$/.test(part.trim()))
  if (!isList) throw refusal('printed no comma-separated base64')
  return printed
}

function run([program = '', ...args]: string[], timeoutMs: number): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const options = { timeout: timeoutMs, killSignal: 'SIGKILL', maxBuffer: outputBytes } as const
  const child = execFile(program, args, options, (error, printed) => {
    if (error) reject(refusal(failureOf(error, timeoutMs)))
    else resolve(printed.trim())
  })
  // One that asks for a password ends instead of waiting.
  child.stdin?.on('error', () => {}).end()
  return promise
}

function failureOf({ code, signal, killed }: ExecFileException, timeoutMs: number): string {
  if (code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') return 'printed more than a megabyte'
  if (killed) return `took longer than ${timeoutMs / 1000} seconds`
  if (typeof code === 'string') return `could not be started (${code})`
  return `ended with ${signal ?? code}`
}

const refusal = (what: string) =>
  new Error(`TIDEGATE_MASTER_KEYS_COMMAND ${what}. What it prints is not shown: run it by hand.`)

import { type ExecFileException, execFile } from 'node:child_process'
import type { Config } from '../config.ts'

type Settings = Pick<Config, 'TIDEGATE_MASTER_KEYS' | 'TIDEGATE_MASTER_KEYS_COMMAND'>

const maxOutputBytes = 1024 * 1024

/** Returns the keys from the settings or their command. Errors never quote its output, which may be secret. */
export async function readMasterKeys(
  { TIDEGATE_MASTER_KEYS: keys, TIDEGATE_MASTER_KEYS_COMMAND: command }: Settings,
  { timeoutMs = 30_000 }: { timeoutMs?: number } = {},
): Promise<string | undefined> {
  if (!command) return keys
  const output = await run(command, timeoutMs)
  // Node decodes any text as base64, so without this check an error message would become a key.
  const isList = output.split(',').every((part) => /^[A-Za-z0-9+/]+={0,2}$/.test(part.trim()))
  if (!isList) throw commandError('did not print comma-separated base64')
  return output
}

function run([program = '', ...args]: string[], timeoutMs: number): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const options = { timeout: timeoutMs, killSignal: 'SIGKILL', maxBuffer: maxOutputBytes } as const
  const child = execFile(program, args, options, (error, output) => {
    if (error) reject(commandError(failureOf(error, timeoutMs)))
    else resolve(output.trim())
  })
  // Closes stdin, so that a command that asks for a password fails instead of waiting.
  child.stdin?.on('error', () => {}).end()
  return promise
}

function failureOf({ code, signal, killed }: ExecFileException, timeoutMs: number): string {
  if (code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') return 'printed more than one megabyte'
  if (killed) return `took longer than ${timeoutMs / 1000} seconds`
  if (typeof code === 'string') return `failed to start (${code})`
  return `exited with ${signal ?? code}`
}

const commandError = (problem: string) =>
  new Error(
    `TIDEGATE_MASTER_KEYS_COMMAND ${problem}. Its output is not shown because it may contain keys: run it by hand.`,
  )

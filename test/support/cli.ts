import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { spawnProgram } from './program.ts'

export interface CliResult {
  code: number | null
  stdout: string
  stderr: string
}

/** Starts `tidegate ...args` in a separate process. */
export function startCli(
  args: string[],
  env: Record<string, string>,
): ChildProcess & { result: Promise<CliResult> } {
  const child = spawnProgram(args, { npm_lifecycle_event: 'tidegate', ...env })
  const result = Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]).then(
    ([stdout, stderr, [code]]): CliResult => ({ code, stdout, stderr }),
  )
  return Object.assign(child, { result })
}

/** Runs `tidegate ...args` until it exits. */
export function cli(args: string[], env: Record<string, string>): Promise<CliResult> {
  return startCli(args, env).result
}

/** Parses JSON lines, as commands print them. Ignores an incomplete last line. */
export const jsonLines = <T>(text: string): T[] =>
  text
    .split('\n')
    .filter((line) => line.endsWith('}'))
    .map((line): T => JSON.parse(line))

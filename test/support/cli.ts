import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { programCommand } from './program.ts'
import { root } from './test-projects.ts'

export interface CliResult {
  code: number | null
  stdout: string
  stderr: string
}

/** Starts `tidegate ...args` as a process of its own. */
export function startCli(
  args: string[],
  env: Record<string, string>,
): ChildProcess & { result: Promise<CliResult> } {
  // As `npm run tidegate` does: without the dashes node takes a --env-file of ours for one of its own.
  const [node, main] = programCommand(env)
  const child = spawn(node, ['--', main, ...args], {
    cwd: root,
    env: { ...process.env, npm_lifecycle_event: 'tidegate', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const result = Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]).then(
    ([stdout, stderr, [code]]): CliResult => ({ code, stdout, stderr }),
  )
  return Object.assign(child, { result })
}

/** Runs `tidegate ...args` to its end. */
export function cli(args: string[], env: Record<string, string>): Promise<CliResult> {
  return startCli(args, env).result
}

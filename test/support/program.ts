import { type ChildProcessByStdio, spawn } from 'node:child_process'
import path from 'node:path'
import type { Readable } from 'node:stream'
import { inject } from 'vitest'
import { root } from './test-projects.ts'

/**
 * Returns node and the program: its own files with FROM_SOURCE in `env`, that of another clone with its main file as
 * PROGRAM.
 */
export function programCommand(env: Record<string, string> = {}): [node: string, main: string] {
  const main =
    env.PROGRAM ?? (env.FROM_SOURCE ? path.join(root, 'services/cli/main.ts') : inject('program'))
  return [path.join(root, 'node_modules/.bin/node'), main]
}

/** Starts `tidegate ...args` in a separate process, on a free port unless `env` has a PORT. */
export function spawnProgram(
  args: string[],
  env: Record<string, string> = {},
): ChildProcessByStdio<null, Readable, Readable> {
  const [node, main] = programCommand(env)
  // Like `npm run tidegate`: without the dashes, Node would interpret --env-file as its own option.
  return spawn(node, ['--', main, ...args], {
    cwd: root,
    env: { ...process.env, PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

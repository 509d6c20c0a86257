import { type ChildProcessByStdio, spawn } from 'node:child_process'
import path from 'node:path'
import type { Readable } from 'node:stream'
import { inject } from 'vitest'
import { root } from './test-projects.ts'

/**
 * Starts `tidegate ...args` as a process of its own, on a free port unless `env` has a PORT; from its own files with
 * FROM_SOURCE in `env`, and from another clone with its main file as PROGRAM.
 */
export function spawnProgram(
  args: string[],
  env: Record<string, string> = {},
): ChildProcessByStdio<null, Readable, Readable> {
  const main = env.PROGRAM ?? (env.FROM_SOURCE ? path.join(root, 'services/cli/main.ts') : inject('program'))
  // As `npm run tidegate` does: without the dashes node takes a --env-file of ours for one of its own.
  return spawn(path.join(root, 'node_modules/.bin/node'), ['--', main, ...args], {
    cwd: root,
    env: { ...process.env, PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

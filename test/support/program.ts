import path from 'node:path'
import { inject } from 'vitest'
import { root } from './test-projects.ts'

/**
 * The executable and its first argument, which start `tidegate`; from its own files with FROM_SOURCE in `env`, and from
 * another clone with its main file as PROGRAM.
 */
export function programCommand(env: Record<string, string> = {}): [node: string, main: string] {
  const main = env.PROGRAM ?? (env.FROM_SOURCE ? path.join(root, 'services/cli/main.ts') : inject('program'))
  return [path.join(root, 'node_modules/.bin/node'), main]
}

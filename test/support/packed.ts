import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Returns environment variables without this project's. `node`: folder of another Node. */
export function elsewhere(node = path.dirname(process.execPath)): NodeJS.ProcessEnv {
  const ours =
    /^npm_(?!config_)|^npm_config_(?:local|global)_prefix$|^(?:INIT_CWD|NODE|NODE_OPTIONS)$/
  const kept = Object.entries(process.env).filter(([name]) => !ours.test(name))
  const PATH = [node, process.env.PATH].join(path.delimiter)
  return { ...Object.fromEntries(kept), PATH }
}

export interface Elsewhere {
  folder: string
  env?: NodeJS.ProcessEnv
}

/** Runs a command in the folder. Rejects with its output if it fails. */
export async function runThere({ folder, env }: Elsewhere, command: string, ...args: string[]) {
  const options = { cwd: folder, env: { ...elsewhere(), ...env }, maxBuffer: 64 * 1024 * 1024 }
  return run(command, args, options).catch(({ message, stdout, stderr }) => {
    throw new Error(`${message}\n${stdout}\n${stderr}`)
  })
}

/** Installs into the folder. Creates the folder and its package.json if missing. */
export async function installThere(folder: string, ...args: string[]): Promise<void> {
  await mkdir(folder, { recursive: true })
  const manifest = path.join(folder, 'package.json')
  if (!existsSync(manifest)) await writeFile(manifest, '{ "private": true, "type": "module" }')
  await runThere({ folder }, 'npm', 'install', '--no-audit', '--no-fund', ...args)
}

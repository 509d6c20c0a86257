import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'

/** Folders outside of an unprivileged user's PATH that can have programs for tests. */
const more = ['/usr/local/sbin', '/usr/sbin', '/sbin']

/** Returns the path of a program in PATH. */
export function findProgram(name: string): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(path.delimiter), ...more]
  return folders.map((folder) => path.join(folder, name)).find((file) => existsSync(file))
}

export const hasProgram = (name: string): boolean => findProgram(name) !== undefined

/** Runs a Debian package command noninteractively and returns its English output. */
export async function runCommand(command: string, args: string[]): Promise<string> {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' }
  return (await promisify(execFile)(command, args, { env, maxBuffer: 64 * 1024 * 1024 })).stdout
}

/** Returns true if the command exits with 0. */
export const works = (command: string, ...args: string[]): Promise<boolean> =>
  promisify(execFile)(command, args, { timeout: 10_000 }).then(
    () => true,
    () => false,
  )

import { execFile } from 'node:child_process'
import { statSync } from 'node:fs'
import { readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const prefix = 'tidegate-test-run-'

/** Path prefix of a test run's server data. It contains the process id of the run. */
export const runFolderPrefix = path.join(tmpdir(), `${prefix}${process.pid}-`)

/** Stops the servers and deletes the data of killed test runs. */
export async function sweepDeadRuns(): Promise<void> {
  const dead = (await readdir(tmpdir())).filter(
    (name) => name.startsWith(prefix) && !isAlive(runOf(name)),
  )
  const folders = dead.filter(isOurs)
  if (folders.length === 0) return
  const { stdout } = await run('ps', ['-eo', 'pid=,args='], { maxBuffer: 16 * 1024 * 1024 })
  for (const folder of folders) {
    const servers = stdout.split('\n').filter((line) => line.includes(folder))
    for (const server of servers) end(Number.parseInt(server, 10))
    await unmount(path.join(tmpdir(), folder))
    await rm(path.join(tmpdir(), folder), { recursive: true, force: true })
  }
}

/** Unmounts file systems that containers of a killed Docker daemon left. */
async function unmount(folder: string): Promise<void> {
  const mounts = (await readFile('/proc/self/mounts', 'utf8').catch(() => '')).split('\n')
  const within = mounts
    .map((line) => line.split(' ')[1] ?? '')
    .filter((place) => place.startsWith(folder))
  for (const place of within.toReversed()) await run('umount', ['--lazy', place])
}

/** Returns true if this user may remove the folder. */
function isOurs(folder: string): boolean {
  const uid = process.getuid?.()
  return uid === 0 || statSync(path.join(tmpdir(), folder), { throwIfNoEntry: false })?.uid === uid
}

const runOf = (folder: string): number => Number.parseInt(folder.slice(prefix.length), 10)

/** Returns true if a process with the id exists. */
export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

function end(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has exited.
  }
}

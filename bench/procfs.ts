import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'

// Reads Linux's /proc (proc(5)), so that measured programs need no code for it.
const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK']).toString())

/** Returns the microseconds of CPU time, user and system, that the process has used; 0 if it has exited. */
export function cpuMicros(pid: number): number {
  const fields = statFields(pid)
  return micros(Number(fields[11] ?? 0) + Number(fields[12] ?? 0))
}

/** Returns the same for the process and its descendants, including exited ones. */
export function treeCpuMicros(root: number): number {
  return processTree(root).reduce((sum, pid) => sum + cpuMicros(pid) + endedCpuMicros(pid), 0)
}

/** Returns the same for exited children of the process. */
export function endedCpuMicros(pid = process.pid): number {
  const fields = statFields(pid)
  return micros(Number(fields[13] ?? 0) + Number(fields[14] ?? 0))
}

function micros(ticks: number): number {
  return (ticks / ticksPerSecond) * 1e6
}

/** Returns the fields of /proc/PID/stat from the third. The second, the name, may contain spaces. */
function statFields(pid: number): string[] {
  const text = readProc(pid, 'stat')
  return text.slice(text.lastIndexOf(')') + 2).split(' ')
}

function processTree(root: number): number[] {
  const parents = new Map(allPids().map((pid) => [pid, Number(statFields(pid)[1] ?? 0)]))
  const isBelow = (pid: number): boolean => {
    for (let at: number | undefined = pid; at; at = parents.get(at)) if (at === root) return true
    return false
  }
  return [...parents.keys()].filter(isBelow)
}

function allPids(): number[] {
  return readdirSync('/proc').map(Number).filter(Number.isInteger)
}

/** Returns the current resident memory and its peak since the last `resetPeak`, in bytes. */
export function memory(pid: number): { resident: number; peak: number } {
  const status = readProc(pid, 'status')
  const kilobytes = (name: string) =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0)
  return { resident: kilobytes('VmRSS') * 1024, peak: kilobytes('VmHWM') * 1024 }
}

/** Resets the process's peak memory to its current use. */
export function resetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
}

function readProc(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8')
  } catch {
    return ''
  }
}

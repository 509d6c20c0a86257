import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { root } from '../support/test-projects.ts'

describe('make run', () => {
  it('prints the URLs, takes requests, and ends at Ctrl-C', async () => {
    const dataDir = await mkdtemp(path.join(tmpdir(), 'tidegate-make-'))
    // The packages are installed: this very test runs from them.
    const args = ['--assume-old', 'node_modules/.package-lock.json', 'run']
    const env = { ...process.env, DATA_DIR: dataDir, PORT: '0', LOG_LEVEL: 'warn' }
    // A process group of its own, as a terminal gives it.
    const make = spawn('make', args, { cwd: root, env, detached: true })
    const lines: string[] = []
    createInterface(make.stderr).on('line', (line) => lines.push(line))
    for await (const line of createInterface(make.stdout)) {
      lines.push(line)
      if (line.includes('Credentials')) break
    }
    expect(lines.join('\n')).toMatch(/^ {2}Demo +http\S+\/demo$/m)
    const demo = /http\S+\/demo$/m.exec(lines.join('\n'))?.[0] ?? ''
    expect((await fetch(demo)).status).toBe(200)
    const exited = once(make, 'exit')
    process.kill(-(make.pid ?? 0), 'SIGINT')
    await exited
    await eventually(() => expect(fetch(demo)).rejects.toThrow(), { timeoutMs: 15_000 })
    const database = path.join(dataDir, 'postgres', 'postmaster.pid')
    await eventually(() => expect(stat(database)).rejects.toThrow('ENOENT'), { timeoutMs: 15_000 })
    await rm(dataDir, { recursive: true, force: true, maxRetries: 20, retryDelay: 500 })
  }, 90_000)
})

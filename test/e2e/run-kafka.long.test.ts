import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { expect } from 'vitest'
import { cli } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { root } from '../support/test-projects.ts'

const { describe, it } = needs('kafka-jars')

/** Starts `make run-kafka` in a process group of its own, as a terminal does, and waits until it is ready. */
async function start(dataDir: string): Promise<{ interrupt(): Promise<void> }> {
  const args = ['--assume-old', 'node_modules/.package-lock.json', 'run-kafka']
  const env = { ...process.env, DATA_DIR: dataDir, PORT: '0', LOG_LEVEL: 'warn' }
  const make = spawn('make', args, {
    cwd: root,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  for await (const line of createInterface(make.stdout)) {
    if (line.includes('Credentials')) break
  }
  return {
    async interrupt() {
      const closed = once(make, 'close')
      process.kill(-(make.pid ?? 0), 'SIGINT')
      make.stdout.resume()
      // Once nobody has its output open any more: the server and the program that started the broker, too.
      await closed
    },
  }
}

async function sessionsOf(dataDir: string): Promise<number> {
  const text = await readFile(path.join(dataDir, 'credentials.json'), 'utf8')
  const { base_url, live }: { base_url: string; live: { secret_key: string } } = JSON.parse(text)
  const headers = { authorization: `Bearer ${live.secret_key}` }
  const answer = await fetch(`${base_url}/v1/sessions`, { headers })
  const { data }: { data: unknown[] } = JSON.parse(await answer.text())
  return data.length
}

describe('make run-kafka', () => {
  it('starts a server on a Kafka of its own, and both have their data at the next start', async () => {
    const dataDir = await mkdtemp(path.join(tmpdir(), 'tidegate-run-kafka-'))
    try {
      const first = await start(dataDir)
      const load = ['simulate', '--sessions', '3', '--json']
      expect(await cli(load, { DATA_DIR: dataDir })).toMatchObject({ code: 0, stderr: '' })
      await first.interrupt()
      const second = await start(dataDir)
      expect(await sessionsOf(dataDir)).toBe(3)
      expect(await cli(load, { DATA_DIR: dataDir })).toMatchObject({ code: 0, stderr: '' })
      expect(await sessionsOf(dataDir)).toBe(6)
      await second.interrupt()
    } finally {
      await rm(dataDir, { recursive: true, force: true, maxRetries: 20, retryDelay: 500 })
    }
  }, 180_000)
})

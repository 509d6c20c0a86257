import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, stat } from 'node:fs/promises'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { expect, it } from 'vitest'
import { cli } from '../support/cli.ts'
import { eventually } from '../support/eventually.ts'
import { needs } from '../support/needs.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { root } from '../support/test-projects.ts'

const patient = { timeoutMs: 15_000 }

/** Starts the target in a process group of its own, as a terminal does, and waits until it is ready. */
async function startMake(target: string, dataDir: string) {
  // The packages are installed: this very test runs from them.
  const args = ['--assume-old', 'node_modules/.package-lock.json', target]
  const env = { ...process.env, DATA_DIR: dataDir, PORT: '0', LOG_LEVEL: 'warn' }
  const make = spawn('make', args, {
    cwd: root,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let printed = ''
  for await (const line of createInterface(make.stdout)) {
    printed += `${line}\n`
    if (line.includes('Credentials')) break
  }
  return {
    printed,
    /** Ctrl-C. Resolves once no process of the group has its output open any more. */
    async interrupt(): Promise<void> {
      const closed = once(make, 'close')
      process.kill(-(make.pid ?? 0), 'SIGINT')
      make.stdout.resume()
      await closed
    },
  }
}

const dataDir = temporaryFolder('make-run')

it('make run prints the URLs, takes requests, and ends at Ctrl-C', async () => {
  const run = await startMake('run', dataDir)
  const [, demo = ''] = /^ {2}Demo +(http\S+\/demo)$/m.exec(run.printed) ?? []
  expect((await fetch(demo)).status).toBe(200)
  await run.interrupt()
  await eventually(() => expect(fetch(demo)).rejects.toThrow(), patient)
  const database = path.join(dataDir, 'postgres', 'postmaster.pid')
  await eventually(() => expect(stat(database)).rejects.toThrow('ENOENT'), patient)
}, 90_000)

needs('kafka-jars').describe('make run-kafka', () => {
  const folder = temporaryFolder('run-kafka')

  async function countSessions(): Promise<number> {
    const text = await readFile(path.join(folder, 'credentials.json'), 'utf8')
    const { base_url, live }: { base_url: string; live: { secret_key: string } } = JSON.parse(text)
    const headers = { authorization: `Bearer ${live.secret_key}` }
    const answer = await fetch(`${base_url}/v1/sessions`, { headers })
    const { data }: { data: unknown[] } = JSON.parse(await answer.text())
    return data.length
  }

  it('starts a server on a Kafka of its own, and both have their data at the next start', async () => {
    const load = ['simulate', '--sessions', '3', '--json']
    const first = await startMake('run-kafka', folder)
    expect(await cli(load, { DATA_DIR: folder })).toMatchObject({ code: 0, stderr: '' })
    await first.interrupt()
    const second = await startMake('run-kafka', folder)
    expect(await countSessions()).toBe(3)
    expect(await cli(load, { DATA_DIR: folder })).toMatchObject({ code: 0, stderr: '' })
    expect(await countSessions()).toBe(6)
    await second.interrupt()
  }, 180_000)
})

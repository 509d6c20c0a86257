import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { findDocker } from './docker.ts'
import { endChild } from './end-child.ts'
import { CannotBe } from './needs/cannot-be.ts'
import { runFolderPrefix } from './sweep.ts'

/**
 * Starts a Docker daemon for the test run. Requires root. It does not change the machine's network or firewall; only
 * builds have a network, that of the host.
 */
export async function startDockerDaemon(): Promise<() => Promise<void>> {
  if (process.getuid?.() !== 0)
    throw new Error('no Docker daemon answers, and only root may start one')
  const folder = await mkdtemp(`${runFolderPrefix}docker-`)
  const inFolder = (name: string) => path.join(folder, name)
  const places = ['data-root', 'exec-root', 'pidfile'].map((name) => `--${name}=${inFolder(name)}`)
  const host = `unix://${inFolder('socket')}`
  const alone = ['--bridge=none', '--iptables=false', '--ip6tables=false']
  const daemon = spawn('dockerd', [...places, ...alone, `--host=${host}`], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const lines: string[] = []
  daemon.stderr
    .setEncoding('utf8')
    .on('data', (text: string) => lines.push(...text.split('\n').filter(Boolean)))
  const stop = async () => {
    await endChild(daemon)
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  process.env.TEST_DOCKER_HOST = host
  if (await becomesReady(daemon)) return stop
  delete process.env.TEST_DOCKER_HOST
  await stop()
  // Usually a kernel without support for containers.
  throw new CannotBe(`dockerd does not run here: ${lines.at(-1) ?? 'it says nothing'}`)
}

const startTimeoutMs = 60_000

/** Waits until the daemon responds. Returns false if it exits or times out. */
async function becomesReady(daemon: ChildProcess): Promise<boolean> {
  const last = performance.now() + startTimeoutMs
  while (daemon.exitCode === null && performance.now() < last) {
    if (await findDocker()) return true
    await delay(100)
  }
  return false
}

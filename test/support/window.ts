import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { promisify } from 'node:util'
import { displayNumber } from '../../bench/detection/desktop.ts'
import { chromiumFile, type Profile, quietFlags } from './chromium.ts'
import { endChild } from './end-child.ts'
import { eventually } from './eventually.ts'

const run = promisify(execFile)

export const windowSize = { width: 1280, height: 960 }

export interface Desktop {
  /** Opens a browser window without a driver, for mouse and keyboard input. */
  openWindow(url: string, profile: Profile): Promise<void>
  /** Runs xdotool with these arguments, for example `['mousemove', '10', '20', 'sleep', '0.1', 'click', '1']`. */
  input(words: string[]): Promise<void>
  close(): Promise<void>
}

/** Opens a virtual screen (Xvfb). */
export async function openDesktop(): Promise<Desktop> {
  const screen = spawn(
    'Xvfb',
    ['-displayfd', '3', '-screen', '0', '1400x1050x24', '-nolisten', 'tcp'],
    {
      stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
    },
  )
  const env = { ...process.env, DISPLAY: `:${await displayNumber(screen)}` }
  const browsers: ChildProcess[] = []
  const input = async (words: string[]) => {
    await run('xdotool', words, { env })
  }
  return {
    async openWindow(url, profile) {
      const { width, height } = windowSize
      const flags = [...quietFlags, `--window-size=${width},${height}`, '--window-position=40,30']
      const args = [...flags, `--user-data-dir=${profile.dir}`, url]
      browsers.push(spawn(chromiumFile(), args, { env, stdio: 'ignore' }))
      // Chromium first opens and closes other windows; xdotool fails if one disappears meanwhile.
      const focus = () => input(['search', '--onlyvisible', '--class', 'chrom', 'windowfocus'])
      await eventually(focus, { timeoutMs: 30_000, intervalMs: 200 })
    },
    input,
    async close() {
      for (const browser of browsers) await endChild(browser)
      await endChild(screen)
    },
  }
}

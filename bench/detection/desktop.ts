import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import path from 'node:path'
import type { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { endChild } from '../../test/support/end-child.ts'

const run = promisify(execFile)

export interface Rectangle {
  x: number
  y: number
  width: number
  height: number
}

/** Virtual screen of 1920x1080 with a window manager. */
export interface Desktop {
  /** Environment variables with which a program opens its windows there. */
  env: Record<string, string>
  /** Runs xdotool with these arguments. */
  input(words: string[], signal: AbortSignal): Promise<void>
  /** Returns the largest visible window of the class; undefined if there is none. */
  window(windowClass: string): Promise<Rectangle | undefined>
  close(): Promise<void>
}

/** Debian packages of the programs that cases start. */
const packages: Record<string, string> = {
  Xvfb: 'xvfb',
  xdotool: 'xdotool',
  xprop: 'x11-utils',
  openbox: 'openbox',
  chromium: 'chromium',
  chromedriver: 'chromium-driver',
  'firefox-esr': 'firefox-esr',
  WebKitWebDriver: 'webkit2gtk-driver',
  qutebrowser: 'qutebrowser',
  Xvnc: 'tigervnc-standalone-server',
  xtigervncviewer: 'tigervnc-viewer',
  weston: 'weston',
}

/** Throws with the missing packages of all programs that cases start, so that no run is incomplete. */
export function findAllPrograms(): void {
  const missing = Object.keys(packages).filter((name) => !pathOf(name))
  const wanted = missing.map((name) => packages[name]).join(' ')
  if (wanted !== '') throw new Error(`missing: ${missing.join(', ')}; apt-get install ${wanted}`)
}

/** Returns the path of the program. Throws with the Debian package if it is missing. */
export function findProgram(name: string): string {
  const found = pathOf(name)
  if (!found) throw new Error(`there is no ${name}: apt-get install ${packages[name] ?? name}`)
  return found
}

function pathOf(name: string): string | undefined {
  const folders = (process.env.PATH ?? '').split(':')
  return folders.map((folder) => path.join(folder, name)).find((file) => existsSync(file))
}

const virtual = () => [findProgram('Xvfb'), '-screen', '0', '1920x1080x24', '-nolisten', 'tcp']

/** Opens a desktop. The arguments are the command of an X server. */
export async function openDesktop([server = '', ...own] = virtual()): Promise<Desktop> {
  const xdotool = findProgram('xdotool')
  const args = ['-displayfd', '3', ...own]
  const screen = spawn(server, args, { stdio: ['ignore', 'ignore', 'ignore', 'pipe'] })
  const env = { DISPLAY: `:${await displayNumber(screen)}` }
  const options = { env: { ...process.env, ...env } }
  const manager = spawn(findProgram('openbox'), ['--sm-disable'], { ...options, stdio: 'ignore' })
  return {
    env,
    async input(words, signal) {
      await run(xdotool, words, { ...options, signal })
    },
    async window(windowClass) {
      const search = ['search', '--onlyvisible', '--class', windowClass]
      const found = await run(xdotool, search, options).catch(() => ({ stdout: '' }))
      const shapes = await Promise.all(found.stdout.split('\n').filter(Boolean).map(geometry))
      // Browsers also have small helper windows.
      return shapes.filter((shape) => shape !== undefined).sort((a, b) => b.width - a.width)[0]
    },
    async close() {
      await endChild(manager)
      await endChild(screen)
    },
  }

  async function geometry(id: string): Promise<Rectangle | undefined> {
    const said = await run(xdotool, ['getwindowgeometry', '--shell', id], options).catch(
      () => undefined,
    )
    const number = (name: string) =>
      Number(new RegExp(`^${name}=(-?\\d+)$`, 'm').exec(said?.stdout ?? '')?.[1])
    if (!(number('WIDTH') > 200)) return undefined
    const { left, top } = await frame(id)
    return {
      x: number('X') - left,
      y: number('Y') - top,
      width: number('WIDTH'),
      height: number('HEIGHT'),
    }
  }

  /** Returns the size of the window manager's frame, which xdotool counts twice in a window's position. */
  async function frame(id: string): Promise<{ left: number; top: number }> {
    const said = await run(findProgram('xprop'), ['-id', id, '_NET_FRAME_EXTENTS'], options)
    const [left = 0, , top = 0] = said.stdout.match(/\d+/g)?.map(Number) ?? []
    return { left, top }
  }
}

export async function displayNumber(screen: ChildProcess): Promise<string> {
  const pipe = screen.stdio[3] as Readable
  const [data] = await Promise.race([once(pipe, 'data'), once(screen, 'exit').then(() => [''])])
  const number = String(data).trim()
  if (!number) throw new Error('Xvfb ended before it had a display')
  return number
}

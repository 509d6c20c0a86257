import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../../infra/local/free-port.ts'
import { endChild } from '../../test/support/end-child.ts'
import { type Desktop, findProgram, openDesktop } from './desktop.ts'

/** `remote`: a desktop without a GPU, used over VNC. `wayland`: a compositor with one window. */
export type Screen = 'remote' | 'wayland'

interface Opening {
  /** Shows it, and its mouse and keyboard are used. */
  desktop: Desktop
  folder: string
  signal: AbortSignal
}

export function openScreen(screen: Screen, opening: Opening): Promise<Desktop> {
  return screen === 'remote' ? openRemote(opening) : openWayland(opening)
}

async function openRemote({ desktop, signal }: Opening): Promise<Desktop> {
  const port = await freePort()
  const own = ['-rfbport', `${port}`, '-SecurityTypes', 'None', '-localhost']
  const inner = await openDesktop([
    findProgram('Xvnc'),
    ...own,
    '-geometry',
    '1920x1080',
    '-depth',
    '24',
  ])
  const viewing = [`127.0.0.1::${port}`, '-FullScreen', '-RemoteResize=0', '-AlertOnFatalError=0']
  const options = { env: { ...process.env, ...desktop.env }, stdio: 'ignore' } as const
  const viewer = spawn(findProgram('xtigervncviewer'), viewing, options)
  while (!(await desktop.window('TigerVNC'))) await delay(200, undefined, { signal })
  return {
    ...inner,
    input: desktop.input,
    async close() {
      await endChild(viewer)
      await inner.close()
    },
  }
}

async function openWayland({ desktop, folder, signal }: Opening): Promise<Desktop> {
  const socket = 'wayland-eval'
  const own = [
    '--backend=x11-backend.so',
    '--shell=kiosk-shell.so',
    '--use-pixman',
    `--socket=${socket}`,
  ]
  const env = { ...process.env, ...desktop.env, XDG_RUNTIME_DIR: folder }
  const options = { env, stdio: 'ignore' } as const
  const compositor = spawn(findProgram('weston'), [...own, '--width=1500', '--height=980'], options)
  while (!existsSync(path.join(folder, socket))) await delay(100, undefined, { signal })
  return {
    env: { WAYLAND_DISPLAY: socket, XDG_RUNTIME_DIR: folder, DISPLAY: '' },
    input: desktop.input,
    window: () => desktop.window('weston'),
    close: () => endChild(compositor),
  }
}

import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { findProgram } from './desktop.ts'

const here = import.meta.dirname
export const miniBrowser = ['4.1', '4.0', '6.0']
  .map((version) => `/usr/lib/x86_64-linux-gnu/webkit2gtk-${version}/MiniBrowser`)
  .find((file) => existsSync(file))

/** Returns the pinned version of an npm or PyPI package; '' for other names. */
export function versionOf(name: string): string {
  const { dependencies }: { dependencies: Record<string, string> } = JSON.parse(
    read('package.json'),
  )
  const python = new RegExp(`^${name.replace('-', '[-_]')}==(.*)$`, 'im').exec(
    read('requirements.txt'),
  )?.[1]
  return dependencies[name] ?? python ?? ''
}

/** Returns the version that each browser on this machine reports, also for missing ones. */
export function browserVersions(): Record<string, string> {
  return {
    Chromium: said('chromium'),
    Firefox: said('firefox-esr'),
    WebKitGTK: packageVersion('libwebkit2gtk-4.1-0'),
    QtWebEngine: packageVersion('libqt5webengine5'),
  }
}

function said(program: string): string {
  try {
    return execFileSync(findProgram(program), ['--version'], { encoding: 'utf8' }).trim()
  } catch (error) {
    return String(error)
  }
}

function packageVersion(name: string): string {
  const args = ['-W', '-f', '$' + '{Version}', name]
  try {
    return execFileSync('dpkg-query', args, {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
  } catch {
    return `${name} is not installed`
  }
}

function read(name: string): string {
  return readFileSync(path.join(here, name), 'utf8')
}

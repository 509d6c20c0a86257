import type { Snapshot } from '../../../../schemas/observations.ts'
import { descriptorOf, ownNames, realmWindow } from '../realm.ts'
import { member, tryOrNull, yieldToPage } from '../support.ts'
import { trusted } from '../trusted.ts'
import { examineInSlices, isForeign } from './natives.ts'
import { findForeignPrimitives, primitiveCount } from './primitives.ts'

// Interfaces with the members that spoofing tools replace.
const watchedMembers =
  `Navigator webdriver userAgent platform vendor plugins mimeTypes language languages
  Navigator hardwareConcurrency deviceMemory maxTouchPoints permissions connection
  Permissions query
  Screen width height availWidth availHeight colorDepth
  HTMLCanvasElement toDataURL toBlob getContext
  CanvasRenderingContext2D getImageData measureText fillText
  WebGLRenderingContext getParameter getExtension
  WebGL2RenderingContext getParameter
  AudioBuffer getChannelData copyFromChannel
  Date getTimezoneOffset
  Element getBoundingClientRect attachShadow
  HTMLIFrameElement contentWindow
  HTMLMediaElement canPlayType
  MediaDevices enumerateDevices
  SpeechSynthesis getVoices`
    .split('\n')
    .map((line) => line.trim().split(' '))

/** Collects signs of spoofed APIs. The caller adds those that other collectors find. */
export async function collectTamper(): Promise<
  Omit<Snapshot['tamper'], 'webgl_parameter_mismatch' | 'realm_differences' | 'timezone_mismatch'>
> {
  const primitives = await findForeignPrimitives()
  const patched = await patchedFunctions().catch(() => null)
  return {
    // Null if nothing was examined, which an empty list of findings cannot tell.
    examined:
      patched && primitiveCount + watchedMembers.reduce((sum, line) => sum + line.length - 1, 0),
    realm_available: realmWindow !== null,
    foreign_primitives: primitives,
    patched_functions: patched ?? [],
    navigator_own_properties: tryOrNull(() => ownNames(navigator)) ?? [],
    iframe_srcdoc_proxy: tryOrNull(detachedFrameHasWindow),
    chrome_runtime_faked: tryOrNull(isChromeRuntimeFaked),
    brave: tryOrNull(() => member(navigator, 'brave') !== undefined),
    timer_precision_reduced: await isTimerCoarse().catch(() => null),
  }
}

async function patchedFunctions(): Promise<string[]> {
  const found: string[] = []
  await examineInSlices(watchedMembers, Error, ([owner = '', ...names]) => {
    found.push(...patchedOf(owner, names))
  })
  return found
}

function patchedOf(owner: string, names: string[]): string[] {
  const prototype = member(member(window, owner), 'prototype')
  if (typeof prototype !== 'object' && typeof prototype !== 'function') return []
  return names.filter((name) => isPatched(prototype, name)).map((name) => label(owner, name))
}

function label(owner: string, name: string): string {
  return owner === 'Navigator' ? `navigator.${name}` : `${owner}.${name}`
}

function isPatched(prototype: object | null, name: string): boolean {
  const descriptor = prototype && descriptorOf(prototype, name)
  // A data property in place of a native getter also counts as patched.
  return descriptor ? isForeign({ code: descriptor.get ?? descriptor.value, name }) : false
}

// Detached frames have no window, unless a script fakes one.
function detachedFrameHasWindow(): boolean {
  const frame = document.createElement('iframe')
  frame.srcdoc = trusted.createHTML('.')
  return frame.contentWindow !== null
}

// Native extension functions have no `prototype`; imitations often do.
function isChromeRuntimeFaked(): boolean | null {
  const runtime = member(member(window, 'chrome'), 'runtime')
  if (runtime === undefined) return member(window, 'chrome') === undefined ? null : false
  return ['sendMessage', 'connect'].some((name) => {
    const code = member(runtime, name)
    return typeof code === 'function' && descriptorOf(code, 'prototype') !== undefined
  })
}

/** Returns true if the offset of dates contradicts the time zone that the browser reports. */
export async function isTimezoneInconsistent(): Promise<boolean> {
  const now = new Date(Math.floor(Date.now() / 60_000) * 60_000)
  const zone = Intl.DateTimeFormat('en-US').resolvedOptions().timeZone
  await yieldToPage()
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
  })
  await yieldToPage()
  const parts = format.formatToParts(now)
  const part = (type: string) => Number(parts.find((item) => item.type === type)?.value)
  const wall = Date.UTC(part('year'), part('month') - 1, part('day'), part('hour'), part('minute'))
  return Math.round((now.getTime() - wall) / 60_000) !== now.getTimezoneOffset()
}

// Firefox rounds its clock to 1 ms for everyone; its privacy mode and Tor to 16.67 or 100 ms.
const coarseMs = 5
// Enough reads to see a step of 17 ms. They block the page for about as long.
const maxReads = 200_000

// Returns true if every step of the clock is far larger than a browser's default; null if no step was seen.
async function isTimerCoarse(): Promise<boolean | null> {
  // The machine may have paused during a single large step, so a second one must confirm it.
  for (let tries = 0; tries < 2; tries++) {
    const step = clockStep()
    if (step === null) return null
    if (step < coarseMs) return false
    await yieldToPage()
  }
  return true
}

function clockStep(): number | null {
  const start = performance.now()
  for (let reads = 0; reads < maxReads; reads++) {
    const step = performance.now() - start
    if (step > 0) return step
  }
  return null
}

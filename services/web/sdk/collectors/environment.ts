import type { Snapshot } from '../../../../schemas/observations.ts'
import { type AskBrowser, member, tryOrNull } from '../support.ts'

export async function collectEnvironment(ask: AskBrowser): Promise<Snapshot['environment']> {
  return {
    ...windowSizes(),
    ...screenSizes(),
    timezone: tryOrNull(() => Intl.DateTimeFormat().resolvedOptions().timeZone),
    timezone_offset_min: tryOrNull(() => new Date().getTimezoneOffset()),
    secure_context: tryOrNull(() => isSecureContext),
    has_focus: tryOrNull(() => document.hasFocus()),
    pointer_coarse: tryOrNull(() => matchMedia('(pointer: coarse)').matches),
    pointing_device: tryOrNull(() => !matchMedia('(any-pointer: none)').matches),
    has_chrome_object: tryOrNull(() => 'chrome' in window),
    notification_permission: tryOrNull(() => Notification.permission),
    permissions_query_state: await ask(notificationState),
  }
}

async function notificationState(): Promise<string> {
  return (await navigator.permissions.query({ name: 'notifications' })).state
}

function windowSizes() {
  return {
    outer_width: tryOrNull(() => outerWidth),
    outer_height: tryOrNull(() => outerHeight),
    inner_width: tryOrNull(() => innerWidth),
    inner_height: tryOrNull(() => innerHeight),
  }
}

function screenSizes() {
  return {
    screen_width: tryOrNull(() => screen.width),
    screen_height: tryOrNull(() => screen.height),
    avail_width: tryOrNull(() => screen.availWidth),
    avail_height: tryOrNull(() => screen.availHeight),
    color_depth: tryOrNull(() => screen.colorDepth),
    pixel_ratio: tryOrNull(() => devicePixelRatio),
    orientation_type: tryOrNull(() => screen.orientation.type),
  }
}

export function collectEngine(): Snapshot['engine'] {
  const message = nullPropertyMessage()
  return {
    eval_length: tryOrNull(() => String(member(globalThis, 'eval')).length),
    null_property_message: message,
    name: message && engineName(message),
  }
}

export function isV8(): boolean {
  return engineName(nullPropertyMessage() ?? '') === 'V8'
}

let readMessage: string | null = null

// Cached, because engines parse the function again to create the message.
function nullPropertyMessage(): string | null {
  readMessage ??= provokeMessage()
  return readMessage
}

function provokeMessage(): string | null {
  try {
    const nothing: { x?: unknown } = JSON.parse('null')
    return String(nothing.x)
  } catch (error) {
    return error instanceof Error ? error.message : null
  }
}

function engineName(message: string): string | null {
  if (message.startsWith('Cannot read propert')) return 'V8'
  if (message.includes("can't access property") || message.endsWith('is null'))
    return 'SpiderMonkey'
  return message.includes('is not an object') ? 'JavaScriptCore' : null
}

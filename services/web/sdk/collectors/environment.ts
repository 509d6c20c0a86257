import type { Snapshot } from '../../../../schemas/observations.ts'
import { type AskBrowser, member, readOrNull } from '../support.ts'

export async function collectEnvironment(ask: AskBrowser): Promise<Snapshot['environment']> {
  return {
    ...windowSizes(),
    ...screenSizes(),
    timezone: readOrNull(() => Intl.DateTimeFormat().resolvedOptions().timeZone),
    timezone_offset_min: readOrNull(() => new Date().getTimezoneOffset()),
    secure_context: readOrNull(() => isSecureContext),
    has_focus: readOrNull(() => document.hasFocus()),
    pointer_coarse: readOrNull(() => matchMedia('(pointer: coarse)').matches),
    pointing_device: readOrNull(() => !matchMedia('(any-pointer: none)').matches),
    has_chrome_object: readOrNull(() => 'chrome' in window),
    notification_permission: readOrNull(() => Notification.permission),
    permissions_query_state: await ask(notificationState),
  }
}

async function notificationState(): Promise<string> {
  return (await navigator.permissions.query({ name: 'notifications' })).state
}

function windowSizes() {
  return {
    outer_width: readOrNull(() => outerWidth),
    outer_height: readOrNull(() => outerHeight),
    inner_width: readOrNull(() => innerWidth),
    inner_height: readOrNull(() => innerHeight),
  }
}

function screenSizes() {
  return {
    screen_width: readOrNull(() => screen.width),
    screen_height: readOrNull(() => screen.height),
    avail_width: readOrNull(() => screen.availWidth),
    avail_height: readOrNull(() => screen.availHeight),
    color_depth: readOrNull(() => screen.colorDepth),
    pixel_ratio: readOrNull(() => devicePixelRatio),
    orientation_type: readOrNull(() => screen.orientation.type),
  }
}

export function collectEngine(): Snapshot['engine'] {
  const message = nullPropertyMessage()
  return {
    eval_length: readOrNull(() => String(member(globalThis, 'eval')).length),
    null_property_message: message,
    name: message && engineName(message),
  }
}

export function isV8(): boolean {
  return engineName(nullPropertyMessage() ?? '') === 'V8'
}

let readMessage: string | null = null

// Cached, because engines re-parse the function to create the message.
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

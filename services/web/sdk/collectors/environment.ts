import type { Snapshot } from '../../../../schemas/observations.ts'
import { attempt, within } from '../support.ts'

type Environment = Snapshot['environment']

/** The window, the screen, the clock's zone, and what the page may ask the person for. */
export async function collectEnvironment(): Promise<Environment> {
  return {
    ...windowSizes(),
    ...screenSizes(),
    ...locale(),
    has_focus: attempt(() => document.hasFocus()),
    pointer_coarse: attempt(() => matchMedia('(pointer: coarse)').matches),
    has_chrome_object: attempt(() => 'chrome' in window),
    notification_permission: attempt(() => Notification.permission),
    permissions_query_state: await within(300, notificationState),
  }
}

async function notificationState(): Promise<string> {
  const status = await navigator.permissions.query({ name: 'notifications' })
  return status.state
}

function windowSizes() {
  return {
    outer_width: attempt(() => outerWidth),
    outer_height: attempt(() => outerHeight),
    inner_width: attempt(() => innerWidth),
    inner_height: attempt(() => innerHeight),
  }
}

function screenSizes() {
  return {
    screen_width: attempt(() => screen.width),
    screen_height: attempt(() => screen.height),
    avail_width: attempt(() => screen.availWidth),
    avail_height: attempt(() => screen.availHeight),
    color_depth: attempt(() => screen.colorDepth),
    pixel_ratio: attempt(() => devicePixelRatio),
    orientation_type: attempt(() => screen.orientation.type),
  }
}

function locale() {
  return {
    timezone: attempt(() => Intl.DateTimeFormat().resolvedOptions().timeZone),
    timezone_offset_min: attempt(() => new Date().getTimezoneOffset()),
  }
}

import type { Snapshot } from '../../schemas/observations.ts'

type Automation = Snapshot['automation']

/**
 * The newest snapshot, with every automation marker that an earlier one of the session showed: a driver does not
 * stop being one because the next page hides it.
 */
export function mergeSnapshot(known: Snapshot | null, next: Snapshot): Snapshot {
  return known ? { ...next, automation: mergeAutomation(known.automation, next.automation) } : next
}

function mergeAutomation(known: Automation, next: Automation): Automation {
  return {
    webdriver: either(known.webdriver, next.webdriver),
    webdriver_iframe: either(known.webdriver_iframe, next.webdriver_iframe),
    webdriver_worker: either(known.webdriver_worker, next.webdriver_worker),
    webdriver_own_property: either(known.webdriver_own_property, next.webdriver_own_property),
    cdp_runtime: either(known.cdp_runtime, next.cdp_runtime),
    sequentum: either(known.sequentum, next.sequentum),
    electron: either(known.electron, next.electron),
    globals: union(known.globals, next.globals),
    document_attributes: union(known.document_attributes, next.document_attributes),
  }
}

function either(known: boolean | null, next: boolean | null): boolean | null {
  return known || next || (next ?? known)
}

function union(known: string[], next: string[]): string[] {
  return [...new Set([...known, ...next])].slice(0, 100)
}

/** Whether two snapshots of one session cannot be of the same browser on the same machine. */
export function identityChanged(known: Snapshot | null, next: Snapshot): boolean {
  if (!known) return false
  return (
    differ(known.navigator.user_agent, next.navigator.user_agent) ||
    differ(known.navigator.platform, next.navigator.platform) ||
    differ(known.webgl.renderer, next.webgl.renderer)
  )
}

function differ(known: string | null, next: string | null): boolean {
  return known !== null && next !== null && known !== next
}

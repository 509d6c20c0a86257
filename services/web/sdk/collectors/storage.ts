import type { Snapshot } from '../../../../schemas/observations.ts'
import { attempt, within } from '../support.ts'

const probe = '__tidegate_probe'

/** Which kinds of storage work here; each is written once and cleaned up, because a setting alone can mislead. */
export async function collectStorage(): Promise<Snapshot['storage']> {
  return {
    cookies: attempt(cookiesWork) ?? false,
    local_storage: attempt(() => roundTrip(localStorage)) ?? false,
    session_storage: attempt(() => roundTrip(sessionStorage)) ?? false,
    indexed_db: (await within(800, indexedDbWorks)) ?? false,
    service_worker: attempt(() => 'serviceWorker' in navigator),
    window_name: attempt(() => typeof window.name === 'string'),
  }
}

/** Which capabilities the device and browser offer to a page. */
export async function collectCapabilities(): Promise<Snapshot['capabilities']> {
  const [authenticator, conditional] = await Promise.all([
    within(300, () => PublicKeyCredential.isUserVerifyingPlatformAuthenticatorAvailable()),
    within(300, () => PublicKeyCredential.isConditionalMediationAvailable()),
  ])
  return {
    touch: attempt(() => 'ontouchstart' in window || navigator.maxTouchPoints > 0),
    webgpu: attempt(() => 'gpu' in navigator),
    platform_authenticator: authenticator,
    conditional_mediation: conditional,
    media_devices: attempt(() => 'mediaDevices' in navigator),
    speech_synthesis: attempt(() => 'speechSynthesis' in window),
  }
}

function cookiesWork(): boolean {
  // biome-ignore-start lint/suspicious/noDocumentCookie: the Cookie Store API is not in every browser
  document.cookie = `${probe}=1; SameSite=Strict; Path=/`
  const found = document.cookie.includes(`${probe}=1`)
  document.cookie = `${probe}=; SameSite=Strict; Path=/; Max-Age=0`
  // biome-ignore-end lint/suspicious/noDocumentCookie: as above
  return found
}

function roundTrip(storage: Storage): boolean {
  storage.setItem(probe, '1')
  const found = storage.getItem(probe) === '1'
  storage.removeItem(probe)
  return found
}

function indexedDbWorks(): Promise<boolean> {
  return new Promise((resolve) => {
    const request = indexedDB.open(probe)
    request.onerror = () => resolve(false)
    request.onsuccess = () => {
      request.result.close()
      indexedDB.deleteDatabase(probe)
      resolve(true)
    }
  })
}

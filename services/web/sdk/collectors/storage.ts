import type { Snapshot } from '../../../../schemas/observations.ts'
import { type AskBrowser, readOrNull } from '../support.ts'

const probe = '__tidegate_probe'

export async function collectStorage(ask: AskBrowser): Promise<Snapshot['storage']> {
  return {
    cookies: readOrNull(cookiesWork) ?? false,
    local_storage: readOrNull(() => roundTrip(localStorage)) ?? false,
    session_storage: readOrNull(() => roundTrip(sessionStorage)) ?? false,
    indexed_db: (await ask(indexedDbWorks)) ?? false,
    service_worker: readOrNull(() => 'serviceWorker' in navigator),
    window_name: readOrNull(() => typeof window.name === 'string'),
  }
}

export async function collectCapabilities(ask: AskBrowser): Promise<Snapshot['capabilities']> {
  const [authenticator, conditional] = await Promise.all([
    ask(() => PublicKeyCredential.isUserVerifyingPlatformAuthenticatorAvailable()),
    ask(() => PublicKeyCredential.isConditionalMediationAvailable()),
  ])
  return {
    touch: readOrNull(() => 'ontouchstart' in window || navigator.maxTouchPoints > 0),
    webgpu: readOrNull(() => 'gpu' in navigator),
    platform_authenticator: authenticator,
    conditional_mediation: conditional,
    media_devices: readOrNull(() => 'mediaDevices' in navigator),
    speech_synthesis: readOrNull(() => 'speechSynthesis' in window),
  }
}

function cookiesWork(): boolean {
  // biome-ignore-start lint/suspicious/noDocumentCookie: the Cookie Store API is not in every browser
  document.cookie = `${probe}=1; SameSite=Strict; Path=/`
  const isStored = document.cookie.includes(`${probe}=1`)
  document.cookie = `${probe}=; SameSite=Strict; Path=/; Max-Age=0`
  // biome-ignore-end lint/suspicious/noDocumentCookie: as above
  return isStored
}

function roundTrip(storage: Storage): boolean {
  storage.setItem(probe, '1')
  const isStored = storage.getItem(probe) === '1'
  storage.removeItem(probe)
  return isStored
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

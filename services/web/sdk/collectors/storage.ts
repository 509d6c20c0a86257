import type { Snapshot } from '../../../../schemas/observations.ts'
import { type AskBrowser, tryOrNull } from '../support.ts'

const probe = '__tidegate_probe'

export async function collectStorage(ask: AskBrowser): Promise<Snapshot['storage']> {
  return {
    cookies: tryOrNull(cookiesWork) ?? false,
    local_storage: tryOrNull(() => canStore(localStorage)) ?? false,
    session_storage: tryOrNull(() => canStore(sessionStorage)) ?? false,
    indexed_db: (await ask(indexedDbWorks)) ?? false,
    service_worker: tryOrNull(() => 'serviceWorker' in navigator),
    window_name: tryOrNull(() => typeof window.name === 'string'),
  }
}

export async function collectCapabilities(ask: AskBrowser): Promise<Snapshot['capabilities']> {
  const [authenticator, conditional] = await Promise.all([
    ask(() => PublicKeyCredential.isUserVerifyingPlatformAuthenticatorAvailable()),
    ask(() => PublicKeyCredential.isConditionalMediationAvailable()),
  ])
  return {
    touch: tryOrNull(() => 'ontouchstart' in window || navigator.maxTouchPoints > 0),
    webgpu: tryOrNull(() => 'gpu' in navigator),
    platform_authenticator: authenticator,
    conditional_mediation: conditional,
    media_devices: tryOrNull(() => 'mediaDevices' in navigator),
    speech_synthesis: tryOrNull(() => 'speechSynthesis' in window),
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

function canStore(storage: Storage): boolean {
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

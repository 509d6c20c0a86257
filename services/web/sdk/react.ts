'use client'

import { useEffect, useMemo } from 'react'
import { type PackageStartOptions, start, type TidegateClient } from './package.ts'

/**
 * Returns the client of this page, for event handlers and effects. It starts when the component mounts and keeps
 * observing the page after the component unmounts. Equal options share one client.
 */
export function useTidegate(options: PackageStartOptions): TidegateClient {
  // Compared by value, because a component creates a new options object per render.
  const key = JSON.stringify(options)
  const { begin, client } = useMemo(() => createLazyClient(JSON.parse(key)), [key])
  useEffect(begin, [begin])
  return client
}

// Starts lazily: components also render on the server, and more often than they mount.
function createLazyClient(options: PackageStartOptions): {
  begin: () => void
  client: TidegateClient
} {
  let started: TidegateClient | undefined
  const ensureStarted = () => {
    started ??= start(options)
    return started
  }
  const client: TidegateClient = {
    getSession: (handoff) => ensureStarted().getSession(handoff),
    waitForFingerprint: () => ensureStarted().waitForFingerprint(),
    onError: (listener) => ensureStarted().onError(listener),
    consent: (isGranted) => ensureStarted().consent(isGranted),
    destroy: () => ensureStarted().destroy(),
  }
  return { begin: () => void ensureStarted(), client }
}

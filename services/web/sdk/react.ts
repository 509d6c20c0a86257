'use client'

import { useEffect, useMemo } from 'react'
import { type PackageStartOptions, start, type TidegateClient } from './package.ts'

/**
 * The client of this page, for event handlers and effects. It starts when the component is mounted, and goes on when
 * that is unmounted: what is observed is the page. The same options give the same client everywhere.
 */
export function useTidegate(options: PackageStartOptions): TidegateClient {
  const { publishableKey, endpoint, consent = 'granted', mode = 'full' } = options
  const { begin, client } = useMemo(
    () => laterClient({ publishableKey, endpoint, consent, mode }),
    [publishableKey, endpoint, consent, mode],
  )
  useEffect(begin, [begin])
  return client
}

// A component is rendered before there is a page, and more often than it is mounted.
function laterClient(options: PackageStartOptions): { begin: () => void; client: TidegateClient } {
  let started: TidegateClient | undefined
  const begun = () => {
    started ??= start(options)
    return started
  }
  const client: TidegateClient = {
    getSession: (handoff) => begun().getSession(handoff),
    waitForFingerprint: () => begun().waitForFingerprint(),
    onError: (listener) => begun().onError(listener),
    consent: (isGranted) => begun().consent(isGranted),
    destroy: () => begun().destroy(),
  }
  return { begin: () => void begun(), client }
}

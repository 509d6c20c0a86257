'use client'

import { useEffect, useMemo } from 'react'
import { type PackageStartOptions, start, type TidegateClient } from './package.ts'

/**
 * Returns the client of this page, for event handlers and effects. It starts when the component mounts and keeps
 * observing the page after the component unmounts. Equal options share one client.
 */
export function useTidegate(options: PackageStartOptions): TidegateClient {
  // By value: a component makes a new object of options each time it renders.
  const key = JSON.stringify(options)
  const { begin, client } = useMemo(() => laterClient(JSON.parse(key)), [key])
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

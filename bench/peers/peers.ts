import { existsSync } from 'node:fs'
import path from 'node:path'
import { createPool } from '../../infra/postgres/pool.ts'
import { type Child, startChild } from '../child.ts'
import type { Environment } from '../environment.ts'
import packages from './package.json' with { type: 'json' }

const isInstalled = existsSync(path.join(import.meta.dirname, 'node_modules/.package-lock.json'))

export type PeerPackage = keyof typeof packages.dependencies

/** Program that does the same work with another package. */
export interface Peer {
  name: string
  start(env: Record<string, string>): Promise<Child>
}

/** Returns peers that start `bench/peers/{program}`. Empty if `make bench` has not installed the packages. */
export function findPeers(peer: PeerPackage, runs: { label?: string; args: string[] }[]): Peer[] {
  if (!isInstalled) console.log(`${peer} is left out: make bench installs it in bench/peers.`)
  const name = `${path.basename(peer)} ${packages.dependencies[peer]}`
  return runs
    .filter(() => isInstalled)
    .map(({ label, args: [program = '', ...args] }) => ({
      name: label ? `${name}, ${label}` : name,
      start: (env) => startChild([`bench/peers/${program}`, ...args], env),
    }))
}

/** Creates an empty database on the same Postgres and returns its URL. */
export async function createPeerDatabase(
  { databaseUrl }: Environment,
  name: string,
): Promise<string> {
  const pool = createPool({ url: databaseUrl, max: 1 })
  await pool.query(`create database ${name}`).finally(() => pool.end())
  const url = new URL(databaseUrl)
  url.pathname = `/${name}`
  return url.href
}

import { circles, type Import, imports } from './imports.ts'

/**
 * The rooms, lowest first. A room may import those in lines before its own; rooms of one line do not import each other,
 * but services may `import type` from each other's schemas.
 */
const floors = [
  ['schemas'],
  ['infra'],
  ['infra/agents', 'infra/errors', 'infra/crypto', 'infra/ip', 'infra/postgres'],
  ['infra/flow'],
  ['infra/wire', 'infra/log', 'infra/safe-http'],
  ['infra/challenges', 'infra/event-store', 'infra/local', 'infra/otlp'],
  ['infra/access'],
  ['infra/http'],
  ['infra/idempotency'],
  [
    'projections/answers',
    'projections/audit',
    'projections/corrections',
    'projections/erasures',
    'projections/gate',
    'projections/organizations',
    'projections/policies',
    'projections/repeats',
    'projections/sessions',
    'projections/webhooks',
  ],
  [
    'services/agents',
    'services/collect',
    'services/console',
    'services/corrections',
    'services/erasure',
    'services/facts',
    'services/gate',
    'services/marks',
    'services/organizations',
    'services/readback',
  ].concat(['services/schemas', 'services/scoring', 'services/web', 'services/webhooks']),
  ['services/server'],
  ['services/cli'],
  ['bench'],
]

/** The room of a file: its folder within its top folder; `schemas/` and `bench/` are one each, and loose files are one. */
export function roomOf(file: string): string {
  const [top = '', folder, ...rest] = file.split('/')
  return ['schemas', 'bench'].includes(top) || rest.length === 0 ? top : `${top}/${folder}`
}

export interface Structure {
  /** `a -> b` with how many imports it stands for. */
  arrows: Map<string, number>
  /** Imports of a room that is not below; `room` where a file is in none that is known. */
  upward: string[]
  circles: string[][]
}

export function structure(all: Import[] = imports()): Structure {
  const between = all.filter(({ from, to }) => roomOf(from) !== roomOf(to))
  const arrows = new Map<string, number>()
  for (const { from, to } of between) {
    const arrow = `${roomOf(from)} -> ${roomOf(to)}`
    arrows.set(arrow, (arrows.get(arrow) ?? 0) + 1)
  }
  const upward = between.filter(
    (arrow) => !(floorOf(arrow.to) < floorOf(arrow.from)) && !isSchemaType(arrow),
  )
  return { arrows, upward: upward.map(({ from, to }) => `${from} -> ${to}`), circles: circles(all) }
}

/** Types of an API's answers, which follow from a `schemas.ts` or a file in `schemas/` of a service. */
const isSchemaType = ({ from, to, isType }: Import): boolean =>
  isType === true &&
  from.startsWith('services/') &&
  /^services\/[^/]+\/(.+\/)?schemas(\/.+)?\.ts$/.test(to)

/** Folders of a service that import each other in a circle. A file that is in none of them counts for itself. */
export function folderCircles(service: string, all: Import[] = imports()): string[][] {
  const inside = all.filter(
    (arrow) =>
      roomOf(arrow.from) === service && roomOf(arrow.to) === service && !isSchemaType(arrow),
  )
  const between = inside.map(({ from, to }) => ({ from: folderOf(from), to: folderOf(to) }))
  return circles(between.filter(({ from, to }) => from !== to))
}

function folderOf(file: string): string {
  const [top, service, folder, ...rest] = file.split('/')
  return rest.length === 0 ? file : `${top}/${service}/${folder}`
}

/** NaN for a room that no floor names: every comparison with it fails. */
function floorOf(file: string): number {
  const floor = floors.findIndex((rooms) => rooms.includes(roomOf(file)))
  return floor < 0 ? Number.NaN : floor
}

function print({ arrows, upward, circles: found }: Structure): void {
  for (const room of floors.flat()) {
    const targets = [...arrows].filter(([arrow]) => arrow.startsWith(`${room} -> `))
    const list = targets.map(([arrow, count]) => `${arrow.split(' -> ')[1]} (${count})`)
    console.log(`${room.padEnd(24)} ${list.join(', ') || '-'}`)
  }
  console.log(`\n${arrows.size} arrows, ${upward.length} upward, ${found.length} circles of files`)
  for (const line of [...upward, ...found.map((circle) => circle.join(' <-> '))]) console.log(line)
}

if (import.meta.main) print(structure())

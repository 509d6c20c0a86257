import { execFileSync } from 'node:child_process'
import { existsSync, globSync } from 'node:fs'
import { findChromium } from '../chromium.ts'
import { findDocker } from '../docker.ts'
import { startDockerDaemon } from '../docker-daemon.ts'
import { pythonWithDuckDb } from '../duckdb.ts'
import { hasContainers } from '../find-kafka.ts'
import { createManifestCheck, findHelm } from '../helm.ts'
import { canRunKafkaJars, kafkaJars } from '../kafka-broker.ts'
import { pythonWithKafka } from '../python-kafka.ts'
import { root } from '../test-projects.ts'
import { CannotBe } from './cannot-be.ts'
import { hasProgram, works } from './programs.ts'

export interface Need {
  /** Tests that are skipped without it. */
  tests: string
  /** Returns true if it is available, however it was installed. Default: true if `make` succeeds. */
  isHere?(): boolean | Promise<boolean>
  /** Debian packages that provide it, for all releases. Packages that a release lacks are ignored. */
  packages?: string[]
  /** Sets it up after its packages are installed. Rejects with the reason if impossible; resolves with its teardown. */
  make?(): Promise<void | (() => Promise<void>)>
}

const kafkaPackages = ['default-jre-headless', 'maven']
const hasKafka = async () => Boolean(process.env.KAFKA_BROKERS) || (await hasContainers())
const isRoot = () => process.getuid?.() === 0

/** Needs of tests that `npm ci` does not install. A test declares them with `needs`. */
export const catalogue = {
  chromium: {
    tests: 'pages in a browser',
    isHere: () => findChromium() !== undefined,
    packages: ['chromium'],
  },
  firefox: {
    tests: 'pages in Firefox',
    isHere: () => hasProgram('firefox-esr'),
    packages: ['firefox-esr'],
  },
  shells: {
    tests: 'commands that the docs print',
    isHere: () => ['bash', 'zsh', 'jq', 'curl', 'psql', 'pg_dump'].every(hasProgram),
    packages: ['bash', 'zsh', 'jq', 'curl', 'postgresql-client'],
  },
  desktop: {
    tests: 'a browser that a mouse drives',
    isHere: () => hasProgram('Xvfb') && hasProgram('xdotool'),
    packages: ['xvfb', 'xdotool'],
  },
  'old-engine': {
    tests: 'the SDK in the engine of Chromium 87',
    isHere: () => works('/usr/bin/python3', '-c', 'import PyQt5.QtWebEngineWidgets'),
    packages: ['python3-pyqt5.qtwebengine'],
  },
  kafka: {
    tests: 'everything on Kafka',
    isHere: async () => (await hasKafka()) || canRunKafkaJars(),
    packages: kafkaPackages,
    make: async () => void ((await hasKafka()) || (await kafkaJars())),
  },
  'kafka-jars': {
    tests: 'brokers that are started for one test',
    isHere: canRunKafkaJars,
    packages: kafkaPackages,
    make: async () => void (await kafkaJars()),
  },
  postgresql: {
    tests: "Debian's PostgreSQL",
    isHere: () => globSync('/usr/lib/postgresql/*/bin/initdb').length > 0,
    packages: ['postgresql'],
  },
  pgbouncer: {
    tests: 'poolers before the database',
    isHere: () => hasProgram('pgbouncer'),
    packages: ['pgbouncer'],
  },
  promtool: {
    tests: 'alert rules',
    isHere: () => hasProgram('promtool'),
    packages: ['prometheus'],
  },
  systemd: {
    tests: 'the systemd unit',
    isHere: () => hasProgram('systemd-analyze'),
    packages: ['systemd'],
  },
  nginx: { tests: 'the recipes for nginx', isHere: () => hasProgram('nginx'), packages: ['nginx'] },
  'nginx-njs': {
    tests: 'the recipe for nginx with njs',
    isHere: () => globSync('/usr/lib/nginx/modules/ngx_http_js_module.so').length > 0,
    packages: ['nginx', 'libnginx-mod-http-js'],
  },
  caddy: { tests: 'the recipe for Caddy', isHere: () => hasProgram('caddy'), packages: ['caddy'] },
  python: {
    tests: 'what the docs have in Python',
    isHere: () => works('python3', '--version'),
    packages: ['python3'],
  },
  'python-cryptography': {
    tests: 'what the docs have in Python with cryptography',
    isHere: () => works('python3', '-c', 'import cryptography'),
    packages: ['python3', 'python3-cryptography'],
  },
  'python-kafka': {
    tests: 'readers of topics in Python',
    isHere: () => works('python3', '-m', 'venv', '--help'),
    packages: ['python3', 'python3-venv'],
    make: async () => void (await pythonWithKafka()),
  },
  'python-duckdb': {
    tests: 'exports in DuckDB',
    isHere: () => works('python3', '-m', 'venv', '--help'),
    packages: ['python3', 'python3-venv'],
    make: async () => void (await pythonWithDuckDb()),
  },
  kcat: {
    tests: 'what kcat shows of topics',
    isHere: () => hasProgram('kcat'),
    packages: ['kcat'],
  },
  go: {
    tests: 'what the docs have in Go',
    isHere: () => works('go', 'version'),
    packages: ['golang-go'],
  },
  helm: {
    tests: 'the chart',
    isHere: async () => (await works('go', 'version')) && works('python3', '-m', 'venv', '--help'),
    packages: ['golang-go', 'python3', 'python3-venv'],
    async make() {
      await findHelm()
      await createManifestCheck()
    },
  },
  docker: {
    tests: 'the image',
    isHere: async () =>
      (await findDocker()) !== undefined || (hasProgram('dockerd') && hasProgram('debootstrap')),
    packages: ['docker.io', 'docker-buildx', 'debootstrap'],
    make: async () => ((await findDocker()) ? undefined : startDockerDaemon()),
  },
  history: {
    tests: 'an update from a program of before',
    async make() {
      const args = ['rev-parse', '--is-shallow-repository']
      const isShallow = execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
      if (isShallow !== 'false')
        throw new CannotBe('this clone has no history: git fetch --unshallow brings it')
    },
  },
  'full-disks': {
    tests: 'full disks',
    async make() {
      if (!isRoot()) throw new CannotBe('only root may mount small ones')
    },
  },
  faketime: {
    tests: 'clocks that jump',
    isHere: () => existsSync('/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1'),
    packages: ['faketime'],
  },
} satisfies Record<string, Need>

export type NeedName = keyof typeof catalogue

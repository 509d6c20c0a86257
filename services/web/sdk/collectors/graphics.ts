import type { Snapshot } from '../../../../schemas/observations.ts'
import { hashOrNull } from '../hashes.ts'
import { jsonOf } from '../realm.ts'
import { booleanOrNull, member, nextSlice, textOrNull, tryOrNull, yieldToPage } from '../support.ts'

type WebGl = Snapshot['webgl']
type Context = WebGLRenderingContext | WebGL2RenderingContext

const precisions = [
  'LOW_FLOAT',
  'MEDIUM_FLOAT',
  'HIGH_FLOAT',
  'LOW_INT',
  'MEDIUM_INT',
  'HIGH_INT',
] as const
const comparedLimits = [
  'MAX_TEXTURE_SIZE',
  'MAX_RENDERBUFFER_SIZE',
  'MAX_VIEWPORT_DIMS',
  'MAX_VERTEX_ATTRIBS',
] as const

export async function collectWebGl(): Promise<{ webgl: WebGl; mismatch: boolean | null } | null> {
  await nextSlice()
  const context = createContext('webgl')
  if (!context) return null
  try {
    await yieldToPage()
    const webgl = await describe(context)
    await nextSlice()
    return { webgl, mismatch: await differsFromWebGl2(context).catch(() => null) }
  } finally {
    releaseContext(context)
  }
}

export function rendererName(context: Context | null): string | null {
  return context && unmasked(context, 'UNMASKED_RENDERER_WEBGL', context.RENDERER)
}

export function createContext(
  kind: 'webgl' | 'webgl2',
  owner: Document = document,
): Context | null {
  return tryOrNull(() => {
    const canvas = owner.createElement('canvas')
    canvas.width = canvas.height = 16
    return kind === 'webgl' ? canvas.getContext('webgl') : canvas.getContext('webgl2')
  })
}

/** Releases the context. Browsers allow about 16 per page, so a leak could evict the page's own contexts. */
export function releaseContext(context: Context | null): void {
  tryOrNull(() => context?.getExtension('WEBGL_lose_context')?.loseContext())
}

async function describe(context: Context): Promise<WebGl> {
  const parametersHash = await hashOrNull(() => parameters(context, context))
  await yieldToPage()
  const extensionLimits = await extensionParameters(context).catch(() => null)
  await yieldToPage()
  const [extensionsHash, extensionParametersHash, shaderPrecisionHash] = await Promise.all([
    hashOrNull(() => context.getSupportedExtensions()),
    extensionLimits && hashOrNull(() => extensionLimits),
    hashOrNull(() => shaderPrecisions(context)),
  ])
  return {
    vendor: unmasked(context, 'UNMASKED_VENDOR_WEBGL', context.VENDOR),
    renderer: rendererName(context),
    version: tryOrNull(() => textOrNull(context.getParameter(context.VERSION))),
    shading_language_version: tryOrNull(() =>
      textOrNull(context.getParameter(context.SHADING_LANGUAGE_VERSION)),
    ),
    parameters_hash: parametersHash,
    extensions_hash: extensionsHash,
    extension_parameters_hash: extensionParametersHash,
    shader_precision_hash: shaderPrecisionHash,
  }
}

function unmasked(
  context: Context,
  name: 'UNMASKED_VENDOR_WEBGL' | 'UNMASKED_RENDERER_WEBGL',
  plain: number,
) {
  return tryOrNull(() => {
    const extension = context.getExtension('WEBGL_debug_renderer_info')
    return textOrNull(context.getParameter(extension ? extension[name] : plain))
  })
}

function parameters(context: Context, names: object): [string, unknown][] {
  return constants(names)
    .map(([name, value]): [string, unknown] => [name, plainValue(context.getParameter(value))])
    .filter(([, value]) => value !== null)
}

// Extensions without parameters. They are skipped, because enabling an extension is a round trip to the GPU process.
const withoutParameters =
  /^(OES|ANGLE|KHR)_|^EXT_(?!texture_filter)|^WEBGL_(color|compressed|debug_shaders|depth|multi|polygon)/

async function extensionParameters(context: Context): Promise<[string, unknown][]> {
  const found: [string, unknown][] = []
  for (const name of context.getSupportedExtensions() ?? []) {
    if (withoutParameters.test(name)) continue
    await yieldToPage()
    const extension: unknown = context.getExtension(name)
    if (name !== 'WEBGL_lose_context' && typeof extension === 'object' && extension)
      found.push(...parameters(context, extension))
  }
  return found
}

// Returns the constants for limits and capabilities, which describe the device and not the context's state.
function constants(names: object): [string, number][] {
  const found: [string, number][] = []
  for (const name in names) {
    const value: unknown = Reflect.get(names, name)
    if (
      typeof value === 'number' &&
      /^(MAX_\w+_\w+$|ALIASED|SUBPIXEL|UNMASKED|[A-Z]+_BITS$|RENDERER$|VENDOR$)/.test(name)
    )
      found.push([name, value])
  }
  return found
}

function plainValue(value: unknown): unknown {
  if (value instanceof Int32Array || value instanceof Float32Array || value instanceof Uint32Array)
    return Array.from(value)
  return typeof value === 'object' ? null : value
}

function shaderPrecisions(context: Context): (number | undefined)[][] {
  return [context.VERTEX_SHADER, context.FRAGMENT_SHADER].flatMap((shader) =>
    precisions.map((name) => {
      const format = context.getShaderPrecisionFormat(shader, context[name])
      return [format?.rangeMin, format?.rangeMax, format?.precision]
    }),
  )
}

async function differsFromWebGl2(context: Context): Promise<boolean | null> {
  const webgl2 = createContext('webgl2')
  if (!webgl2) return null
  await yieldToPage()
  const limits = (gl: Context) =>
    jsonOf(comparedLimits.map((name) => plainValue(gl.getParameter(gl[name]))))
  const isDifferent =
    limits(context) !== limits(webgl2) || rendererName(context) !== rendererName(webgl2)
  await yieldToPage()
  releaseContext(webgl2)
  return isDifferent
}

export async function collectWebGpu(): Promise<Snapshot['webgpu']> {
  const adapter = await requestAdapter()
  const info = member(adapter, 'info')
  return {
    available: Boolean(adapter),
    adapter_vendor: textOrNull(member(info, 'vendor')),
    adapter_architecture: textOrNull(member(info, 'architecture')),
    fallback_adapter:
      booleanOrNull(member(info, 'isFallbackAdapter')) ??
      booleanOrNull(member(adapter, 'isFallbackAdapter')),
    features_hash: adapter ? await hashOrNull(() => featuresOf(member(adapter, 'features'))) : null,
    limits_hash: adapter ? await hashOrNull(() => limitsOf(member(adapter, 'limits'))) : null,
  }
}

async function requestAdapter(): Promise<unknown> {
  const gpu = member(navigator, 'gpu')
  const request = member(gpu, 'requestAdapter')
  return typeof request === 'function' ? Reflect.apply(request, gpu, []) : null
}

function featuresOf(features: unknown): unknown[] {
  return isIterable(features) ? [...features].sort() : []
}

function isIterable(value: unknown): value is Iterable<unknown> {
  return Symbol.iterator in Object(value)
}

function limitsOf(limits: unknown): [string, unknown][] {
  const found: [string, unknown][] = []
  for (const name in Object(limits)) found.push([name, member(limits, name)])
  return found.filter(([, value]) => typeof value === 'number').sort()
}

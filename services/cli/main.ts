import { enableCompileCache } from 'node:module'
import path from 'node:path'

// Hundreds of modules are stripped of types and compiled once instead of at each start. Where it cannot be
// written, the start is only slower.
enableCompileCache(path.join(import.meta.dirname, '../../.cache/compile'))
await import('./program.ts')

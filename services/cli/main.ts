import { enableCompileCache } from 'node:module'
import path from 'node:path'

// Caches type stripping and compilation of hundreds of modules. If the folder is not writable, startup is just slower.
enableCompileCache(path.join(import.meta.dirname, '../../.cache/compile'))
await import('./program.ts')

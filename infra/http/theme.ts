import { readFileSync } from 'node:fs'
import path from 'node:path'

/** Colours and type of pages that are one file, before what a page has of its own. */
export const themeStyle = readFileSync(path.join(import.meta.dirname, 'theme.css'), 'utf8')

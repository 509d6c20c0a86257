import { readFileSync } from 'node:fs'
import path from 'node:path'

const read = (file: string) => readFileSync(path.join(import.meta.dirname, file), 'utf8')

/** Colours, space and type that all pages share, before any other style. */
export const tokenStyle = read('tokens.css')
/** What pages that are one file begin with. */
export const themeStyle = tokenStyle + read('theme.css')

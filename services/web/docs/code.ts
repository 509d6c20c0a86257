import hljs from 'highlight.js/lib/core'
import bash from 'highlight.js/lib/languages/bash'
import ini from 'highlight.js/lib/languages/ini'
import json from 'highlight.js/lib/languages/json'
import nginx from 'highlight.js/lib/languages/nginx'
import python from 'highlight.js/lib/languages/python'
import sql from 'highlight.js/lib/languages/sql'
import typescript from 'highlight.js/lib/languages/typescript'
import xml from 'highlight.js/lib/languages/xml'
import yaml from 'highlight.js/lib/languages/yaml'
import { escapeHtml } from '../../../infra/text.ts'

const languages = { bash, ini, json, nginx, python, sql, typescript, xml, yaml }
for (const [name, language] of Object.entries(languages)) hljs.registerLanguage(name, language)
// The HTML grammar looks up embedded scripts as `javascript`.
hljs.registerAliases(['javascript', 'js', 'jsx', 'ts', 'tsx'], { languageName: 'typescript' })
hljs.registerAliases(['sh'], { languageName: 'bash' })
hljs.registerAliases(['html'], { languageName: 'xml' })

/**
 * Renders a code block, highlighted if its language is known. It is focusable, so that it can be scrolled by keyboard.
 */
export function codeHtml(text: string, language = ''): string {
  const inner = hljs.getLanguage(language)
    ? hljs.highlight(text, { language }).value
    : escapeHtml(text)
  return `<pre tabindex="0"><code>${inner}</code></pre>\n`
}

import axe from 'axe-core'

/**
 * For `page.evaluate`: the rules of axe that the page breaks, each with the HTML of where. Shadows of wide tables are off
 * meanwhile, because axe judges no contrast above a gradient.
 */
export const findFaults = `(async () => {
  ${axe.source}
  const sheet = new CSSStyleSheet()
  sheet.replaceSync('.scroll { background: none !important }')
  document.adoptedStyleSheets.push(sheet)
  const { violations } = await axe.run()
  document.adoptedStyleSheets.pop()
  return violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])
})()`

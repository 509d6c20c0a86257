import axe from 'axe-core'

/**
 * Script for `page.evaluate` that returns violated axe rules with the HTML of the elements. It hides shadows of wide
 * tables, because axe cannot check contrast on gradients.
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

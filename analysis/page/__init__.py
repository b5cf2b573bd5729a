"""A report as one page: HTML that needs no network, Markdown for a pull request, or JSON.

``build`` makes a `Page` from results; ``analysis.page.html``, ``analysis.page.markdown`` and
``analysis.page.document`` lay one out. A new part of the page is a file in
`analysis.page.sections` and a row in its list.
"""
